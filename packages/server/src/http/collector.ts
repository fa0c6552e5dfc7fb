/** A whole body in memory, bounded: what fits a small answer at once, the rest in its turn. */
import { Buffer } from 'node:buffer';
import { limits, WireError } from '@exec-server/protocol';
import type { ResponseBody } from './responseBody.js';

export class Collector {
  readonly #body: ResponseBody;
  readonly #chunks: AsyncIterator<Buffer, undefined>;
  #bytes = Buffer.alloc(0);
  #length = 0;
  #ended = false;

  constructor(body: ResponseBody) {
    this.#body = body;
    // What fails here is told by `failure` of the body.
    body.stream.on('error', () => {});
    this.#chunks = body.stream.iterator({ destroyOnReturn: false });
  }

  /** Reads until more than SMALL_FILE_BYTES are there, or to the end. Whether it is the whole body. */
  async readSmall(): Promise<boolean> {
    await this.#readPast(limits.SMALL_FILE_BYTES);
    return this.#ended;
  }

  /** Reads to the end. Rejects with WireError `replyTooLarge`, having ended the http connection. */
  async readAll(): Promise<void> {
    const limitBytes = limits.MAX_READ_FILE_BYTES;
    await this.#readPast(limitBytes);
    if (this.#length <= limitBytes) return;
    this.#body.cancel();
    const message = `the body of the http response has more than ${limitBytes} bytes; ask for it with streamResponse`;
    throw new WireError('replyTooLarge', message, { limitBytes });
  }

  /** What was read. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  async #readPast(bytes: number): Promise<void> {
    while (!this.#ended && this.#length <= bytes) {
      const chunk = await this.#next();
      if (chunk === undefined) this.#ended = true;
      else this.#append(chunk);
    }
  }

  async #next(): Promise<Buffer | undefined> {
    try {
      return (await this.#chunks.next()).value;
    } catch {
      // `failure` of the body has it.
      return undefined;
    }
  }

  /** Grows by doubling: a body may come in millions of pieces. */
  #append(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    chunk.copy(this.#bytes, this.#length);
    this.#length = needed;
  }
}
