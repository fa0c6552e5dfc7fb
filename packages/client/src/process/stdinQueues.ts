/** The stdin queues of a client: names its writes and knows how much waits in them. */
import { limits } from '@exec-server/protocol';
import type { Calls } from '../calls.js';
import { StdinQueue } from './stdinQueue.js';

/** Bytes of one `process/write`; small enough to share a connection with output, large enough to be rare. */
export const PIECE_BYTES = 256 * 1024;
/** However many processes leave their stdin unread, the writes that wait at the server fit what it lets be unanswered. */
const LEAST_PIECE_BYTES = 2 * 1024;
const ON_THE_WAY_BYTES = limits.PENDING_REQUEST_BYTES / 4;

export class StdinQueues {
  readonly #calls: Calls;
  /** Write ids are unique over all clients of a process. */
  readonly #tag = crypto.getRandomValues(new Uint32Array(2)).join('-');
  /** Queues with something in them; the others belong to their handles alone. */
  readonly #busy = new Set<StdinQueue>();
  #writes = 0;
  #onTheWayBytes = 0;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  get queuedBytes(): number {
    let bytes = 0;
    for (const queue of this.#busy) bytes += queue.queuedBytes;
    return bytes;
  }

  make(processId: string): StdinQueue {
    return new StdinQueue(processId, this.#calls, {
      nextWriteId: () => `${this.#tag}-${(this.#writes += 1)}`,
      pieceBytes: () => this.#pieceBytes(),
      onTheWay: (bytes) => (this.#onTheWayBytes += bytes),
      busy: (queue) => this.#busy.add(queue),
      idle: (queue) => this.#busy.delete(queue),
    });
  }

  /** The more is on the way, the less: writes to processes that do not read must leave room for every other call. */
  #pieceBytes(): number {
    const share = Math.floor((ON_THE_WAY_BYTES - this.#onTheWayBytes) / (ON_THE_WAY_BYTES / PIECE_BYTES));
    return Math.min(PIECE_BYTES, Math.max(LEAST_PIECE_BYTES, share));
  }
}
