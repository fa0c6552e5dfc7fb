/** `client.run`: a command from start to end, with its output collected under a limit. */
import type { StreamName } from '@exec-server/protocol';
import type { CallOptions } from '../calls.js';
import type { Clock } from '../clock.js';
import { ClientError, isClientError } from '../errors.js';
import type { GapEvent, OutputEvent, ProcessEvent } from '../events.js';
import type { ProcessHandle } from './processHandle.js';
import type { StartOptions } from './startParams.js';

export type RunInput = string | Uint8Array | AsyncIterable<Uint8Array>;

export interface RunOptions extends Omit<StartOptions, 'argv' | 'stdin'> {
  /** Given to the command as its stdin, which is closed behind it. NOT_SUPPORTED on foreign servers. */
  readonly input?: RunInput | undefined;
  /** Terminates the command this many ms after its start; the result then says `timedOut`. Default: never. */
  readonly timeoutMs?: number | undefined;
  /** Bytes kept per stream, the first ones; the rest is counted and dropped. Default 64 MiB. */
  readonly maxOutputBytes?: number | undefined;
  /** Terminates the command and rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined;
  /** Called with each piece of output in order; a promise it returns holds back the command. */
  readonly onOutput?: ((output: OutputEvent) => void | Promise<void>) | undefined;
}

export interface RunResult {
  /** 128 + n for a death by signal n; null when the command was given up after a timeout before its exit was seen. */
  readonly exitCode: number | null;
  readonly signal: string | undefined;
  /** What was kept of the output; on a terminal everything is in `stdout`. */
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** Bytes that arrived, kept or not. */
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** Whether `stdout` or `stderr` lacks something, by the limit or by a gap. */
  readonly truncated: boolean;
  readonly timedOut: boolean;
  /** False when a timeout ended the wait although something still held the streams open. */
  readonly closed: boolean;
  /** Ranges of events that were gone. */
  readonly gaps: readonly GapEvent[];
  /** A stream as UTF-8; bad bytes become U+FFFD. */
  text(stream?: 'stdout' | 'stderr'): string;
}

export interface RunHost {
  readonly clock: Clock;
  start(options: StartOptions, call: CallOptions): Promise<ProcessHandle>;
  /** Rejects when the server cannot close a stdin. */
  requireInput(call: CallOptions): Promise<void>;
}

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** How long a command that was terminated after its timeout may take to close. */
const AFTER_TIMEOUT_MS = 5_000;

export async function runProcess(host: RunHost, argv: readonly string[], options: RunOptions): Promise<RunResult> {
  const { input, timeoutMs, maxOutputBytes = MAX_OUTPUT_BYTES, signal, onOutput, ...start } = options;
  if (input !== undefined) await host.requireInput({ signal });
  const handle = await host.start({ ...start, argv, stdin: input === undefined ? 'none' : 'pipe' }, { signal });
  return await new Run(host, handle, maxOutputBytes, onOutput).complete(input, timeoutMs, signal);
}

class Run {
  readonly #clock: Clock;
  readonly #handle: ProcessHandle;
  readonly #events: AsyncIterableIterator<ProcessEvent, undefined>;
  readonly #stdout: Collector;
  readonly #stderr: Collector;
  readonly #onOutput: RunOptions['onOutput'];
  readonly #gaps: GapEvent[] = [];
  #exit: { exitCode: number; signal: string | undefined } | undefined;
  #closed = false;
  #timedOut = false;
  /** Why the run is given up before its end. */
  #stopped: { readonly error: unknown } | undefined;

  constructor(host: RunHost, handle: ProcessHandle, maxOutputBytes: number, onOutput: RunOptions['onOutput']) {
    this.#clock = host.clock;
    this.#handle = handle;
    this.#events = handle.events();
    this.#stdout = new Collector(maxOutputBytes);
    this.#stderr = new Collector(maxOutputBytes);
    this.#onOutput = onOutput;
  }

  async complete(
    input: RunInput | undefined,
    timeoutMs: number | undefined,
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
    let cancelTimer =
      timeoutMs === undefined ? undefined : this.#clock.timer(timeoutMs, () => (cancelTimer = this.#timeOut()));
    if (signal?.aborted === true) abort();
    else signal?.addEventListener('abort', abort);
    try {
      if (input !== undefined) this.#feed(input);
      for await (const event of this.#events) await this.#take(event);
    } catch (error) {
      if (!this.#closed) this.#stop(error);
    } finally {
      cancelTimer?.();
      signal?.removeEventListener('abort', abort);
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
        this.#exit = { exitCode: event.exitCode, signal: event.signal };
        break;
      case 'closed':
        this.#closed = true;
        break;
      default:
        event satisfies never;
    }
  }

  #collector(stream: StreamName): Collector {
    return stream === 'stderr' ? this.#stderr : this.#stdout;
  }

  #feed(input: RunInput): void {
    writeInput(this.#handle, input).catch((error: unknown) => {
      // A command may end, or close its stdin, without having read everything; and a failed client shows in the events.
      if (!isClientError(error)) this.#stop(error);
    });
  }

  #timeOut(): () => void {
    this.#timedOut = true;
    this.#terminate();
    return this.#clock.timer(AFTER_TIMEOUT_MS, () => this.#leave());
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
      stdout,
      stderr,
      stdoutBytes: this.#stdout.total,
      stderrBytes: this.#stderr.total,
      truncated: this.#stdout.truncated || this.#stderr.truncated || this.#gaps.length > 0,
      timedOut: this.#timedOut,
      closed: this.#closed,
      gaps: this.#gaps,
      text: (stream = 'stdout') => new TextDecoder().decode(stream === 'stderr' ? stderr : stdout),
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

class Collector {
  readonly #maxBytes: number;
  readonly #chunks: Uint8Array[] = [];
  #kept = 0;
  total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get truncated(): boolean {
    return this.total > this.#kept;
  }

  add(bytes: Uint8Array): void {
    this.total += bytes.byteLength;
    const kept = bytes.subarray(0, this.#maxBytes - this.#kept);
    if (kept.byteLength === 0) return;
    this.#chunks.push(kept);
    this.#kept += kept.byteLength;
  }

  bytes(): Uint8Array {
    const all = new Uint8Array(this.#kept);
    let at = 0;
    for (const chunk of this.#chunks) {
      all.set(chunk, at);
      at += chunk.byteLength;
    }
    return all;
  }
}
