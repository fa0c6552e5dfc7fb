/** The newest released events of one process, bounded in bytes; consumers are positions in it. Pure. */
import { clipGap, firstSeqOf, lastSeqOf, type ProcessEvent, sizeOf } from '../events.js';

/** Bookkeeping of one event, counted on top of its output bytes. */
const EVENT_COST_BYTES = 128;
/** Dropped entries at the front of the array that are worth moving the rest. */
const COMPACT_AT = 1024;

export type Lookup =
  | { readonly kind: 'event'; readonly event: ProcessEvent }
  /** The event after the cursor is no longer here; `firstSeq` is the first that is. */
  | { readonly kind: 'evicted'; readonly firstSeq: number }
  /** Nothing after the cursor was released yet. */
  | { readonly kind: 'end' };

export class EventTail {
  readonly #maxBytes: number;
  #events: (ProcessEvent | undefined)[] = [];
  /** Entries before it are dropped. */
  #head = 0;
  #bytes = 0;
  /** First seq that is still here. */
  #firstSeq: number;
  #lastSeq: number;

  constructor(afterSeq: number, maxBytes: number) {
    this.#firstSeq = afterSeq + 1;
    this.#lastSeq = afterSeq;
    this.#maxBytes = maxBytes;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  get bytes(): number {
    return this.#bytes;
  }

  append(event: ProcessEvent): void {
    this.#events.push(event);
    this.#lastSeq = lastSeqOf(event);
    this.#bytes += sizeOf(event) + EVENT_COST_BYTES;
    while (this.#bytes > this.#maxBytes && this.#events.length - this.#head > 1) this.#evictFirst();
  }

  /** The event that follows `cursor`. */
  after(cursor: number): Lookup {
    if (cursor >= this.#lastSeq) return { kind: 'end' };
    if (cursor + 1 < this.#firstSeq) return { kind: 'evicted', firstSeq: this.#firstSeq };
    const event = this.#events[this.#indexAfter(cursor)];
    if (event === undefined) return { kind: 'end' };
    if (event.type !== 'gap') return { kind: 'event', event };
    return { kind: 'event', event: clipGap(event, cursor + 1, event.throughSeq) ?? event };
  }

  #evictFirst(): void {
    const event = this.#events[this.#head];
    if (event === undefined) return;
    // The slot stays until the array is compacted; the bytes must not.
    this.#events[this.#head] = undefined;
    this.#head += 1;
    this.#bytes -= sizeOf(event) + EVENT_COST_BYTES;
    this.#firstSeq = lastSeqOf(event) + 1;
    if (this.#head >= COMPACT_AT && this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head);
      this.#head = 0;
    }
  }

  #indexAfter(cursor: number): number {
    // Without gaps in it, seqs are indexes; that guess is right nearly always.
    const guess = this.#head + (cursor + 1 - this.#firstSeq);
    const guessed = this.#events[guess];
    if (guessed !== undefined && firstSeqOf(guessed) === cursor + 1) return guess;
    let low = this.#head;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const event = this.#events[middle];
      if (event !== undefined && lastSeqOf(event) > cursor) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
