/** Undelivered events of one process that left its memory: which they are, where their bytes lie, and what they may take. */
import type { Seq } from '@exec-server/protocol';
import { errnoCode } from '../../host/startErrors.js';
import type { LogEvent, OutputEvent } from '../eventLog.js';
import type { SegmentEvents, Segments } from './segments.js';
import type { SpoolBudget } from './spoolBudget.js';
import { type DroppedRange, MAX_SPOOLED_CHUNK_BYTES, SpoolIndex, type SpoolPlace } from './spoolIndex.js';

/** What an event takes of the budget besides its bytes: the index is in memory, and a flood of tiny chunks must not fill it. */
export const SPOOLED_EVENT_COST_BYTES = 64;

export interface SpoolOptions {
  readonly openSegments: (events: SegmentEvents) => Segments;
  readonly budget: SpoolBudget;
  /** Whether the spools of the server together keep more in memory than they should. Default: never. */
  readonly crowded?: () => boolean;
  /** `pendingBytes` fell because of a write, or writes began to fail. It may append and drop. */
  readonly changed: () => void;
  /** The spool is closed; called once. */
  readonly closed?: () => void;
}

/** A read that the disk did not answer, or that came after the close. The events are still in the spool. */
export class SpoolReadError extends Error {
  override readonly name = 'SpoolReadError';
  readonly fromSeq: Seq;
  readonly throughSeq: Seq;
  readonly errno: string | undefined;

  constructor(message: string, range: { readonly fromSeq: Seq; readonly throughSeq: Seq }, cause?: unknown) {
    super(message, { cause });
    this.fromSeq = range.fromSeq;
    this.throughSeq = range.throughSeq;
    this.errno = errnoCode(cause);
  }
}

