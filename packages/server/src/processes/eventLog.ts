/**
 * One process's events: allocates seqs, keeps the retained window and says exactly what left it. Pure.
 *
 * Output leaves the window from its old end; `exited` and `closed` never do.
 */
import type { CloseReasonName, ExitReason, Seq, StreamName } from '@exec-server/protocol';

export interface ProcessExit {
  /** 128 + n for a death by signal n. */
  readonly exitCode: number;
  readonly signal: string | undefined;
  readonly reason: ExitReason;
}

export interface CloseSummary {
  readonly reason: CloseReasonName;
  /** Processes that hold the streams open; undefined where that is not known, and when all have ended. */
  readonly holders: number | undefined;
}

export interface OutputEvent {
  readonly kind: 'output';
  readonly seq: Seq;
  readonly stream: StreamName;
  readonly bytes: Uint8Array;
  /** Output bytes of this process, all streams together, before this event. */
  readonly offset: number;
}
export interface ExitedEvent extends ProcessExit {
  readonly kind: 'exited';
  readonly seq: Seq;
}
export interface ClosedEvent extends CloseSummary {
  readonly kind: 'closed';
  readonly seq: Seq;
}
export type LogEvent = OutputEvent | ExitedEvent | ClosedEvent;

export interface LogLimits {
  readonly bytes: number;
  readonly chunks: number;
}

/** A range of events that is no longer held, and the output bytes in it where they are known. */
export interface LogGap {
  readonly fromSeq: Seq;
  readonly throughSeq: Seq;
  readonly bytes: number | undefined;
}

export interface LogRead {
  readonly chunks: readonly OutputEvent[];
  /** The last seq this read speaks for; everything up to it is in `chunks`, in `gap`, or is `exited` or `closed`. */
  readonly throughSeq: Seq;
  /** Whether the budget ended the read before the end of the log. */
  readonly cut: boolean;
  readonly gap: LogGap | undefined;
}

export interface ReadBudget {
  readonly maxBytes: number;
  readonly maxChunks: number;
  /** Bytes and what the chunks cost besides them. Default: no limit. */
  readonly maxWeight?: number;
}

/** What a chunk costs in a message besides its bytes, in bytes before base64: its braces, names, seq and padding. */
const CHUNK_WEIGHT = 40;

/** What an event costs in memory besides its bytes: the object, its slot, the view over its bytes. */
const EVENT_COST_BYTES = 128;

/** Positions remembered for evicted events, so that a gap can be told in bytes: the newest, eight bytes each. */
const REMEMBERED_POSITIONS = 16_384;

export class EventLog {
  readonly #limits: LogLimits;
  readonly #onEvicted: (event: LogEvent) => void;
  /** Events by seq without holes: `#events[#head]` has seq `#firstSeq`. Below the head nothing is held. */
  #events: (LogEvent | undefined)[] = [];
  #head = 0;
  #firstSeq: Seq = 1;
  #chunks = 0;
  #retainedBytes = 0;
  #totalBytes = 0;
  #exited: ExitedEvent | undefined;
  #closed: ClosedEvent | undefined;
  /** `#positions[i]` is the number of output bytes through seq `#positionsFrom + i`; these events were evicted. */
  #positions: number[] = [];
  #positionsFrom: Seq = 1;

  /** `evicted` is called with each event that leaves the window, in order. */
  constructor(limits: LogLimits, evicted: (event: LogEvent) => void = () => {}) {
    this.#limits = limits;
    this.#onEvicted = evicted;
  }

  get nextSeq(): Seq {
    return this.#firstSeq + this.#events.length - this.#head;
  }
  /** Output bytes ever appended. */
  get totalBytes(): number {
    return this.#totalBytes;
  }
  get retainedBytes(): number {
    return this.#retainedBytes;
  }
  /** What the output that is held takes in memory, tiny chunks included. */
  get weightBytes(): number {
    return this.#retainedBytes + this.#chunks * EVENT_COST_BYTES;
  }
  get exited(): ExitedEvent | undefined {
    return this.#exited;
  }
  get closed(): ClosedEvent | undefined {
    return this.#closed;
  }
  /** All events from this seq on are held. */
  get firstRetainedSeq(): Seq {
    return this.#firstSeq;
  }

