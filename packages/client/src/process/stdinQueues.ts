/** The stdin queues of a client: names its writes and knows how much waits in them. */
import type { Calls } from '../calls.js';
import { StdinQueue } from './stdinQueue.js';

export class StdinQueues {
  readonly #calls: Calls;
  /** Write ids are unique over all clients of a process. */
  readonly #tag = crypto.getRandomValues(new Uint32Array(2)).join('-');
  /** Queues with something in them; the others belong to their handles alone. */
  readonly #busy = new Set<StdinQueue>();
  #writes = 0;

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
      busy: (queue) => this.#busy.add(queue),
      idle: (queue) => this.#busy.delete(queue),
    });
  }
}