export class Spool {
  readonly #options: SpoolOptions;
  readonly #segments: Segments;
  readonly #index: SpoolIndex;
  /** From position to offset; undefined until the first output of what is held. */
  #offsetShift: number | undefined;
  #errno: string | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#segments = options.openSegments({
      written: () => options.changed(),
      failed: (error) => {
        this.#errno = errnoCode(error) ?? 'EIO';
        options.changed();
      },
    });
    this.#index = new SpoolIndex(this.#segments.segmentBytes);
  }

  get firstSeq(): Seq {
    return this.#index.firstSeq;
  }
  /** One past the last event; equal to `firstSeq` when there is none. */
  get endSeq(): Seq {
    return this.#index.endSeq;
  }
  /** Output bytes held. */
  get bytes(): number {
    return this.#index.bytes;
  }
  /** Appended and not on disk yet; these are in memory. While writes fail they stay there until they are dropped. */
  get pendingBytes(): number {
    return this.#segments.pendingBytes;
  }
  get crowded(): boolean {
    return this.#options.crowded?.() ?? false;
  }
  /** Why writes fail at present. No write brings `pendingBytes` down then; dropping events does. */
  get errno(): string | undefined {
    return this.#segments.failing ? this.#errno : undefined;
  }

  /**
   * `event.seq` is `endSeq`; an empty spool takes any. False when it goes beyond a budget, when the disk is full and nothing
   * was dropped to make room, and after `close`: then nothing has changed. The bytes must not change any more.
   */
  append(event: LogEvent): boolean {
    if (this.#index.events > 0 && event.seq !== this.endSeq) {
      throw new RangeError(`event ${event.seq} does not follow event ${this.endSeq - 1}`);
    }
    const length = event.kind === 'output' ? event.bytes.length : 0;
    const refused = length > MAX_SPOOLED_CHUNK_BYTES || (length > 0 && length > this.#segments.roomBytes);
    if (this.#closing !== undefined || refused) return false;
    if (!this.#options.budget.take(length + SPOOLED_EVENT_COST_BYTES)) return false;
    if (event.kind === 'output') this.#offsetShift ??= event.offset - this.#index.endPosition;
    this.#index.append(event.seq, event.kind === 'output' ? event.stream : undefined, length);
    if (event.kind === 'output') this.#segments.append(event.bytes);
    return true;
  }

  /** Output bytes of the process in all events up to and including this one; undefined where the spool cannot tell. */
  bytesThrough(seq: Seq): number | undefined {
    if (this.#index.events === 0 || this.#offsetShift === undefined) return undefined;
    if (seq < this.firstSeq - 1 || seq >= this.endSeq) return undefined;
    return this.#index.positionOf(seq + 1) + this.#offsetShift;
  }

  /**
   * Output after a cursor, from the first event that is held: whole chunks, at least one when there is one. What is dropped
   * after the call is in the answer all the same. The chunks share memory; who keeps one keeps them all. Rejects with
   * SpoolReadError.
   */
  async read(afterSeq: Seq, maxBytes: number, maxChunks: number): Promise<readonly OutputEvent[]> {
    const places = this.#index.chunksAfter(afterSeq, maxBytes, maxChunks);
    const first = places[0];
    const last = places.at(-1);
    if (this.#closing !== undefined)
      throw new SpoolReadError('the spool is closed', rangeOf(afterSeq + 1, afterSeq + 1));
    if (first === undefined || last === undefined) return [];
    // All of this before the first await: what is in memory may be written, and freed, at any time after.
    const shift = this.#offsetShift ?? 0;
    const written = this.#segments.writtenPosition;
    const onDisk = (place: SpoolPlace): boolean => place.position + place.length <= written;
    const diskEnd = places.reduce(
      (end, place) => (onDisk(place) ? place.position + place.length : end),
      first.position,
    );
    const inMemory = places.map((place) =>
      onDisk(place) ? undefined : this.#segments.chunkInMemory(place.position, place.length),
    );
    const range = rangeOf(first.seq, last.seq);
    const disk = await this.#readDisk(first.position, diskEnd - first.position, range);
    return places.map(({ seq, position, length, stream }, index) => {
      if (stream === undefined) throw new Error(`event ${seq} is no output`);
      const at = position - first.position;
      const bytes = inMemory[index] ?? disk.subarray(at, at + length);
      return { kind: 'output', seq, stream, bytes, offset: position + shift };
    });
  }

  /** They were delivered, or are given up. Says what that was; undefined when none of them is held. */
  dropThrough(seq: Seq): DroppedRange | undefined {
    const eventsBefore = this.#index.events;
    const dropped = this.#index.dropThrough(seq);
    if (dropped === undefined) return undefined;
    if (this.#index.events === 0) this.#offsetShift = undefined;
    this.#segments.dropBelow(this.#index.firstPosition);
    this.#give(dropped.bytes, eventsBefore - this.#index.events);
    return dropped;
  }

  /** Gives up what is held. Settles when every descriptor is closed; never rejects. */
  close(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    const { events, bytes } = this.#index;
    this.#closing = this.#segments.close();
    this.#index.dropThrough(this.endSeq);
    this.#offsetShift = undefined;
    this.#give(bytes, events);
    void this.#closing.then(() => this.#options.closed?.());
    return this.#closing;
  }

  #give(bytes: number, events: number): void {
    this.#options.budget.give(bytes + events * SPOOLED_EVENT_COST_BYTES);
  }

  async #readDisk(
    position: number,
    length: number,
    range: { readonly fromSeq: Seq; readonly throughSeq: Seq },
  ): Promise<Uint8Array> {
    try {
      return await this.#segments.readDisk(position, length);
    } catch (error) {
      const { fromSeq, throughSeq } = range;
      throw new SpoolReadError(`events ${fromSeq} to ${throughSeq} cannot be read from the spool`, range, error);
    }
  }
}

function rangeOf(fromSeq: Seq, throughSeq: Seq): { readonly fromSeq: Seq; readonly throughSeq: Seq } {
  return { fromSeq, throughSeq };
}
