/** The `exec-server` command as a program: run to its end, or serving. */
import { execa } from 'execa';
import { serverProgram } from './links.js';

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number | undefined;
}

export async function command(
  args: readonly string[],
  options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  const { stdout, stderr, exitCode } = await execa(process.execPath, [serverProgram, ...args], {
    reject: false,
    input: options.input ?? '',
    env: { ...options.env },
  });
  return { stdout, stderr, exitCode };
}

export interface Serving {
  readonly url: string;
  /** The exit code, once the server has ended. */
  readonly ended: Promise<number | undefined>;
  kill(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

export async function serve(...args: string[]): Promise<Serving> {
  const program = execa(process.execPath, [serverProgram, '--listen', 'ws://127.0.0.1:0', ...args], {
    reject: false,
    buffer: false,
    stdin: 'ignore',
    stderr: 'ignore',
  });
  const url = await new Promise<string>((resolve, reject) => {
    program.stdout.once('data', (line: Buffer) => resolve(line.toString().trim()));
    program.stdout.once('end', () => reject(new Error('the server ended without a URL')));
  });
  return {
    url,
    ended: program.then(({ exitCode }) => exitCode),
    kill: (signal) => void program.kill(signal),
    stop: async () => {
      program.kill('SIGTERM');
      await program;
    },
  };
}
