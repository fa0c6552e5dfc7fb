/** The two servers that are compared, each as a program of its own that listens on a free port of loopback. */
import { inject } from 'vitest';
import { serverProgram } from '../../support/links.js';
import { Program } from './program.js';

export const serverNames = ['reference', 'ours'] as const;
export type ServerName = (typeof serverNames)[number];

export interface ListeningServer {
  readonly program: Program;
  readonly url: string;
}

/** `folder` is where it starts; its home is there as well. The caller stops the program. */
export async function startServer(name: ServerName, folder: string): Promise<ListeningServer> {
  const argv: [string, ...string[]] =
    name === 'ours' ? [process.execPath, serverProgram] : [referenceBinary(), 'exec-server'];
  const program = new Program({
    argv: [...argv, '--listen', 'ws://127.0.0.1:0'],
    cwd: folder,
    env: { HOME: folder, CODEX_HOME: folder },
  });
  try {
    return { program, url: await program.firstLine() };
  } catch (error) {
    await program.stop();
    throw error;
  }
}

/** Throws where the reference is not to be had; such tests are skipped. */
export function referenceBinary(): string {
  const binary = inject('referenceBinary');
  if (binary === null) throw new Error('the reference is not to be had here');
  return binary;
}
