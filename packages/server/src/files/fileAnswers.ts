/**
 * When file answers of one connection are made: small ones side by side, large ones one after the other while the transport has
 * room. Nothing that holds a place on the disk waits for the transport, so a client that does not read stops only itself.
 */
import { limits, WireError } from '@exec-server/protocol';
import PQueue from 'p-queue';
import type { BulkReplies } from '../connection/bulkReplies.js';
import { Parked } from '../connection/parking.js';

/**
 * Makes an answer. With `small` it gives undefined, and leaves nothing open, where the answer would be large or long to make;
 * it is called again without when its turn has come.
 */
export type Attempt<T extends object> = (small: boolean) => Promise<T | undefined>;

export interface FileAnswersHost {
  readonly bulk: BulkReplies;
  /** Whether so much waits to be sent that even small answers have to wait their turn. */
  readonly isFull: () => boolean;
  /** Whether nobody takes answers any more. */
  readonly isOver: () => boolean;
}

export class FileAnswers {
  readonly #host: FileAnswersHost;
  /** Places on the disk. */
  readonly #disk = new PQueue({ concurrency: limits.CONCURRENT_FILE_REQUESTS });
  /** One large collection at a time, until it is handed to the transport: it is in memory meanwhile. */
  readonly #collecting = new PQueue({ concurrency: 1 });

  constructor(host: FileAnswersHost) {
    this.#host = host;
  }

  /** Runs `action` within the bound of work on the disk. It must not wait for an answer of this connection. */
  onDisk<T>(action: () => Promise<T>): Promise<T> {
    return this.#disk.add(action);
  }

  /** Throws when nobody takes answers any more; for work that takes long. */
  checkpoint(): void {
    if (this.#host.isOver()) throw new WireError('sessionEnded', 'the connection ended before the answer was made');
  }

  /** An answer that is large because of the bytes in it: they are fetched when the transport has room for them. */
  async read<T extends object>(attempt: Attempt<T>): Promise<T> {
    return (await this.#small(attempt)) ?? this.#inTurn(() => this.#large(attempt));
  }

  /** An answer that takes long to collect: that happens before its turn, so that large reads do not wait for it. */
  async collect<T extends object>(attempt: Attempt<T>): Promise<T> {
    const small = await this.#small(attempt);
    if (small !== undefined) return small;
    return this.#collecting.add(async () => {
      const collected = await this.#large(attempt);
      return this.#inTurn(() => collected);
    });
  }

  #small<T extends object>(attempt: Attempt<T>): Promise<T | undefined> {
    // Looked at when the place has come: thousands may have waited for one.
    return this.onDisk(async () => {
      this.checkpoint();
      return this.#host.isFull() ? undefined : attempt(true);
    });
  }

  async #large<T extends object>(attempt: Attempt<T>): Promise<T> {
    const answer = await this.onDisk(async () => {
      this.checkpoint();
      return attempt(false);
    });
    if (answer === undefined) throw new Error('an attempt that may be large made no answer');
    return answer;
  }

  async #inTurn<T extends object>(build: () => T | Promise<T>): Promise<T> {
    let made: T | Parked<T> = this.#host.bulk.make(build);
    while (made instanceof Parked) made = await made.answer;
    return made;
  }
}
