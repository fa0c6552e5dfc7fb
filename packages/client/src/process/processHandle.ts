/** What callers hold for a process. */
import type { TerminalSize } from '@exec-server/protocol';
import { emptyReply, signalReply, terminateReply, type TerminateReply } from '../callGuards.js';
import { type CallOptions, type Calls, DEFAULT_TIMEOUT_MS } from '../calls.js';
import type { Clock } from '../clock.js';
import { ClientError, isClientError } from '../errors.js';
import type { Exit, GapEvent, ProcessEvent } from '../events.js';
import type { ProcessRecord } from '../registry/processRecord.js';
import { Subscription } from '../registry/subscription.js';
import { flushProcess } from './flush.js';
import type { CloseStatus, EventsOptions, ExitStatus, TerminateOptions, WriteOptions } from './handleOptions.js';
import { boundOf, type CollectOptions, OutputLooks } from './outputLooks.js';
import { stdinOffset } from './stdinOffset.js';
import type { StdinQueue } from './stdinQueue.js';
import { byteStream, type OutputName, stdinStream, StreamReader, textOf } from './streams.js';
import { type WaitOptions, within } from './waiting.js';

/** A reader that is slow for hours may skip any number of gaps. */
const GAPS_KEPT = 1_024;

export interface HandleHost {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly errorOnGap: boolean;
  /** Throws NOT_SUPPORTED when the server is a foreign one. */
  requireExtended(what: string): void;
}

/**
 * A process of the session. Its events are delivered in order, each once, over any number of cuts of the connection.
 *
 * Iterating gives `output`, `gap`, `exited` and `closed`; the loop ends by itself only after `closed`, and by a ClientError
 * with `data.cursor` otherwise. Iterators are independent of each other. One that is slow holds back the output of this
 * process at the server, so that memory stays flat; a handle nobody iterates holds back nothing, and a late iterator reads
 * again from the server what the client has dropped. What the server has dropped too is a `gap`.
 *
 * `stdout`, `stderr` and `stdin` are the same as web streams, and `text` is one of them decoded. A stream takes nothing
 * before its first read; from then on it holds back the process once it has a full buffer of its own unread bytes, as a
 * pipe would, and never because of what the other stream brings. Cancel a stream to let go of it.
 *
 * When the client is closed or fails, everything pending here rejects; the process itself then depends on its session.
 */
export class ProcessHandle implements AsyncIterable<ProcessEvent> {
  readonly #record: ProcessRecord;
  readonly #stdin: StdinQueue;
  readonly #host: HandleHost;
  readonly #afterSeq: number;
  #gaps: GapEvent[] = [];
  #cursor: number;
  #stdout: ReadableStream<Uint8Array> | undefined;
  #stderr: ReadableStream<Uint8Array> | undefined;
  #stdinStream: WritableStream<string | Uint8Array> | undefined;

  /** @internal */
  constructor(record: ProcessRecord, stdin: StdinQueue, host: HandleHost, afterSeq: number) {
    this.#record = record;
    this.#stdin = stdin;
    this.#host = host;
    this.#afterSeq = afterSeq;
    this.#cursor = afterSeq;
  }

  /** Its name in the session: the one given to `start`, or a random one. */
  get processId(): string {
    return this.#record.processId;
  }

  /**
   * Process id of the operating system at the server; undefined for a process this client did not start, and on foreign
   * servers.
   */
  get pid(): number | undefined {
    return this.#record.pid;
  }

  /**
   * Last seq this handle has given to an iterator (web streams, `text` and `collect` do not move it): pass it to `attach` to go on
   * from here, in another program too.
   */
  get cursor(): number {
    return this.#cursor;
  }

  /** Last seq that has arrived here in order, whoever has taken it. @internal */
  get arrivedSeq(): number {
    return this.#record.cursor;
  }

  /** As `events` without options. */
  [Symbol.asyncIterator](): AsyncIterableIterator<ProcessEvent, undefined> {
    return this.events();
  }

  /**
   * The events from a cursor on. Leaving the loop stops this consumer alone. Rejects, with `data.cursor`, when the client
   * fails or is closed, and with OUTPUT_LOST at a gap when `errorOnGap` is set, or when the server has let go of the
   * process.
   */
  events(options: EventsOptions = {}): AsyncIterableIterator<ProcessEvent, undefined> {
    return new Subscription(this.#record, {
      afterSeq: options.afterSeq ?? this.#afterSeq,
      errorOnGap: this.#host.errorOnGap,
      handedOver: (seq) => (this.#cursor = Math.max(this.#cursor, seq)),
    });
  }

