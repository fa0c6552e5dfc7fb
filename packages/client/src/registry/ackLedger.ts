/** What was released and not acknowledged yet, and when an acknowledgement is due. Pure. */
import { limits } from '@exec-server/protocol';
import { lastSeqOf, type ProcessEvent, sizeOf } from '../events.js';

interface Entry {
  readonly seq: number;
  readonly bytes: number;
  /** Acknowledged at once: the server may let go of the process. */
  readonly urgent: boolean;
}

export class AckLedger {
  readonly #everyBytes: number;
  #entries: Entry[] = [];
  #head = 0;
  #consumedSeq: number;
  #sentSeq: number;
  #bytesSinceAck = 0;
  #eventsSinceAck = 0;

  constructor(afterSeq: number, everyBytes: number = limits.ACK_EVERY_BYTES) {
    this.#consumedSeq = afterSeq;
    this.#sentSeq = afterSeq;
    this.#everyBytes = everyBytes;
  }

  /** The highest seq that may be acknowledged. */
  get consumedSeq(): number {
    return this.#consumedSeq;
  }

  released(event: ProcessEvent): void {
    const urgent = event.type === 'exited' || event.type === 'closed';
    this.#entries.push({ seq: lastSeqOf(event), bytes: sizeOf(event), urgent });
  }

  /** Notes that everything up to `seq` was consumed; returns the seq to acknowledge now, if one is due. */
  consumed(seq: number): number | undefined {
    let due = false;
    for (
      let entry = this.#entries[this.#head];
      entry !== undefined && entry.seq <= seq;
      entry = this.#entries[this.#head]
    ) {
      this.#head += 1;
      this.#consumedSeq = entry.seq;
      this.#bytesSinceAck += entry.bytes;
      this.#eventsSinceAck += 1;
      due ||= entry.urgent;
    }
    if (this.#head === this.#entries.length) {
      this.#entries = [];
      this.#head = 0;
    } else if (this.#head >= 1024) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
    due ||= this.#bytesSinceAck >= this.#everyBytes || this.#eventsSinceAck >= limits.ACK_EVERY_EVENTS;
    return due ? this.take() : undefined;
  }

  /** The seq to acknowledge now, whether due or not; undefined when there is nothing new. */
  take(): number | undefined {
    if (this.#consumedSeq === this.#sentSeq || this.#consumedSeq === 0) return undefined;
    this.#sentSeq = this.#consumedSeq;
    this.#bytesSinceAck = 0;
    this.#eventsSinceAck = 0;
    return this.#sentSeq;
  }

  /** After a cut nobody knows which acknowledgements arrived; the next one says everything again. */
  forgetSent(): void {
    this.#sentSeq = -1;
  }
}
