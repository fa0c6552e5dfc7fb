/** The body of one http response on its way to its reader: numbered deltas in, a stream out. */
import { ClientError } from '../errors.js';

/** What a notification says of a body. */
export interface BodyDelta {
  readonly requestId: string;
  readonly seq: number;
  readonly bytes: Uint8Array;
  readonly done: boolean;
  /** On the last one: why the body is not whole. */
  readonly error?: string;
}

export interface ResponseRecordHost {
  /** Bytes came in (positive), or were taken or dropped (negative). */
  queued(bytes: number): void;
  /** Nothing of it is to come any more. */
  over(): void;
}

/** What a piece takes besides its bytes: a host may send them one by one. */
const PIECE_OVERHEAD_BYTES = 128;

export class ResponseRecord {
  readonly body: ReadableStream<Uint8Array>;
  readonly #host: ResponseRecordHost;
  readonly #chunks: Uint8Array[] = [];
  #lastSeq = 0;
  #queuedBytes = 0;
  #end: { readonly error?: ClientError } | undefined;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** The reader waits for a chunk. */
  #wake: () => void = () => {};

  constructor(host: ResponseRecordHost) {
    this.#host = host;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: (controller) => this.#pull(controller),
        cancel: () => this.fail(new ClientError('ABORTED', 'the reader of the http response wants no more of it')),
      },
      // Bytes wait here, where they are counted.
      { highWaterMark: 0 },
    );
  }

  /** What waits for the reader, with what it takes besides. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Whether somebody reads the body. */
  get isRead(): boolean {
    return this.body.locked;
  }

  accept({ seq, bytes, done, error }: BodyDelta): void {
    if (this.#end !== undefined) return;
    if (seq !== this.#lastSeq + 1) {
      const message = `the body of the http response has a hole: delta ${seq} came behind ${this.#lastSeq}`;
      this.fail(new ClientError('HTTP_FAILED', message, { method: 'http/request', reason: 'hole' }));
      return;
    }
    this.#lastSeq = seq;
    if (bytes.length > 0) {
      this.#chunks.push(bytes);
      this.#queue(bytes.length + PIECE_OVERHEAD_BYTES);
    }
    if (done) this.#finish(error === undefined ? {} : { error: cutShort(error) });
    this.#wake();
  }

  /** Ends it at once: what waits for the reader is dropped, and it gets the error. */
  fail(error: ClientError): void {
    const dropped = this.#chunks.splice(0).length;
    if (dropped > 0) this.#queue(-this.#queuedBytes);
    else if (this.#end !== undefined) return;
    this.#finish({ error });
    this.#controller?.error(error);
    this.#wake();
  }

  #finish(end: { readonly error?: ClientError }): void {
    const isFirst = this.#end === undefined;
    this.#end = end;
    if (isFirst) this.#host.over();
  }

  #queue(bytes: number): void {
    this.#queuedBytes += bytes;
    this.#host.queued(bytes);
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (this.#chunks.length === 0 && this.#end === undefined) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = () => {};
    }
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) {
      this.#queue(-chunk.length - PIECE_OVERHEAD_BYTES);
      controller.enqueue(chunk);
    } else if (this.#end?.error === undefined) {
      controller.close();
    } else {
      controller.error(this.#end.error);
    }
  }
}

function cutShort(text: string): ClientError {
  const message = `the body of the http response is not whole (${text}); what came of it was delivered`;
  return new ClientError('HTTP_FAILED', message, { method: 'http/request', reason: 'httpFailed' });
}
