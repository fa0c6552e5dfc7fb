/** Puts the events of one process into seq order and drops doubles; holds a bounded number behind a hole. Pure. */
import { limits } from '@exec-server/protocol';
import { clipGap, firstSeqOf, type GapEvent, lastSeqOf, type ProcessEvent, sizeOf } from '../events.js';

export type Accepted =
  /** In order: the event, and what waited behind it. */
  | { readonly kind: 'released'; readonly events: readonly ProcessEvent[] }
  /** Kept until the lower numbers have come. */
  | { readonly kind: 'held' }
  | { readonly kind: 'duplicate' }
  /** Dropped, since too much is held already; a read from the cursor brings it again. */
  | { readonly kind: 'overflow' };

export interface ReorderLimits {
  readonly events: number;
  readonly bytes: number;
}

const DEFAULT_LIMITS: ReorderLimits = { events: limits.REORDER_EVENTS, bytes: limits.REORDER_BYTES };

type SingleEvent = Exclude<ProcessEvent, GapEvent>;

export class Reorder {
  readonly #limits: ReorderLimits;
  readonly #held = new Map<number, SingleEvent>();
  #gaps: GapEvent[] = [];
  #heldBytes = 0;
  #last: number;
  #highest: number;
  #exitKnown = false;
  #closed = false;

  /** Begins after `afterSeq`: that event and earlier ones count as released. */
  constructor(afterSeq = 0, bounds: ReorderLimits = DEFAULT_LIMITS) {
    this.#last = afterSeq;
    this.#highest = afterSeq;
    this.#limits = bounds;
  }

  /** Seq of the last released event. */
  get last(): number {
    return this.#last;
  }

  /** Whether something is known to exist beyond a hole. */
  get hasHole(): boolean {
    return this.#highest > this.#last && !this.#closed;
  }

  /** Whether the exit event was released or is held. */
  get exitKnown(): boolean {
    return this.#exitKnown;
  }

  /** Notes that there are events up to `seq`, whether or not any of them has come. */
  expect(seq: number): void {
    this.#highest = Math.max(this.#highest, seq);
  }

  /** Events in memory, and their output bytes. */
  get heldEvents(): number {
    return this.#held.size + this.#gaps.length;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Ascending numbers of held events; a gap is not one of them. */
  heldSeqs(): number[] {
    return [...this.#held.keys()].sort((a, b) => a - b);
  }

  held(seq: number): SingleEvent | undefined {
    return this.#held.get(seq);
  }

  accept(event: ProcessEvent): Accepted {
    if (this.#closed || lastSeqOf(event) <= this.#last) return { kind: 'duplicate' };
    if (event.type !== 'gap' && this.#held.has(event.seq)) return { kind: 'duplicate' };
    this.#highest = Math.max(this.#highest, lastSeqOf(event));
    if (firstSeqOf(event) > this.#last + 1) {
      if (this.heldEvents >= this.#limits.events || this.#heldBytes + sizeOf(event) > this.#limits.bytes) {
        return { kind: 'overflow' };
      }
      this.#hold(event);
      return { kind: 'held' };
    }
    this.#hold(event);
    return { kind: 'released', events: this.#drain() };
  }

  #hold(event: ProcessEvent): void {
    if (event.type === 'gap') {
      this.#gaps.push(event);
      return;
    }
    if (event.type === 'exited') this.#exitKnown = true;
    this.#held.set(event.seq, event);
    this.#heldBytes += sizeOf(event);
  }

  #drain(): ProcessEvent[] {
    const released: ProcessEvent[] = [];
    for (let event = this.#takeNext(); event !== undefined; event = this.#takeNext()) {
      released.push(event);
      this.#last = lastSeqOf(event);
      if (event.type === 'closed') {
        this.#closed = true;
        this.#held.clear();
        this.#gaps = [];
        this.#heldBytes = 0;
        break;
      }
    }
    return released;
  }

  #takeNext(): ProcessEvent | undefined {
    const next = this.#last + 1;
    const event = this.#held.get(next);
    if (event !== undefined) {
      this.#held.delete(next);
      this.#heldBytes -= sizeOf(event);
      return event;
    }
    this.#gaps = this.#gaps.filter((gap) => gap.throughSeq >= next);
    const gap = this.#gaps.find((candidate) => candidate.fromSeq <= next);
    if (gap === undefined) return undefined;
    // What came before it was lost elsewhere is delivered: the gap is said around it.
    let end = gap.throughSeq;
    for (const seq of this.#held.keys()) if (seq > next && seq <= end) end = seq - 1;
    return clipGap(gap, next, end);
  }
}