  appendOutput(stream: StreamName, bytes: Uint8Array): OutputEvent {
    const event: OutputEvent = { kind: 'output', seq: this.nextSeq, stream, bytes, offset: this.#totalBytes };
    this.#events.push(event);
    this.#chunks += 1;
    this.#totalBytes += bytes.length;
    this.#retainedBytes += bytes.length;
    while (this.#retainedBytes > this.#limits.bytes || this.#chunks > this.#limits.chunks) this.#evictFirst();
    return event;
  }

  /** Lets go of the oldest output until no more than this is held, and of nothing behind `throughSeq`. */
  shrinkTo(weightBytes: number, throughSeq = Number.POSITIVE_INFINITY): void {
    while (this.#chunks > 0 && this.weightBytes > weightBytes && this.#firstSeq <= throughSeq) this.#evictFirst();
  }

  appendExited(exit: ProcessExit): ExitedEvent {
    const event: ExitedEvent = { kind: 'exited', seq: this.nextSeq, ...exit };
    this.#events.push(event);
    this.#exited = event;
    return event;
  }

  appendClosed(summary: CloseSummary): ClosedEvent {
    const event: ClosedEvent = { kind: 'closed', seq: this.nextSeq, ...summary };
    this.#events.push(event);
    this.#closed = event;
    return event;
  }

  /** The event of this seq; undefined when it is not there yet or no longer held. */
  at(seq: Seq): LogEvent | undefined {
    if (seq >= this.#firstSeq) return this.#events[this.#head + seq - this.#firstSeq];
    return seq === this.#exited?.seq ? this.#exited : undefined;
  }

  /** Output bytes in the events up to and including this seq; undefined where it is no longer known. */
  bytesThrough(seq: Seq): number | undefined {
    if (seq <= 0) return 0;
    if (seq >= this.nextSeq - 1) return this.#totalBytes;
    if (seq >= this.#firstSeq - 1) return this.#offsetOf(seq + 1);
    return this.#positions[seq - this.#positionsFrom];
  }

  /**
   * The first range of lost events behind a cursor; undefined when nothing is missing. It ends before the next event that is
   * held, which is the exit where output was lost on both sides of it.
   */
  gapAfter(afterSeq: Seq): LogGap | undefined {
    const exitedSeq = this.#exited?.seq ?? 0;
    const fromSeq = afterSeq + 1 === exitedSeq ? exitedSeq + 1 : afterSeq + 1;
    if (fromSeq >= this.#firstSeq) return undefined;
    const throughSeq = exitedSeq > fromSeq && exitedSeq < this.#firstSeq ? exitedSeq - 1 : this.#firstSeq - 1;
    const before = this.bytesThrough(fromSeq - 1);
    const after = this.bytesThrough(throughSeq);
    return { fromSeq, throughSeq, bytes: before === undefined || after === undefined ? undefined : after - before };
  }

  /**
   * Events after a cursor: whole chunks within the budget, at least one when there is one. Costs what it returns. The exit is
   * not among the chunks; where output was lost on both sides of it, `gap` is the first of the two ranges.
   */
  read(afterSeq: Seq, { maxBytes, maxChunks, maxWeight = Number.POSITIVE_INFINITY }: ReadBudget): LogRead {
    const gap = this.gapAfter(afterSeq);
    const end = this.nextSeq - 1;
    const chunks: OutputEvent[] = [];
    let bytes = 0;
    let seq = Math.max(afterSeq, this.#firstSeq - 1);
    while (seq < end) {
      const event = this.#events[this.#head + seq + 1 - this.#firstSeq];
      if (event?.kind === 'output') {
        const fits =
          bytes + event.bytes.length <= maxBytes &&
          chunks.length < maxChunks &&
          bytes + event.bytes.length + CHUNK_WEIGHT * (chunks.length + 1) <= maxWeight;
        if (!fits && chunks.length > 0) return { chunks, throughSeq: seq, cut: true, gap };
        chunks.push(event);
        bytes += event.bytes.length;
      }
      seq += 1;
    }
    return { chunks, throughSeq: Math.max(seq, end), cut: false, gap };
  }

  #offsetOf(seq: Seq): number {
    for (let index = this.#head + seq - this.#firstSeq; index < this.#events.length; index += 1) {
      const event = this.#events[index];
      if (event?.kind === 'output') return event.offset;
    }
    return this.#totalBytes;
  }

  #evictFirst(): void {
    const event = this.#events[this.#head];
    if (event === undefined) return;
    // The slot stays until the array is compacted; the bytes must not.
    this.#events[this.#head] = undefined;
    this.#head += 1;
    this.#firstSeq += 1;
    if (event.kind === 'output') {
      this.#chunks -= 1;
      this.#retainedBytes -= event.bytes.length;
    }
    if (this.#positions.length >= REMEMBERED_POSITIONS * 2) {
      this.#positions.splice(0, REMEMBERED_POSITIONS);
      this.#positionsFrom += REMEMBERED_POSITIONS;
    }
    this.#positions.push(this.#offsetOf(this.#firstSeq));
    if (this.#head >= 1024 && this.#head * 2 >= this.#events.length) {
      this.#events.splice(0, this.#head);
      this.#head = 0;
    }
    this.#onEvicted(event);
  }
}
