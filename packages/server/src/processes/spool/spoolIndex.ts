/**
 * Where the events of one process lie in its spool: contiguous seqs over contiguous byte positions. Pure.
 *
 * Positions only grow; segment `n` holds `[n * segmentBytes, (n + 1) * segmentBytes)`, and a chunk may lie across two. Four
 * bytes and a quarter an event.
 */
import type { Seq, StreamName } from '@exec-server/protocol';

/** Where an event lies; `stream` is undefined for one without bytes, which is an exit or a close. */
export interface SpoolPlace {
  readonly seq: Seq;
  readonly position: number;
  readonly length: number;
  readonly stream: StreamName | undefined;
}

/** Events that left the spool, and the output bytes in them. */
export interface DroppedRange {
  readonly fromSeq: Seq;
  readonly throughSeq: Seq;
  readonly bytes: number;
}

/** An entry is a length in the low bits and an index into `KINDS` above them. */
const LENGTH_BITS = 29;
const LENGTH_MASK = 2 ** LENGTH_BITS - 1;
/** One byte less than 512 MiB. */
export const MAX_SPOOLED_CHUNK_BYTES = LENGTH_MASK;
const KINDS: readonly (StreamName | undefined)[] = ['stdout', 'stderr', 'pty', undefined];

const BLOCK_EVENTS = 1024;
/** A lookup adds up at most this many lengths. */
const MARK_EVENTS = 32;

interface Block {
  readonly entries: Uint32Array;
  /** Position of each `MARK_EVENTS`th event. */
  readonly marks: Float64Array;
}

export class SpoolIndex {
  readonly #segmentBytes: number;
  /** Seq of the first entry of `#blocks[#head]` is `#blocksFrom`; below the head nothing is held. */
  #blocks: (Block | undefined)[] = [];
  #head = 0;
  #blocksFrom: Seq = 1;
  #firstSeq: Seq = 1;
  #endSeq: Seq = 1;
  #firstPosition = 0;
  #endPosition = 0;

  constructor(segmentBytes: number) {
    this.#segmentBytes = segmentBytes;
  }

  get firstSeq(): Seq {
    return this.#firstSeq;
  }
  get endSeq(): Seq {
    return this.#endSeq;
  }
  /** Bytes below this position are no longer held. */
  get firstPosition(): number {
    return this.#firstPosition;
  }
  /** Where the next event's bytes begin. */
  get endPosition(): number {
    return this.#endPosition;
  }
  get bytes(): number {
    return this.#endPosition - this.#firstPosition;
  }
  get events(): number {
    return this.#endSeq - this.#firstSeq;
  }

  /** `seq` is `endSeq`; an empty index takes any. */
  append(seq: Seq, stream: StreamName | undefined, length: number): void {
    if (length > MAX_SPOOLED_CHUNK_BYTES) throw new RangeError(`a chunk of ${length} bytes is too long to be spooled`);
    if (this.events === 0) this.#startAt(seq);
    if (seq !== this.#endSeq) throw new RangeError(`event ${seq} does not follow event ${this.#endSeq - 1}`);
    const index = seq - this.#blocksFrom;
    const at = index % BLOCK_EVENTS;
    if (at === 0) {
      this.#blocks.push({
        entries: new Uint32Array(BLOCK_EVENTS),
        marks: new Float64Array(BLOCK_EVENTS / MARK_EVENTS),
      });
    }
    const block = this.#blockAt(index);
    if (at % MARK_EVENTS === 0) block.marks[at / MARK_EVENTS] = this.#endPosition;
    block.entries[at] = KINDS.indexOf(stream) * 2 ** LENGTH_BITS + length;
    this.#endSeq += 1;
    this.#endPosition += length;
  }

  at(seq: Seq): SpoolPlace | undefined {
    if (seq < this.#firstSeq || seq >= this.#endSeq) return undefined;
    return this.#place(seq, this.positionOf(seq));
  }

  /** Position at which the bytes of this event begin, for `[firstSeq, endSeq]`. */
  positionOf(seq: Seq): number {
    if (seq < this.#firstSeq || seq > this.#endSeq) throw new RangeError(`event ${seq} is not in the spool`);
    if (seq === this.#endSeq) return this.#endPosition;
    const index = seq - this.#blocksFrom;
    const { entries, marks } = this.#blockAt(index);
    const at = index % BLOCK_EVENTS;
    const mark = Math.floor(at / MARK_EVENTS);
    let position = marks[mark] ?? 0;
    for (let i = mark * MARK_EVENTS; i < at; i += 1) position += (entries[i] ?? 0) & LENGTH_MASK;
    return position;
  }

  /** Output after a cursor, at least one chunk when there is one. Costs what it returns. */
  chunksAfter(afterSeq: Seq, maxBytes: number, maxChunks: number): SpoolPlace[] {
    const places: SpoolPlace[] = [];
    let seq = Math.max(afterSeq + 1, this.#firstSeq);
    if (seq >= this.#endSeq) return places;
    const start = this.positionOf(seq);
    for (let position = start; seq < this.#endSeq; seq += 1) {
      const place = this.#place(seq, position);
      position += place.length;
      if (place.stream === undefined) continue;
      if (places.length > 0 && (position - start > maxBytes || places.length >= maxChunks)) break;
      places.push(place);
    }
    return places;
  }

  /** Forgets events up to this seq; undefined when none of them is held. What is emptied goes on with a new segment. */
  dropThrough(seq: Seq): DroppedRange | undefined {
    const throughSeq = Math.min(seq, this.#endSeq - 1);
    if (throughSeq < this.#firstSeq) return undefined;
    const position = this.positionOf(throughSeq + 1);
    const dropped = { fromSeq: this.#firstSeq, throughSeq, bytes: position - this.#firstPosition };
    this.#firstSeq = throughSeq + 1;
    this.#firstPosition = position;
    if (this.#firstSeq === this.#endSeq) this.#emptied();
    else this.#freeBlocks();
    return dropped;
  }

  #startAt(seq: Seq): void {
    this.#firstSeq = seq;
    this.#endSeq = seq;
    this.#blocksFrom = seq;
  }

  #emptied(): void {
    this.#blocks = [];
    this.#head = 0;
    this.#endPosition = Math.ceil(this.#endPosition / this.#segmentBytes) * this.#segmentBytes;
    this.#firstPosition = this.#endPosition;
  }

  #freeBlocks(): void {
    while (this.#firstSeq - this.#blocksFrom >= BLOCK_EVENTS) {
      this.#blocks[this.#head] = undefined;
      this.#head += 1;
      this.#blocksFrom += BLOCK_EVENTS;
    }
    if (this.#head * 2 < this.#blocks.length) return;
    this.#blocks.splice(0, this.#head);
    this.#head = 0;
  }

  #place(seq: Seq, position: number): SpoolPlace {
    const index = seq - this.#blocksFrom;
    const entry = this.#blockAt(index).entries[index % BLOCK_EVENTS] ?? 0;
    return { seq, position, length: entry & LENGTH_MASK, stream: KINDS[entry >>> LENGTH_BITS] };
  }

  #blockAt(index: number): Block {
    const block = this.#blocks[this.#head + Math.floor(index / BLOCK_EVENTS)];
    if (block === undefined) throw new RangeError('the event is not in the spool');
    return block;
  }
}
