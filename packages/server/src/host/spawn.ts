/**
 * Children of this host: pipes, fork, exit. By `node:child_process`, not execa; start to exit of /bin/true with both
 * outputs piped, two cores, Linux 6.18, Node 20.20, execa 9.6.1 with `buffer: false`:
 *
 *   | path          | one at a time, p50 / p95 | CPU of the server | 16 at a time |
 *   | child_process | 1.2-1.3 / 1.5 ms         | 0.7 ms            | 930-990 / s  |
 *   | execa         | 1.4-1.5 / 3.5 ms         | 1.3 ms            | 590-720 / s  |
 *
 * Where no real pipes can be had (no /proc, no suitable shell), streams are Node's socket pairs: all works but opening
 * them by name, so `echo x > /dev/stdout`, `cat /dev/stdin`, `tee /dev/stderr` fail in the child with ENXIO.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants as osConstants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { WireError } from '@exec-server/protocol';
import type { ChildExit, OutputSource, Platform, SpawnedChild, SpawnRequest, StdinSink } from './child.js';
import { descriptorsLeft } from './hostLimits.js';
import type { Pipe } from './pipeHelper.js';
import { PipePool, type PipePoolOptions } from './pipePool.js';
import { PipeSink, PipeSource } from './pipeStreams.js';
import { checkStart, explainFailedExec } from './preflight.js';
import { ProcessGroup } from './processGroup.js';
import { type StdioEntry, withoutMasters } from './pty/masters.js';
import { loadPty } from './pty/native.js';
import { spawnPty } from './pty/ptyChild.js';
import { errnoCode, startError } from './startErrors.js';
import { countHolders, pipeInode } from './tree/holders.js';
import { readStat } from './tree/procfs.js';

/** What a spawn with three socket pairs takes for a moment. */
const SOCKETS_DESCRIPTORS = 10;

/** How children of this host get their pipes. */
export interface HostPlatformOptions {
  /** False: Node's socket pairs even where real pipes can be had. Default true. */
  readonly realPipes?: boolean;
  /** @internal */
  readonly pipePool?: PipePoolOptions;
}

/** The platform {@link createHostPlatform} makes. */
export interface HostPlatform extends Platform {
  /** Whether children get real pipes; makes the first ones, so that it also warms the pool. */
  probePipes(): Promise<boolean>;
}

/**
 * The platform of this host, which {@link createExecServer} takes by itself. Pass one with other options, or wrapped in
 * one of your own, as {@link ExecServerOptions.platform}. Helpers start with the first `spawn` or `probePipes`.
 */
export function createHostPlatform(options: HostPlatformOptions = {}): HostPlatform {
  const pool = options.realPipes === false ? undefined : new PipePool(options.pipePool);
  return {
    signals: process.platform === 'win32' ? [] : Object.keys(osConstants.signals),
    async spawn(request, cancelled) {
      if (request.terminal !== undefined) return spawnPty(request, cancelled);
      const program = checkStart(request);
      const pipes = await pool?.take(request.stdin === 'pipe' ? 3 : 2);
      if (cancelled?.() === true) {
        if (pipes !== undefined) pool?.putBack(pipes);
        throw new WireError('startCancelled', 'the start was cancelled');
      }
      return pipes === undefined ? spawnOnSockets(program, request) : spawnOnPipes(program, request, pipes);
    },
    async terminals() {
      return loadPty().then(
        () => true,
        () => false,
      );
    },
    async probePipes() {
      const pipes = await pool?.take(1);
      if (pipes === undefined) return false;
      pool?.putBack(pipes);
      return true;
    },
    async close() {
      await pool?.close();
    },
  };
}

async function spawnOnPipes(program: string, request: SpawnRequest, pipes: readonly Pipe[]): Promise<SpawnedChild> {
  // A descriptor is in one of the two until a socket or a close takes it over.
  const open = new Set(pipes.flatMap(({ reader, writer }) => [reader, writer]));
  const sockets: Socket[] = [];
  const adopt = (fd: number, direction: { readable: boolean; writable: boolean }): Socket => {
    // Opening makes its own description non-blocking and leaves the other end alone.
    const socket = new Socket({ fd, ...direction });
    open.delete(fd);
    sockets.push(socket);
    return socket;
  };
  const close = (fd: number): void => {
    open.delete(fd);
    closeSync(fd);
  };
  try {
    const [stdout, stderr, stdin] = pipes;
    if (stdout === undefined || stderr === undefined) throw new Error('a start takes two pipes or three');
    const inodes = [stdout, stderr].flatMap(({ reader }) => pipeInode(reader) ?? []);
    const sources = [
      new PipeSource('stdout', adopt(stdout.reader, { readable: true, writable: false })),
      new PipeSource('stderr', adopt(stderr.reader, { readable: true, writable: false })),
    ];
    let childStdin: number | 'ignore' = 'ignore';
    let sink: PipeSink | undefined;
    if (stdin !== undefined) {
      // The pooled reader is non-blocking; a child expects a stdin that blocks.
      childStdin = openSync(`/proc/self/fd/${stdin.reader}`, constants.O_RDONLY);
      open.add(childStdin);
      close(stdin.reader);
      sink = new PipeSink(adopt(stdin.writer, { readable: false, writable: true }));
    }
    const child = await fork(program, request, [childStdin, stdout.writer, stderr.writer]);
    return new HostChild(child, sources, sink, inodes);
  } catch (error) {
    for (const socket of sockets) socket.destroy();
    throw await typedError(error, program, request);
  } finally {
    // The child has its copies; as long as ours are open there is no EOF.
    for (const fd of open) closeSync(fd);
  }
}

