/** Output that a pump has fetched from the disk ahead of what it sent. */
import type { Seq } from '@exec-server/protocol';
import type { OutputEvent } from './eventLog.js';
import type { History } from './history.js';

/** Half of a client's credit: the next piece is fetched while the last one is on its way. */
const PIECE_BYTES = 512 * 1024;

export class Lookahead {
  readonly #history: History;
  readonly #ready: () => void;
  #events: readonly OutputEvent[] = [];
  #next = 0;
  #fetching = false;

  /** `ready`: there may be something to send now. */
  constructor(history: History, ready: () => void) {
    this.#history = history;
    this.#ready = ready;
  }

  /** Bytes fetched and not asked for yet. */
  get bytes(): number {
    let bytes = 0;
    for (let index = this.#next; index < this.#events.length; index += 1)
      bytes += this.#events[index]?.bytes.length ?? 0;
    return bytes;
  }

  /** The event, if it was fetched. Earlier ones are let go. */
  at(seq: Seq): OutputEvent | undefined {
    while ((this.#events[this.#next]?.seq ?? seq) < seq) this.#next += 1;
    const event = this.#events[this.#next];
    if (event === undefined) {
      this.#events = [];
      this.#next = 0;
    }
    return event?.seq === seq ? event : undefined;
  }

  /** Fetches what follows a cursor; one piece at a time. */
  fetch(afterSeq: Seq): void {
    if (this.#fetching) return;
    this.#fetching = true;
    // What the disk does not give back becomes a gap; `fetch` rejects for a fault of the server alone.
    void this.#history.fetch(afterSeq, PIECE_BYTES).then((events) => {
      this.#fetching = false;
      this.#events = events;
      this.#next = 0;
      this.#ready();
    });
  }
}
