/** A server as a program of its own, to be stopped and killed by a test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { serverProgram } from './links.js';

export interface ServerProgram {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

export interface Listening extends ServerProgram {
  readonly url: string;
}

/** `listen` is `stdio` or an address. */
export function startServer(env: Readonly<Record<string, string>>, listen: string, ...args: string[]): ServerProgram {
  const child = spawn(process.execPath, [serverProgram, '--listen', listen, ...args], {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('the server did not start');
  const ended = new Promise<number | string | null>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
  return { child, pid, ended };
}

export async function startListening(env: Readonly<Record<string, string>>, ...args: string[]): Promise<Listening> {
  const program = startServer(env, 'ws://127.0.0.1:0', ...args);
  const { stdout } = program.child;
  if (stdout === null) throw new Error('the server has no stdout');
  for await (const url of createInterface(stdout)) return { ...program, url };
  throw new Error('the server ended without an address');
}