async function spawnOnSockets(program: string, request: SpawnRequest): Promise<SpawnedChild> {
  if (!descriptorsLeft(SOCKETS_DESCRIPTORS)) throw startError('EMFILE');
  try {
    const child = await fork(program, request, [request.stdin === 'pipe' ? 'pipe' : 'ignore', 'pipe', 'pipe']);
    const { stdin, stdout, stderr }: { stdin: Writable | null; stdout: Readable | null; stderr: Readable | null } =
      child;
    if (stdout === null || stderr === null) throw new Error('the child has no output streams');
    const sources = [new PipeSource('stdout', stdout), new PipeSource('stderr', stderr)];
    return new HostChild(child, sources, stdin === null ? undefined : new PipeSink(stdin), []);
  } catch (error) {
    throw await typedError(error, program, request);
  }
}

/** Forks and execs; on return the program runs. Rejects with Node's own error. */
async function fork(program: string, request: SpawnRequest, streams: StdioEntry[]): Promise<ChildProcess> {
  const start = (stdio: StdioEntry[]): ChildProcess =>
    spawn(program, request.argv.slice(1), {
      argv0: request.arg0 ?? request.argv[0] ?? program,
      cwd: request.cwd,
      // Node would add its coverage variable, and writes to the object.
      env: { NODE_V8_COVERAGE: undefined, ...request.env },
      stdio,
      // A session and a group of its own.
      detached: true,
    });
  const child = withoutMasters(streams, start);
  if (child.pid !== undefined) return child;
  throw await new Promise<Error>((resolve) => child.once('error', resolve));
}

async function typedError(error: unknown, program: string, request: SpawnRequest): Promise<WireError> {
  if (error instanceof WireError) return error;
  const code = errnoCode(error);
  if (code === 'EMFILE' || code === 'ENFILE' || code === 'EAGAIN' || code === 'ENOMEM') return startError(code);
  if (code !== undefined && !code.startsWith('ERR_')) return explainFailedExec(code, program, request.cwd);
  return new WireError('spawnFailed', error instanceof Error ? error.message : String(error));
}

class HostChild implements SpawnedChild {
  readonly pid: number;
  readonly outputs: readonly OutputSource[];
  readonly stdin: StdinSink | undefined;
  readonly startTime: number | undefined;
  readonly #pipes: readonly string[];
  readonly #group: ProcessGroup;
  #exit: ChildExit | undefined;
  #onExit: ((exit: ChildExit) => void)[] = [];

  /** `pipes`: what its output pipes are known by, where they are pipes. */
  constructor(
    child: ChildProcess,
    outputs: readonly OutputSource[],
    stdin: StdinSink | undefined,
    pipes: readonly string[],
  ) {
    if (child.pid === undefined) throw new Error('the child did not start');
    this.pid = child.pid;
    this.outputs = outputs;
    this.stdin = stdin;
    this.#group = new ProcessGroup(child.pid);
    this.#pipes = pipes;
    this.startTime = readStat(child.pid)?.startTime;
    child.once('exit', (code, signal) => {
      this.#group.leaderExited();
      this.#exit = { code, signal };
      for (const listener of this.#onExit.splice(0)) listener(this.#exit);
    });
    // A kill or a send that fails; neither is used here, and unheard it would end the server.
    child.on('error', () => undefined);
  }

  onExit(listener: (exit: ChildExit) => void): void {
    const exit = this.#exit;
    if (exit === undefined) this.#onExit.push(listener);
    else queueMicrotask(() => listener(exit));
  }

  signalGroup(signal: string): 'delivered' | 'gone' {
    return this.#group.signal(signal);
  }

  async countHolders(): Promise<number> {
    return (await countHolders(this.#pipes)).length;
  }
}
