/** `client.run`: a command from start to end, with its output collected under a limit. */
import type { CloseReasonName, ExitReason, StreamName } from '@exec-server/protocol';
import { type CallOptions, DEFAULT_TIMEOUT_MS } from '../calls.js';
import type { Clock } from '../clock.js';
import { ClientError, isClientError } from '../errors.js';
import { checkCount } from '../checkCount.js';
import { type Closing, type Exit, type GapEvent, lastSeqOf, type OutputEvent, type ProcessEvent } from '../events.js';
import { onAbort } from '../signals.js';
import { FirstBytes } from './firstBytes.js';
import type { ProcessHandle } from './processHandle.js';
import type { StartOptions } from './startParams.js';

/** Stdin of a command: in one piece, or in pieces as they come. Text is sent as UTF-8. */
export type RunInput = string | Uint8Array | AsyncIterable<Uint8Array>;

/** How {@link Client.run} runs a command. */
export interface RunOptions extends Omit<StartOptions, 'argv' | 'stdin' | 'lingerMs'> {
  /** Given to the command as its stdin, which is closed behind it. NOT_SUPPORTED on foreign servers. */
  readonly input?: RunInput | undefined;
  /**
   * Ends the command and its tree this many ms after its start; the result then says `timedOut`. The server does it, and a
   * foreign one is told to. A server that is stuck holds nobody: 5 s later the run is given up, with what there is. Default:
   * never.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How long after its exit the command may be waited for where others hold its output, such as children in the background. They are
   * not touched; the result then has `closeReason` `heldOpen` (on foreign servers `closed` is false), and what they write later is
   * not in it. Default 5,000; `Infinity` waits for them.
   */
  readonly lingerMs?: number | undefined;
  /** Bytes kept per stream, the first ones; the rest is counted and dropped. Default 64 MiB. INVALID_ARGUMENT for what is no whole number from 0 on. */
  readonly maxBytes?: number | undefined;
  /** Terminates the command and rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined;
  /** Called with each piece of output in order; a promise it returns holds back the command. */
  readonly onOutput?: ((output: OutputEvent) => void | Promise<void>) | undefined;
}

/** How a command went. */
export interface RunResult {
  /** 128 + n for a death by signal n; null when the command was given up after a timeout before its exit was seen. */
  readonly exitCode: number | null;
  /** Name of the signal that ended the command, as `SIGKILL`; undefined for an exit of its own. */
  readonly signal: string | undefined;
  /** How the command ended; undefined on foreign servers, and where the exit was not seen. */
  readonly reason: ExitReason | undefined;
  /** What was kept of stdout, its first `maxBytes`; of a terminal everything. */
  readonly stdout: Uint8Array;
  /** What was kept of stderr, its first `maxBytes`. */
  readonly stderr: Uint8Array;
  /** Bytes of stdout that arrived, kept or not. */
  readonly stdoutBytes: number;
  /** Bytes of stderr that arrived, kept or not. */
  readonly stderrBytes: number;
  /** Whether `stdout` or `stderr` lacks something, by the limit or by a gap. */
  readonly truncated: boolean;
  /** Whether it was ended because its `timeoutMs` ran out. */
  readonly timedOut: boolean;
  /** False when a timeout, or `lingerMs` on a foreign server, ended the wait although something still held the streams open. */
  readonly closed: boolean;
  /** `heldOpen`: `lingerMs` ran out while others held the streams; undefined on foreign servers and without `closed`. */
  readonly closeReason: CloseReasonName | undefined;
  /** From the call to the end of the output, as the client saw it, in whole ms. */
  readonly durationMs: number;
  /** Ranges of events that were gone. */
  readonly gaps: readonly GapEvent[];
  /** A stream as UTF-8; bad bytes become U+FFFD. */
  text(stream?: 'stdout' | 'stderr'): string;
}

export interface RunHost {
  readonly clock: Clock;
  start(options: StartOptions, call: CallOptions): Promise<ProcessHandle>;
  /** Whether calls reach the server now. */
  isConnected(): boolean;
  /** Whether the server enforces a timeout itself. */
  readonly isExtended: boolean;
  /** Throws NOT_SUPPORTED when the server is a foreign one. */
  requireExtended(what: string): void;
}

