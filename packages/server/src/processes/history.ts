/**
 * One process's events wherever they are: the newest in memory, what was not delivered and left memory in the spool, the
 * rest gone. Decides what goes to the spool. The only user of the spool.
 */
import { limits, type Seq, type StreamName } from '@exec-server/protocol';
import {
  EventLog,
  type LogEvent,
  type LogGap,
  type LogLimits,
  type LogRead,
  type OutputEvent,
  type ReadBudget,
} from './eventLog.js';
import { type Spool, SpoolReadError } from './spool/spool.js';
import type { Window, WindowBudget, WindowShare } from './windowBudget.js';

/** What happens to output while nobody is attached. */
export type DetachedPolicy = 'spool' | 'pause' | 'drop';

export interface HistoryOptions {
  readonly logLimits: LogLimits;
  readonly detached: DetachedPolicy;
  /** A spool, at the first event that needs it; undefined where there can be none. */
  readonly openSpool: ((changed: () => void) => Spool | undefined) | undefined;
  /** What its window shares with others in memory. Undefined: it has its own limits alone. */
  readonly windows?: WindowBudget | undefined;
  /** Seq through which a reader has everything for sure, and does not come for it again. */
  readonly deliveredSeq: () => Seq;
  /** Whether a reader is attached. */
  readonly attached: () => boolean;
  /** The spool wrote, or began to fail. */
  readonly changed: () => void;
}

/** One reply, and one look ahead of a pump, take at most so much from the disk. */
const MOST_READ_BYTES = 4 * 1024 * 1024;
const MOST_READ_CHUNKS = 20_000;

