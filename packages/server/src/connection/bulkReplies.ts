/**
 * Large answers of one connection: made one after the other, and only while the transport has room, so that what waits to be
 * sent is bounded however many are asked for at a time.
 */
import { WireError } from '@exec-server/protocol';
import { Parked } from './parking.js';

export interface BulkRepliesHost {
  /** Whether the transport takes another answer now. */
  hasRoom(): boolean;
  /** Runs `action` when the answer has been handed to the transport, with this result or an error in its place. */
  afterReply(result: object, action: (sent: boolean) => void): void;
}

interface Waiting {
  readonly go: () => void;
  readonly fail: (error: WireError) => void;
}

export class BulkReplies {
  readonly #host: BulkRepliesHost;
  readonly #waiting: Waiting[] = [];
  /** An answer is being made, or on its way to the transport. */
  #busy = false;
  #ended = false;

  constructor(host: BulkRepliesHost) {
    this.#host = host;
  }

  /** Makes the answer in its turn; `sent` is called when it, and no error in its place, was handed to the transport. */
  make<T extends object>(build: () => T | Promise<T>, sent: (result: T) => void = () => {}): T | Parked<T> {
    if (this.#ended) throw over();
    if (!this.#busy && this.#waiting.length === 0 && this.#host.hasRoom()) {
      const made = this.#build(build, sent);
      return made instanceof Promise ? new Parked(made) : made;
    }
    return new Parked(
      new Promise<T>((resolve, reject) => {
        const go = (): void => {
          try {
            resolve(this.#build(build, sent));
          } catch (error) {
            reject(error);
          }
        };
        this.#waiting.push({ go, fail: reject });
      }),
    );
  }

  /** The transport may have room. */
  roomCame(): void {
    while (!this.#busy && this.#waiting.length > 0 && this.#host.hasRoom()) this.#waiting.shift()?.go();
  }

  /** Nobody takes answers any more; what waits fails. */
  end(): void {
    this.#ended = true;
    for (const { fail } of this.#waiting.splice(0)) fail(over());
  }

  #build<T extends object>(build: () => T | Promise<T>, sent: (result: T) => void): T | Promise<T> {
    this.#busy = true;
    const done = (): void => {
      this.#busy = false;
      this.roomCame();
    };
    const made = (result: T): T => {
      this.#host.afterReply(result, (wasSent) => {
        if (wasSent) sent(result);
        done();
      });
      return result;
    };
    const failed = (error: unknown): never => {
      done();
      throw error;
    };
    let result: T | Promise<T>;
    try {
      result = build();
    } catch (error) {
      return failed(error);
    }
    return result instanceof Promise ? result.then(made, failed) : made(result);
  }
}

function over(): WireError {
  return new WireError('sessionEnded', 'the connection ended before the answer was made');
}