const MAX_BYTES = 64 * 1024 * 1024;
/** Longer than what a command itself has written takes to arrive, and short for who waits. */
const LINGER_MS = 5_000;
/** How long after its timeout a command may take to close, and a server to answer. */
const SLACK_MS = 5_000;

export async function runProcess(host: RunHost, argv: readonly string[], options: RunOptions): Promise<RunResult> {
  const { input, timeoutMs, maxBytes = MAX_BYTES, lingerMs = LINGER_MS, signal, onOutput, ...start } = options;
  checkCount('maxBytes', maxBytes);
  if (lingerMs !== Number.POSITIVE_INFINITY) checkCount('lingerMs', Math.ceil(lingerMs));
  const begunAt = host.clock.now();
  const call: CallOptions =
    timeoutMs === undefined ? { signal } : { signal, timeoutMs: Math.min(timeoutMs + SLACK_MS, DEFAULT_TIMEOUT_MS) };
  if (input !== undefined) host.requireExtended('closing the stdin of a process, which `input` needs');
  const enforced = timeoutMs !== undefined && host.isExtended;
  const stdin = input === undefined ? 'none' : 'pipe';
  // A foreign server knows none; then this side counts.
  const linger = host.isExtended && Number.isFinite(lingerMs) ? { lingerMs } : {};
  const handle = await host.start({ ...start, ...linger, argv, stdin, ...(enforced ? { timeoutMs } : {}) }, call);
  const run = new Run(host, handle, begunAt, { maxBytes, lingerMs, onOutput });
  return await run.complete(input, timeoutMs === undefined ? undefined : { timeoutMs, enforced }, signal);
}

interface Timeout {
  readonly timeoutMs: number;
  /** Whether the server does it, and this side only watches. */
  readonly enforced: boolean;
}

interface Kept {
  readonly maxBytes: number;
  readonly lingerMs: number;
  readonly onOutput: RunOptions['onOutput'];
}

class Run {
  readonly #host: RunHost;
  readonly #clock: Clock;
  readonly #handle: ProcessHandle;
  readonly #events: AsyncIterableIterator<ProcessEvent, undefined>;
  readonly #stdout: FirstBytes;
  readonly #stderr: FirstBytes;
  readonly #onOutput: RunOptions['onOutput'];
  /** How long this side waits for the end of the streams, where the server does not. */
  readonly #lingerMs: number;
  #cancelLinger: (() => void) | undefined;
  /** The last event to be taken, once that time is over. */
  #lastSeq = Number.POSITIVE_INFINITY;
  readonly #gaps: GapEvent[] = [];
  readonly #begunAt: number;
  #exit: Exit | undefined;
  #closing: Closing | undefined;
  #timedOut = false;
  /** Why the run is given up before its end. */
  #stopped: { readonly error: unknown } | undefined;

  constructor(host: RunHost, handle: ProcessHandle, begunAt: number, { maxBytes, lingerMs, onOutput }: Kept) {
    this.#host = host;
    this.#clock = host.clock;
    this.#begunAt = begunAt;
    this.#handle = handle;
    this.#events = handle.events();
    this.#stdout = new FirstBytes(maxBytes);
    this.#stderr = new FirstBytes(maxBytes);
    this.#lingerMs = host.isExtended ? Number.POSITIVE_INFINITY : lingerMs;
    this.#onOutput = onOutput;
  }