export class History implements Window {
  readonly log: EventLog;
  readonly #options: HistoryOptions;
  readonly #share: WindowShare | undefined;
  #spool: Spool | undefined;
  #spoolRefused = false;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.log = new EventLog(options.logLimits, (event) => this.#evicted(event));
    this.#share = options.windows?.share(this);
  }

  /** The next output; older events may leave the window for it, also those of other processes. */
  append(stream: StreamName, bytes: Uint8Array): void {
    this.log.appendOutput(stream, bytes);
    this.#share?.changed();
  }

  get weightBytes(): number {
    return this.log.weightBytes;
  }

  /**
   * What was delivered goes first, which takes no disk. Without a disk an attached reader loses nothing: what it has not got
   * stays, and its own slowness bounds that.
   */
  shrinkTo(weightBytes: number): void {
    this.log.shrinkTo(weightBytes, this.#options.deliveredSeq());
    if (this.log.weightBytes <= weightBytes) return;
    if (!this.#options.attached() || this.#takesSpool()) this.log.shrinkTo(weightBytes);
  }

  get spooledBytes(): number {
    return this.#spool?.bytes ?? 0;
  }

  /**
   * Bytes that left the window and wait for the disk. None while writes fail: the spool then takes no more than it gives up,
   * and nothing but a reader would end the wait.
   */
  get pendingBytes(): number {
    return this.#spool === undefined || this.#spool.errno !== undefined ? 0 : this.#spool.pendingBytes;
  }

  /** Whether bytes of this process wait for the disk, and so many do over all processes that none of these may go on. */
  get crowded(): boolean {
    return this.pendingBytes > 0 && this.#spool?.crowded === true;
  }

  /** All events from this seq on are held. */
  get firstHeldSeq(): Seq {
    const spool = this.#held;
    return spool === undefined ? this.log.firstRetainedSeq : spool.firstSeq;
  }

  /** The event; `spooled` when it has to be fetched; undefined when it is not there yet or gone. */
  at(seq: Seq): LogEvent | 'spooled' | undefined {
    const event = this.log.at(seq);
    if (event !== undefined) return event;
    const spool = this.#held;
    return spool !== undefined && seq >= spool.firstSeq && seq < spool.endSeq ? 'spooled' : undefined;
  }

  /** Output bytes in the events through this seq; undefined where it is no longer known. */
  bytesThrough(seq: Seq): number | undefined {
    return this.log.bytesThrough(seq) ?? this.#held?.bytesThrough(seq);
  }

  /** The first range of lost events behind a cursor. */
  gapAfter(afterSeq: Seq): LogGap | undefined {
    const spool = this.#held;
    if (spool === undefined) return this.log.gapAfter(afterSeq);
    const exitedSeq = this.log.exited?.seq ?? 0;
    const fromSeq = afterSeq + 1 === exitedSeq ? exitedSeq + 1 : afterSeq + 1;
    if (fromSeq >= spool.firstSeq) return undefined;
    const throughSeq = exitedSeq > fromSeq && exitedSeq < spool.firstSeq ? exitedSeq - 1 : spool.firstSeq - 1;
    const before = this.bytesThrough(fromSeq - 1);
    const after = this.bytesThrough(throughSeq);
    return { fromSeq, throughSeq, bytes: before === undefined || after === undefined ? undefined : after - before };
  }

  /** Events after a cursor, from the disk where they are there. What the disk does not give back is lost, and told as a gap. */
  read(afterSeq: Seq, budget: ReadBudget): LogRead | Promise<LogRead> {
    const spool = this.#held;
    return spool === undefined || afterSeq + 1 >= spool.endSeq
      ? this.log.read(afterSeq, budget)
      : this.#readSpool(afterSeq, budget);
  }

  /** Output after a cursor that lies in the spool; may be empty after a failure, which leaves a gap. */
  async fetch(afterSeq: Seq, maxBytes: number): Promise<readonly OutputEvent[]> {
    const spool = this.#held;
    if (spool === undefined) return [];
    try {
      return await spool.read(afterSeq, Math.min(maxBytes, MOST_READ_BYTES), MOST_READ_CHUNKS);
    } catch (error) {
      if (!(error instanceof SpoolReadError)) throw error;
      spool.dropThrough(error.throughSeq);
      return [];
    }
  }

  /** A reader has everything through this seq: the spool need not keep it. */
  delivered(seq: Seq): void {
    this.#spool?.dropThrough(seq);
  }

  /** Nobody reads it any more: its part in what memory is shared is free. */
  release(): void {
    this.#share?.end();
  }

  /** Gives up what is on disk. Never rejects. */
  close(): Promise<void> {
    const spool = this.#spool;
    this.#spool = undefined;
    this.#spoolRefused = true;
    return spool?.close() ?? Promise.resolve();
  }

  get #held(): Spool | undefined {
    const spool = this.#spool;
    return spool !== undefined && spool.endSeq > spool.firstSeq ? spool : undefined;
  }

  async #readSpool(afterSeq: Seq, budget: ReadBudget): Promise<LogRead> {
    // Before the disk is waited for: what is dropped meanwhile is among the chunks all the same.
    const gapBefore = this.gapAfter(afterSeq);
    const chunks = await this.fetch(afterSeq, budget.maxBytes);
    const last = chunks.at(-1);
    const gap = last === undefined ? this.gapAfter(afterSeq) : gapBefore;
    const spool = this.#held;
    if (last === undefined && (spool === undefined || afterSeq + 1 < spool.firstSeq || afterSeq + 1 >= spool.endSeq)) {
      return this.log.read(afterSeq, budget);
    }
    return { chunks, throughSeq: last?.seq ?? (spool?.endSeq ?? 1) - 1, cut: true, gap };
  }

  #evicted(event: LogEvent): void {
    if (event.seq <= this.#options.deliveredSeq()) return;
    // The policy is for the time without a reader; one that is attached loses nothing when memory is short.
    const drops = this.#options.detached === 'drop' && !this.#options.attached();
    const spool = drops ? undefined : this.#openSpool();
    if (spool === undefined) {
      // What is held is without holes: behind a lost event nothing older is kept.
      if (this.#spool !== undefined) this.#spool.dropThrough(this.#spool.endSeq - 1);
      return;
    }
    // Past the cap the oldest goes; the reader is told which.
    while (!spool.append(event)) {
      if (spool.endSeq === spool.firstSeq) return;
      spool.dropThrough(spool.firstSeq);
    }
  }

  #takesSpool(): boolean {
    const spool = this.#openSpool();
    return spool !== undefined && spool.errno === undefined;
  }

  #openSpool(): Spool | undefined {
    if (this.#spool === undefined && !this.#spoolRefused) {
      this.#spool = this.#options.openSpool?.(this.#options.changed);
      this.#spoolRefused = this.#spool === undefined;
    }
    return this.#spool;
  }
}

/** Bytes waiting for the disk at which a detached child is held, and goes on. */
export const SPOOL_PENDING_PAUSE_BYTES = limits.RETAINED_BYTES_PER_PROCESS;
export const SPOOL_PENDING_RESUME_BYTES = limits.RETAINED_BYTES_PER_PROCESS / 2;
