/** A process in the manner of Node's `spawn`: a few members over a handle, built on web streams so that browsers have it too. */
import type { TerminalSize } from '@exec-server/protocol';
import type { CallOptions } from '../calls.js';
import type { CloseStatus, ExitStatus } from './handleOptions.js';
import { onAbort } from '../signals.js';
import type { ProcessHandle } from './processHandle.js';
import type { StartOptions } from './startParams.js';

/** How {@link Client.spawn} starts a process; `stdin` is `pipe` unless said otherwise. */
export interface SpawnOptions extends Omit<StartOptions, 'argv'> {
  /** Aborts the start, and later terminates the process, as Node's option does. */
  readonly signal?: AbortSignal | undefined;
}

/** A process in the manner of Node's `ChildProcess`, with web streams. Streams that nobody reads hold back nothing. */
export class SpawnedProcess {
  /** The whole surface: events, cursor, `terminate` with a grace, `release`. */
  readonly handle: ProcessHandle;
  /** Null with `stdin: 'none'`. Closing it is the end of input. */
  readonly stdin: WritableStream<string | Uint8Array> | null;
  /** As {@link ProcessHandle.stdout}: of a terminal everything. */
  readonly stdout: ReadableStream<Uint8Array>;
  /** As {@link ProcessHandle.stderr}. */
  readonly stderr: ReadableStream<Uint8Array>;
  /** As Node's event `exit`: the streams may still have something. Rejects when the client fails before. */
  readonly exited: Promise<ExitStatus>;
  /** As Node's event `close`: the process and its streams have ended. */
  readonly closed: Promise<CloseStatus>;
  #exit: ExitStatus | undefined;

  /** @internal Use `client.spawn`. */
  constructor(handle: ProcessHandle, hasStdin: boolean) {
    this.handle = handle;
    this.stdin = hasStdin ? handle.stdin : null;
    this.stdout = handle.stdout;
    this.stderr = handle.stderr;
    this.exited = handle.wait().then((status) => (this.#exit = status));
    this.closed = handle.closed();
    // Who does not look at them does not want their failure either: the streams and every call have it as well.
    for (const promise of [this.exited, this.closed]) promise.catch(() => undefined);
  }

  /** Process id of the operating system at the server; undefined on foreign servers. */
  get pid(): number | undefined {
    return this.handle.pid;
  }

  /** Null until the exit was seen; 128 + n for a death by signal n. */
  get exitCode(): number | null {
    return this.#exit?.exitCode ?? null;
  }

  /** The signal that ended the process; null while it runs and for an exit of its own. */
  get signalCode(): string | null {
    return this.#exit?.signal ?? null;
  }

  /** Sends a signal to the process group; whether it was delivered. Foreign servers take SIGINT alone. */
  async kill(signal = 'SIGTERM'): Promise<boolean> {
    return (await this.handle.signal(signal)).delivered ?? true;
  }

  /** As {@link ProcessHandle.resize}. */
  resize(size: TerminalSize): Promise<void> {
    return this.handle.resize(size);
  }
}

export async function spawnProcess(
  start: (options: StartOptions, call: CallOptions) => Promise<ProcessHandle>,
  argv: readonly string[],
  { signal, ...options }: SpawnOptions,
): Promise<SpawnedProcess> {
  const stdin = options.stdin ?? 'pipe';
  const handle = await start({ ...options, argv, stdin }, { signal });
  const hasTerminal = options.tty !== undefined && options.tty !== false;
  const spawned = new SpawnedProcess(handle, stdin === 'pipe' || hasTerminal);
  if (signal !== undefined) terminateOn(signal, spawned);
  return spawned;
}

function terminateOn(signal: AbortSignal, { handle, exited }: SpawnedProcess): void {
  const abort = (): void => {
    // A call that fails means a client that has failed, which `exited` tells.
    handle.terminate().catch(() => undefined);
  };
  const forget = onAbort(signal, abort);
  exited.then(forget, forget);
}