  async complete(
    input: RunInput | undefined,
    timeout: Timeout | undefined,
    signal: AbortSignal | undefined,
  ): Promise<RunResult> {
    const abort = (): void => {
      const data = { processId: this.#handle.processId, cursor: this.#handle.cursor };
      this.#stop(
        new ClientError(
          'ABORTED',
          'the run was aborted by the caller; the command is being terminated',
          data,
          signal?.reason,
        ),
      );
    };
    const cancelTimeout = timeout === undefined ? undefined : this.#watch(timeout);
    const forget = onAbort(signal, abort);
    try {
      if (input !== undefined) this.#feed(input);
      for await (const event of this.#events) {
        await this.#take(event);
        if (lastSeqOf(event) >= this.#lastSeq) break;
      }
    } catch (error) {
      if (this.#closing === undefined) this.#stop(error);
    } finally {
      this.#cancelLinger?.();
      cancelTimeout?.();
      forget();
    }
    if (this.#stopped !== undefined) throw this.#stopped.error;
    return this.#result();
  }

  async #take(event: ProcessEvent): Promise<void> {
    switch (event.type) {
      case 'output':
        this.#collector(event.stream).add(event.bytes);
        await this.#onOutput?.(event);
        break;
      case 'gap':
        this.#gaps.push(event);
        break;
      case 'exited':
        this.#exit = event;
        if (Number.isFinite(this.#lingerMs))
          this.#cancelLinger = this.#clock.timer(this.#lingerMs, () => this.#endLinger());
        break;
      case 'closed':
        this.#closing = event;
        break;
      default:
        event satisfies never;
    }
  }

  /** What has arrived belongs to the result, also where a slow `onOutput` has not come to it. */
  #endLinger(): void {
    this.#lastSeq = this.#handle.arrivedSeq;
    if (this.#handle.cursor >= this.#lastSeq) this.#leave();
  }

  #collector(stream: StreamName): FirstBytes {
    return stream === 'stderr' ? this.#stderr : this.#stdout;
  }

  #feed(input: RunInput): void {
    writeInput(this.#handle, input).catch((error: unknown) => {
      // A command may end, or close its stdin, without having read everything; and a failed client shows in the events.
      if (!isClientError(error)) this.#stop(error);
    });
  }

  /** The returned function ends the watch. */
  #watch({ timeoutMs, enforced }: Timeout): () => void {
    let cancel = (): void => {};
    const giveUp = (): void => {
      if (!this.#host.isConnected()) {
        // What became of the command is not known: the connection comes back and tells, or the run fails with it.
        cancel = this.#clock.timer(SLACK_MS, giveUp);
        return;
      }
      this.#timedOut = true;
      if (enforced) this.#terminate();
      this.#leave();
    };
    if (enforced) {
      cancel = this.#clock.timer(timeoutMs + SLACK_MS, giveUp);
      return () => cancel();
    }
    cancel = this.#clock.timer(timeoutMs, () => {
      // One that has ended in time, and whose streams others hold, is not ended any more.
      if (this.#exit === undefined) {
        this.#timedOut = true;
        this.#terminate();
      }
      cancel = this.#clock.timer(SLACK_MS, giveUp);
    });
    return () => cancel();
  }

  #stop(error: unknown): void {
    this.#stopped ??= { error };
    this.#terminate();
    this.#leave();
  }

  #terminate(): void {
    // If the call fails the client has failed, and so do the events.
    this.#handle.terminate().catch(() => undefined);
  }

  #leave(): void {
    this.#events.return?.().catch(() => undefined);
  }

  #result(): RunResult {
    const stdout = this.#stdout.bytes();
    const stderr = this.#stderr.bytes();
    return {
      exitCode: this.#exit?.exitCode ?? null,
      signal: this.#exit?.signal,
      reason: this.#exit?.reason,
      stdout,
      stderr,
      stdoutBytes: this.#stdout.total,
      stderrBytes: this.#stderr.total,
      truncated: this.#stdout.truncated || this.#stderr.truncated || this.#gaps.length > 0,
      timedOut: this.#timedOut || this.#exit?.reason === 'timedOut',
      closed: this.#closing !== undefined,
      closeReason: this.#closing?.reason,
      durationMs: Math.round(this.#clock.now() - this.#begunAt),
      gaps: this.#gaps,
      // A byte order mark is output like any other.
      text: (stream = 'stdout') =>
        new TextDecoder('utf-8', { ignoreBOM: true }).decode(stream === 'stderr' ? stderr : stdout),
    };
  }
}

async function writeInput(handle: ProcessHandle, input: RunInput): Promise<void> {
  if (typeof input === 'string' || input instanceof Uint8Array) {
    await handle.end(input);
    return;
  }
  for await (const piece of input) await handle.write(piece);
  await handle.end();
}