  /**
   * The bytes of stdout, and of the terminal where there is one. Ends when every stream of the process has ended; errors
   * when the client fails, and at a gap with `errorOnGap`; without it a gap is skipped and noted in `gaps`.
   */
  get stdout(): ReadableStream<Uint8Array> {
    this.#stdout ??= byteStream(this.#reader('stdout'), this.#noteGap);
    return this.#stdout;
  }

  /** The bytes of stderr, as `stdout`; empty for a process on a terminal. */
  get stderr(): ReadableStream<Uint8Array> {
    this.#stderr ??= byteStream(this.#reader('stderr'), this.#noteGap);
    return this.#stderr;
  }

  /** Stdin as a stream: the same as `write`, and `end` when it is closed or aborted. */
  get stdin(): WritableStream<string | Uint8Array> {
    this.#stdinStream ??= stdinStream(this);
    return this.#stdinStream;
  }

  /**
   * Gaps that `stdout`, `stderr` and `text` have skipped, the last 1,024 of them; a gap may belong to either stream, and each
   * reader notes it.
   */
  get gaps(): readonly GapEvent[] {
    return this.#gaps.slice(-GAPS_KEPT);
  }

  /**
   * The text of one stream, decoded as UTF-8 across chunk borders; bad bytes become U+FFFD. `stdout` includes the output
   * of a terminal. A gap is skipped and noted in `gaps`, or rejects with `errorOnGap`. Each call reads from the start of
   * the handle.
   */
  text(stream: OutputName = 'stdout'): AsyncGenerator<string, void, undefined> {
    return textOf(this.#reader(stream), this.#noteGap);
  }

  /**
   * Collects the output for who looks at it now and then, as the tool of an agent does: both streams in the order in which they
   * came, within a bound that is held at any time, so that no process waits for a look and none fills the memory. `errorOnGap`
   * makes a gap a failure of the looks.
   */
  collect(options: CollectOptions = {}): OutputLooks {
    const maxBytes = boundOf(options);
    const { clock, errorOnGap } = this.#host;
    const { afterSeq = this.#afterSeq } = options;
    const events = new Subscription(this.#record, { afterSeq, errorOnGap });
    const exit = (): ExitStatus | undefined => {
      const known = this.#record.exit;
      return known === undefined ? undefined : statusOf(known);
    };
    return new OutputLooks({ events, afterSeq, exit, clock }, maxBytes);
  }

  /**
   * Writes to stdin; resolves when the server has accepted all of it. Writes keep their order, and each byte arrives once
   * whatever happens to the connection. A program that does not read makes this wait. Do not change the bytes meanwhile.
   * Rejects with STDIN_CLOSED (`data.acceptedBytes` of this write were accepted), and with STDIN_FULL when 64 MiB of writes
   * that nobody waited for are queued.
   */
  async write(data: string | Uint8Array, { offset }: WriteOptions = {}): Promise<void> {
    await this.#stdin.write(toBytes(data), { offset });
  }

  /** Closes stdin behind everything written before, and behind `data`. NOT_SUPPORTED on foreign servers. */
  async end(data: string | Uint8Array = '', { offset }: WriteOptions = {}): Promise<void> {
    await this.#stdin.write(toBytes(data), { eof: true, offset });
  }

  /**
   * How many bytes of stdin the server has accepted, whichever client wrote them: where another program goes on, with
   * `write(bytes.subarray(n), { offset: n })`. SERVER_ERROR (`unknownProcess`) when the server keeps the process no
   * longer; NOT_SUPPORTED on foreign servers.
   */
  stdinOffset(options: CallOptions = {}): Promise<number> {
    return stdinOffset(this.#host.calls, this.processId, options);
  }

  /**
   * Resolves when everything the server had of this process at the time of the call has been released here in order: an
   * iterator that goes on has it all without another wait. Rejects when output cannot be had any more. One that lags holds
   * this up, since the server then sends no more. NOT_SUPPORTED on foreign servers.
   */
  async flush(options: CallOptions = {}): Promise<void> {
    this.#host.requireExtended('process/flush');
    await flushProcess(this.#host.calls, this.#record, options);
  }

  /**
   * Sends a signal by name (`SIGTERM`) to the process group. A process that has exited is no error. Foreign servers take
   * SIGINT alone, others are NOT_SUPPORTED. A cut before the answer rejects with OUTCOME_UNKNOWN.
   */
  async signal(
    name: string,
    options?: CallOptions,
  ): Promise<{
    /** Whether a running process's group got it; undefined where the server does not say. */
    readonly delivered: boolean | undefined;
  }> {
    const { processId } = this.#record;
    const isInterrupt = name === 'SIGINT' || name === 'interrupt';
    const { delivered } = await this.#host.calls.call(
      {
        method: 'process/signal',
        // The one spelling all servers have.
        params: { processId, signal: isInterrupt ? 'interrupt' : name },
        guard: signalReply,
        ...(isInterrupt ? {} : { extension: `the signal ${name}` }),
        data: { processId },
      },
      options,
    );
    return { delivered };
  }

  /**
   * Sets the size of the terminal, 1 to 65,535 cells each way; its foreground group gets SIGWINCH. SERVER_ERROR
   * (`notTerminal`, `processEnded`); NOT_SUPPORTED on foreign servers.
   */
  async resize({ cols, rows }: TerminalSize, options?: CallOptions): Promise<void> {
    const { processId } = this.#record;
    const params = { processId, cols, rows };
    await this.#host.calls.call({ method: 'process/resize', params, guard: emptyReply, data: { processId } }, options);
  }

  /**
   * Ends the process. Plain: SIGKILL to its group at once, as every server does it. The options are NOT_SUPPORTED on
   * foreign servers. What was left of its tree and how that was looked for is told where the server waited for the end.
   *
   * @example
   * ```ts
   * const { exit, left } = await job.terminate({ graceMs: 5_000, leftovers: 'kill' });
   * console.log(exit?.signal, left);
   * ```
   */
  async terminate(options: TerminateOptions = {}): Promise<TerminateReply> {
    const { graceMs, leftovers, wait, ...call } = options;
    const { processId } = this.#record;
    const finer = {
      ...(graceMs === undefined ? {} : { graceMs: Math.ceil(graceMs) }),
      ...(leftovers === undefined ? {} : { leftovers }),
      ...(wait === undefined ? {} : { wait }),
    };
    const names = Object.keys(finer);
    return await this.#host.calls.call(
      {
        method: 'process/terminate',
        params: { processId, ...finer },
        guard: terminateReply,
        ...(names.length === 0 ? {} : { extension: `terminate with ${names.join(', ')}` }),
        data: { processId },
      },
      { timeoutMs: DEFAULT_TIMEOUT_MS + (graceMs ?? 0), ...call },
    );
  }

  /**
   * Resolves when the process has exited; output may still come, until `closed`. Giving up, by `timeoutMs` (WAIT_TIMEOUT) or
   * `signal` (ABORTED), does not touch the process.
   */
  async wait(options: WaitOptions = {}): Promise<ExitStatus> {
    return statusOf(await within(this.#record.waitExit(), options, this.#host.clock, this.processId));
  }

  /** Resolves when the process has exited and every stream has ended, or is held open beyond `lingerMs`. */
  async closed(options: WaitOptions = {}): Promise<CloseStatus> {
    const { reason, holders } = await within(this.#record.waitClosed(), options, this.#host.clock, this.processId);
    return { reason, holders };
  }

  /**
   * Lets the server forget a process that has closed, its output included; its id stays taken. Once is enough and twice does
   * no harm. SERVER_ERROR (`processRunning`) before `closed`; NOT_SUPPORTED on foreign servers.
   */
  async release(options?: CallOptions): Promise<void> {
    const { processId } = this.#record;
    const params = { processId };
    try {
      await this.#host.calls.call(
        { method: 'process/release', params, guard: emptyReply, data: { processId } },
        options,
      );
    } catch (error) {
      // Done before: by a call whose answer a cut swallowed, or by the server itself.
      const done =
        isClientError(error) && (error.data.reason === 'alreadyReleased' || error.data.reason === 'expiredProcess');
      if (!done) throw error;
    }
  }

  /**
   * Waits for the end of the process and its streams, then releases it. Read the output first: it goes with the process.
   * NOT_SUPPORTED on foreign servers.
   */
  async waitAndRelease(options: WaitOptions = {}): Promise<ExitStatus> {
    this.#host.requireExtended('process/release');
    await this.closed(options);
    const status = await this.wait();
    await this.release();
    return status;
  }

  #reader(name: OutputName): StreamReader {
    const { errorOnGap } = this.#host;
    return new StreamReader(name, () => new Subscription(this.#record, { afterSeq: this.#afterSeq, errorOnGap }));
  }

  readonly #noteGap = (gap: GapEvent): void => {
    if (this.#gaps.length >= 2 * GAPS_KEPT) this.#gaps = this.#gaps.slice(-GAPS_KEPT);
    this.#gaps.push(gap);
  };
}

function statusOf({ exitCode, signal, reason }: Exit): ExitStatus {
  return { exitCode, signal, reason };
}

const encoder = new TextEncoder();

function toBytes(data: unknown): Uint8Array {
  if (typeof data === 'string') return encoder.encode(data);
  if (data instanceof Uint8Array) return data;
  throw new ClientError(
    'NOT_SUPPORTED',
    `stdin takes strings and Uint8Array, and not a ${typeof data}; nothing was sent`,
  );
}
