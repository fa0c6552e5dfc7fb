/** A streamed body on its way to the client: one message after the other, in line with the output of processes. */
import type { Buffer } from 'node:buffer';
import { encodeBase64, limits } from '@exec-server/protocol';
import type { FrameSource } from '../connection/outbox.js';
import type { ResponseBody } from './responseBody.js';

export interface BodyStreamHost {
  /** The stream may have a message. */
  ready(stream: BodyStream): void;
  /** The last message is made. */
  over(): void;
}

/** What the last delta of a body says that is not whole. */
export const BODY_CUT = 'error decoding response body';

export class BodyStream implements FrameSource {
  readonly #body: ResponseBody;
  readonly #host: BodyStreamHost;
  /** Begins every message. */
  readonly #head: string;
  #seq = 0;
  #over = false;

  constructor(requestId: string, body: ResponseBody, host: BodyStreamHost) {
    this.#body = body;
    this.#host = host;
    this.#head = `{"method":"http/request/bodyDelta","params":{"requestId":${JSON.stringify(requestId)},"seq":`;
  }

  /** Messages may go out: the answer has. */
  start(): void {
    const ready = (): void => this.#host.ready(this);
    // The first look asks for what there is; nothing is read from the http server before it beyond what is read ahead.
    this.#body.stream.on('readable', ready).once('close', ready);
    ready();
  }

  next(): string | undefined {
    if (this.#over) return undefined;
    const bytes = this.#take();
    if (bytes !== null) return this.#message(encodeBase64(bytes), null, false);
    if (!this.#body.stream.closed) return undefined;
    this.#over = true;
    this.#host.over();
    return this.#message('', this.#body.failure() === undefined ? null : BODY_CUT, true);
  }

  #take(): Buffer | null {
    const { stream } = this.#body;
    const size = Math.min(stream.readableLength, limits.MAX_HTTP_DELTA_BYTES);
    // The stream is one of bytes; without a size it says that nothing is there, and tells when there is.
    return (size === 0 ? stream.read() : stream.read(size)) as Buffer | null;
  }

  #message(deltaBase64: string, error: string | null, done: boolean): string {
    this.#seq += 1;
    return `${this.#head}${this.#seq},"deltaBase64":"${deltaBase64}","done":${done},"error":${JSON.stringify(error)}}}`;
  }
}
