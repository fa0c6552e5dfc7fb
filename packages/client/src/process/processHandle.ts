/** What callers hold for a process. */
import type { StreamName } from '@exec-server/protocol';
import type { CallOptions, Calls } from '../calls.js';
import { ClientError } from '../errors.js';
import type { ProcessEvent } from '../events.js';
import { signalReply, terminateReply } from '../guards.js';
import type { ProcessRecord } from '../registry/processRecord.js';
import { Subscription } from '../registry/subscription.js';
import type { StdinQueue } from './stdinQueue.js';

export interface ExitStatus {
  /** 128 + n for a death by signal n. A non-zero code is a result, not an error. */
  readonly exitCode: number;
  /** The signal that ended the process, if one did and the server says so. */
  readonly signal: string | undefined;
}

export interface EventsOptions {
  /** Begin after this event. Default: where the handle begins, which is the first event for a started process. */
  readonly afterSeq?: number | undefined;
}

export interface HandleHost {
  readonly calls: Calls;
  readonly errorOnGap: boolean;
}

/**
 * A process of the session. Its events are delivered in order, each once, over any number of cuts of the connection.
 *
 * Iterating gives `output`, `gap`, `exited` and `closed`; the loop ends by itself only after `closed`, and by a ClientError
 * with `data.cursor` otherwise. Iterators are independent of each other. One that is slow holds back the output of this
 * process at the server, so that memory stays flat; a handle nobody iterates holds back nothing, and a late iterator reads
 * again from the server what the client has dropped. What the server has dropped too is a `gap`.
 *
 * When the client is closed or fails, everything pending here rejects; the process itself then depends on its session.
 */
export class ProcessHandle implements AsyncIterable<ProcessEvent> {
  readonly #record: ProcessRecord;
  readonly #stdin: StdinQueue;
  readonly #host: HandleHost;
  readonly #afterSeq: number;
  #cursor: number;

  /** @internal */
  constructor(record: ProcessRecord, stdin: StdinQueue, host: HandleHost, afterSeq: number) {
    this.#record = record;
    this.#stdin = stdin;
    this.#host = host;
    this.#afterSeq = afterSeq;
    this.#cursor = afterSeq;
  }

  get processId(): string {
    return this.#record.processId;
  }

  /** Process id of the operating system at the server; unknown after `attach`, after a start whose answer a cut swallowed, and on foreign servers. */
  get pid(): number | undefined {
    return this.#record.pid;
  }

  /** Last seq this handle has given to an iterator: pass it to `attach` to go on from here, in another program too. */
  get cursor(): number {
    return this.#cursor;
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<ProcessEvent, undefined> {
    return this.events();
  }

  /** The events from a cursor on. Leaving the loop stops this consumer alone. */
  events(options: EventsOptions = {}): AsyncIterableIterator<ProcessEvent, undefined> {
    return new Subscription(this.#record, {
      afterSeq: options.afterSeq ?? this.#afterSeq,
      errorOnGap: this.#host.errorOnGap,
      handedOver: (seq) => (this.#cursor = Math.max(this.#cursor, seq)),
    });
  }

  /**
   * The text of one stream, decoded as UTF-8 across chunk borders; bad bytes become U+FFFD. `stdout` includes the output of
   * a terminal. A gap is skipped.
   */
  async *text(stream: Exclude<StreamName, 'pty'> = 'stdout'): AsyncGenerator<string, void, undefined> {
    const decoder = new TextDecoder();
    for await (const event of this.events()) {
      let piece = '';
      if (event.type === 'output' && (event.stream === 'stderr') === (stream === 'stderr')) {
        piece = decoder.decode(event.bytes, { stream: true });
      } else if (event.type === 'gap' || event.type === 'closed') {
        piece = decoder.decode();
      }
      if (piece !== '') yield piece;
    }
  }

  /**
   * Writes to stdin; resolves when the server has accepted all of it. Writes keep their order, and each byte arrives once
   * whatever happens to the connection. A program that does not read makes this wait. Do not change the bytes meanwhile.
   * Rejects with STDIN_CLOSED (`data.acceptedBytes` of this write were accepted).
   */
  async write(data: string | Uint8Array): Promise<void> {
    await this.#stdin.write(toBytes(data));
  }

  /** Closes stdin behind everything written before, and behind `data`. NOT_SUPPORTED on foreign servers. */
  async end(data: string | Uint8Array = ''): Promise<void> {
    await this.#stdin.write(toBytes(data), true);
  }

  /**
   * Sends a signal by name (`SIGTERM`) to the process group. `delivered` is undefined where the server does not say.
   * Foreign servers take SIGINT alone, others are NOT_SUPPORTED. A cut before the answer rejects with OUTCOME_UNKNOWN.
   */
  async signal(name: string, options?: CallOptions): Promise<{ readonly delivered: boolean | undefined }> {
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

  /** Kills the process group at once. `running`: whether it was running when the call came. */
  async terminate(options?: CallOptions): Promise<{ readonly running: boolean }> {
    const { processId } = this.#record;
    return await this.#host.calls.call(
      { method: 'process/terminate', params: { processId }, guard: terminateReply, data: { processId } },
      options,
    );
  }

  /** Resolves when the process has exited; output may still come, until `closed`. */
  async wait(): Promise<ExitStatus> {
    const { exitCode, signal } = await this.#record.waitExit();
    return { exitCode, signal };
  }

  /** Resolves when the process has exited and every stream has ended. */
  async closed(): Promise<void> {
    await this.#record.waitClosed();
  }
}

const encoder = new TextEncoder();

function toBytes(data: string | Uint8Array): Uint8Array {
  if (typeof data === 'string') return encoder.encode(data);
  if (data instanceof Uint8Array) return data;
  throw new ClientError('NOT_SUPPORTED', 'stdin takes strings and Uint8Array');
}
