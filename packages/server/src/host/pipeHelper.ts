/**
 * One batch of anonymous pipes from a short-lived shell. Node makes none itself: its 'pipe' stdio are sockets, which
 * children cannot open again as /dev/stdin, /dev/stdout or /dev/stderr.
 *
 * The shell makes pipes by here-documents of one newline and prints their numbers; both ends are opened again through
 * /proc/<shell>/fd/N, each as a description of its own, so that the blocking mode of one end is not the other's. The
 * shell holds read ends, which would hide EPIPE from a writer, so a batch is handed out only once the shell is reaped.
 *
 * Measured on two cores, Linux 6.18, Node 20.20: 16 pipes 3 ms (0.19 ms a pipe), 64 pipes 4.5 ms (0.07), 256 pipes
 * 9 ms (0.04) with bash; 7 pipes 2 ms (0.28) with dash. A drained pipe that saw EOF is not used again: nothing proves
 * that no descendant opened it for reading, and 0.07 ms is 4% of a start.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { descriptorsLeft } from './hostLimits.js';
import { errnoCode } from './startErrors.js';

/** Descriptors of one empty pipe, both close-on-exec. */
export interface Pipe {
  /** Non-blocking. */
  readonly reader: number;
  /** Blocking. */
  readonly writer: number;
}

export interface HelperShell {
  readonly program: string;
  readonly args: (pipes: number) => readonly string[];
  /** Most pipes of one run. */
  readonly most: number;
}

/** `{f}` takes a free descriptor; at the shell's own limit the loop ends and prints what it has. */
const bashScript = 'i=0; while ((i++ < $1)) && exec {f}<<<""; do o+="$f "; done; echo "$o"; read -r end';
/** Descriptors above 9 are beyond the grammar of a plain shell. */
const plainScript = `exec 3<<A 4<<A 5<<A 6<<A 7<<A 8<<A 9<<A\n${'\nA\n'.repeat(7)}echo 3 4 5 6 7 8 9; read -r end`;

/** Best first. */
export const helperShells: readonly HelperShell[] = [
  { program: 'bash', args: (pipes) => ['--norc', '--noprofile', '-c', bashScript, 'bash', String(pipes)], most: 1024 },
  { program: 'sh', args: () => ['-c', plainScript], most: 7 },
];

export type Batch =
  | {
      readonly outcome: 'made';
      readonly pipes: readonly Pipe[] /** Errno that cut the batch short. */;
      readonly cutBy?: string;
    }
  /** This shell cannot do it here: it is missing, has no pipes for here-documents, or /proc does not show them. */
  | { readonly outcome: 'unsuitable' }
  /** It may work another time. */
  | { readonly outcome: 'failed'; readonly code: string };

/** What a spawn with two socket pairs takes for a moment, and one pipe after it. */
const HELPER_DESCRIPTORS = 8;
/** A stopped or starved shell is given up after this long. */
const HELPER_TIMEOUT_MS = 10_000;

export async function makePipes(shell: HelperShell, count: number): Promise<Batch> {
  const wanted = Math.min(count, shell.most);
  if (!descriptorsLeft(HELPER_DESCRIPTORS)) return { outcome: 'failed', code: 'EMFILE' };
  let helper: ChildProcessByStdio<Writable, Readable, null>;
  try {
    // The end of its stdin, which is also our death, ends it. A fixed folder, since ours may be gone.
    helper = spawn(shell.program, shell.args(wanted), {
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', NODE_V8_COVERAGE: undefined },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
  } catch (error) {
    return helperFault(errnoCode(error));
  }
  const end = new Promise<{ readonly error?: string; readonly killed?: boolean }>((resolve) => {
    helper.once('exit', (_code, signal) => resolve({ killed: signal !== null }));
    helper.once('error', (error) => resolve({ error: errnoCode(error) ?? 'EIO' }));
  });
  const { pid } = helper;
  if (pid === undefined) return helperFault((await end).error);
  try {
    const numbers = await readNumbers(helper.stdout);
    if (numbers === 'late' || (numbers === 'nothing' && (await end).killed === true))
      return { outcome: 'failed', code: 'EAGAIN' };
    if (numbers === 'nothing' || numbers === 'nonsense') return { outcome: 'unsuitable' };
    // Once it was reaped its number may be a stranger's, whose descriptors are none of ours.
    const reaped = helper.exitCode !== null || helper.signalCode !== null;
    return reaped ? { outcome: 'failed', code: 'EAGAIN' } : openAll(pid, numbers.slice(0, wanted));
  } finally {
    helper.kill('SIGKILL');
    await end;
    helper.stdin.destroy();
    helper.stdout.destroy();
  }
}

function helperFault(code = 'EIO'): Batch {
  return code === 'ENOENT' || code === 'EACCES' ? { outcome: 'unsuitable' } : { outcome: 'failed', code };
}

/** The one line of numbers. `nothing`: the shell ended without it. */
function readNumbers(output: Readable): Promise<number[] | 'late' | 'nothing' | 'nonsense'> {
  return new Promise((resolve) => {
    let line = '';
    const timer = setTimeout(() => resolve('late'), HELPER_TIMEOUT_MS);
    const ended = (): void => {
      clearTimeout(timer);
      resolve('nothing');
    };
    output.on('data', (bytes: Buffer) => {
      line += bytes.toString('latin1');
      if (!line.endsWith('\n')) return;
      clearTimeout(timer);
      const valid = /^\d+(?: \d+)* ?\n$/.test(line);
      resolve(valid ? [...new Set(line.trim().split(' ').map(Number))] : 'nonsense');
    });
    output.once('close', ended);
    output.once('error', ended);
  });
}

function openAll(pid: number, numbers: readonly number[]): Batch {
  const pipes: Pipe[] = [];
  for (const number of numbers) {
    const opened = openBoth(`/proc/${pid}/fd/${number}`);
    if (typeof opened === 'object') {
      pipes.push(opened);
    } else if (opened === 'ENOTSUP' || opened === 'EACCES') {
      closePipes(pipes);
      return { outcome: 'unsuitable' };
    } else {
      // ENOENT: it was killed under our hands.
      const code = opened === 'ENOENT' ? 'EAGAIN' : opened;
      return pipes.length > 0 ? { outcome: 'made', pipes, cutBy: code } : { outcome: 'failed', code };
    }
  }
  return { outcome: 'made', pipes };
}

/** Both ends of an empty pipe, or the errno; nothing stays open on failure. */
function openBoth(path: string): Pipe | string {
  const opened: number[] = [];
  try {
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    opened.push(reader);
    // Older shells keep here-documents in files.
    if (!fstatSync(reader).isFIFO()) throw Object.assign(new Error('not a pipe'), { code: 'ENOTSUP' });
    const writer = openSync(path, constants.O_WRONLY);
    opened.push(writer);
    const newline = Buffer.alloc(2);
    if (readSync(reader, newline) !== 1) throw Object.assign(new Error('not the newline'), { code: 'ENOTSUP' });
    return { reader, writer };
  } catch (error) {
    for (const descriptor of opened) closeSync(descriptor);
    const code = errnoCode(error);
    if (code === undefined) throw error;
    return code;
  }
}

export function closePipes(pipes: Iterable<Pipe>): void {
  for (const { reader, writer } of pipes) {
    closeSync(reader);
    closeSync(writer);
  }
}
