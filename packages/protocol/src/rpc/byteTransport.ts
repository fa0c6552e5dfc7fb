/** Any byte duplex → Transport: one message a line. */
import { decodeUtf8, LineDecoder } from '../framing.js';
import type { CloseReason, Transport, TransportListener } from './transport.js';

/** The readable half, in the shape of a Node stream. */
export interface ByteSource {
  /** Bytes, in pieces of any size. */
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  /** The input is over (`end`), or there is none any more (`close`). */
  on(event: 'end' | 'close', listener: () => void): unknown;
  /** The input is lost. */
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** Holds bytes back. */
  pause(): unknown;
  /** Lets them come again. */
  resume(): unknown;
  /** Gives the input up. */
  destroy(): unknown;
}

/** The writable half, in the shape of a Node stream. */
export interface ByteSink {
  /** Bytes that were written and not taken yet. */
  readonly writableLength: number;
  /** Queues a piece; `done` when it was taken, or failed. */
  write(chunk: string | Uint8Array, done: (error?: Error | null) => void): unknown;
  /** Collects what is written until `uncork`, so that it leaves in one piece. */
  cork(): void;
  /** Lets what was collected go. */
  uncork(): void;
  /** Ends the output behind what was written; `done` when all of it was taken. */
  end(done: () => void): unknown;
  /** Gives the output up, with what was not taken. */
  destroy(): unknown;
  /** The output is lost. */
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** There is no output any more. */
  on(event: 'close', listener: () => void): unknown;
}

/** How {@link byteTransport} makes a transport. */
export interface ByteTransportOptions {
  /** {@link Transport.label}. */
  readonly label: string;
  /** Longest line in bytes; a longer one ends the transport as a `violation`. Default 64 MiB. */
  readonly maxMessageBytes?: number;
}

const LF = new Uint8Array([0x0a]);

/**
 * A transport of one message a line over the two halves of a pipe, a socket or a terminal. The end of the input is told
 * by `ended`; the output stays open until the listener closes. A line that is too long or not UTF-8 ends it as a
 * `violation`.
 *
 * @example
 * ```ts
 * const transport = byteTransport(process.stdin, process.stdout, { label: 'stdio' });
 * ```
 */
export function byteTransport(source: ByteSource, sink: ByteSink, options: ByteTransportOptions): Transport {
  return new ByteTransport(source, sink, options);
}

class ByteTransport implements Transport {
  readonly label: string;
  readonly #source: ByteSource;
  readonly #sink: ByteSink;
  readonly #decoder: LineDecoder;
  #listener: TransportListener | undefined;
  #corked = false;
  #closing = false;
  #closed = false;
  #paused = false;
  /** Lines that were decoded while paused. */
  #held: string[] = [];
  #inputEnded = false;
  /** Messages given to the sink, and those of them it has written. */
  #sent = 0;
  #written = 0;
  #waiting: { readonly sent: number; readonly arrived: () => void }[] = [];

  constructor(source: ByteSource, sink: ByteSink, options: ByteTransportOptions) {
    this.label = options.label;
    this.#source = source;
    this.#sink = sink;
    this.#decoder = new LineDecoder(options.maxMessageBytes);
  }

  get queuedBytes(): number {
    return this.#sink.writableLength;
  }

  start(listener: TransportListener): void {
    this.#listener = listener;
    this.#sink.on('error', (error) => this.#finish({ kind: 'cut', detail: error.message }));
    this.#sink.on('close', () => this.#finish({ kind: 'cut', detail: 'the output was closed' }));
    this.#source.on('error', (error) => this.#finish({ kind: 'cut', detail: error.message }));
    this.#source.on('end', () => {
      this.#lines(this.#decoder.end());
      this.#inputEnded = true;
      this.#tellEnd();
    });
    this.#source.on('close', () => {
      if (!this.#inputEnded) this.#finish({ kind: 'cut', detail: 'the input was closed' });
    });
    this.#source.on('data', (chunk) => this.#lines(this.#decoder.push(chunk)));
  }

  send(message: string | Uint8Array): void {
    if (this.#closed || this.#closing) return;
    if (!this.#corked) {
      this.#corked = true;
      this.#sink.cork();
      queueMicrotask(() => {
        this.#corked = false;
        this.#sink.uncork();
      });
    }
    // An error arrives at the sink's listener as well, which ends the transport.
    this.#sent += 1;
    const done = (error?: Error | null): void => {
      if (error === undefined || error === null) this.#wrote();
    };
    if (typeof message === 'string') {
      this.#sink.write(`${message}\n`, done);
    } else {
      this.#sink.write(message, () => {});
      this.#sink.write(LF, done);
    }
  }

  /** Written is all that can be known of a pipe. */
  confirm(arrived: () => void): void {
    if (this.#closed) return;
    this.#waiting.push({ sent: this.#sent, arrived });
    if (this.#written === this.#sent) queueMicrotask(() => this.#tellArrived());
  }

  pause(): void {
    this.#paused = true;
    this.#source.pause();
  }

  resume(): void {
    this.#paused = false;
    const held = this.#held;
    this.#held = [];
    for (const [index, line] of held.entries()) {
      if (this.#paused) {
        this.#held.push(...held.slice(index));
        return;
      }
      this.#listener?.message(line);
    }
    if (this.#inputEnded) this.#tellEnd();
    else this.#source.resume();
  }

  close(reason: CloseReason = { kind: 'closed', detail: 'closed here' }): void {
    if (this.#closing || this.#closed) return;
    this.#closing = true;
    this.#sink.end(() => this.#finish(reason));
  }

  abort(reason: CloseReason = { kind: 'closed', detail: 'aborted here' }): void {
    this.#finish(reason);
  }

  #lines(results: ReturnType<LineDecoder['push']>): void {
    for (const result of results) {
      if (this.#closed) return;
      if (result.kind === 'tooLong') {
        this.#finish({ kind: 'violation', detail: `a line is longer than ${result.limitBytes} bytes` });
        return;
      }
      const text = decodeUtf8(result.line);
      if (text === undefined) {
        this.#finish({ kind: 'violation', detail: 'a line is not UTF-8' });
        return;
      }
      if (this.#paused) this.#held.push(text);
      else this.#listener?.message(text);
    }
  }

  #wrote(): void {
    this.#written += 1;
    this.#listener?.drained();
    this.#tellArrived();
  }

  #tellArrived(): void {
    while (!this.#closed && (this.#waiting[0]?.sent ?? Number.POSITIVE_INFINITY) <= this.#written) {
      this.#waiting.shift()?.arrived();
    }
  }

  #tellEnd(): void {
    if (!this.#paused && !this.#closed) this.#listener?.ended();
  }

  #finish(reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#source.destroy();
    this.#sink.destroy();
    this.#listener?.closed(reason);
  }
}
