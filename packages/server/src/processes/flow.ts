/** Holds a child back while an attached reader is behind. The only caller of `pause` and `resume` of its streams. */
import { limits, type Seq } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import type { OutputSource } from '../host/child.js';
import { type DetachedPolicy, type History, SPOOL_PENDING_PAUSE_BYTES, SPOOL_PENDING_RESUME_BYTES } from './history.js';

/** Unsent events at which streams are paused: tiny chunks fill the window by number long before they do by bytes. */
const PAUSE_EVENTS = limits.RETAINED_CHUNKS_PER_PROCESS / 2;
const RESUME_EVENTS = limits.RETAINED_CHUNKS_PER_PROCESS / 4;

/** How long a client that has read is taken for one that goes by what it reads, and not by what it is pushed. */
const READ_COUNTS_MS = 30_000;

/** How far an attached reader is. */
export interface Progress {
  /** It has everything through this seq for sure. */
  readonly ackedSeq: Seq;
  /** What follows it is on the way or waits, and holds the child back when it is too much. */
  readonly cursor: Seq;
  /** Everything through it was handed to its connection. */
  readonly sentSeq: Seq;
}

export class Flow {
  readonly #history: History;
  readonly #detached: DetachedPolicy;
  readonly #clock: Pick<Clock, 'now'>;
  #outputs: readonly OutputSource[] = [];
  /** Undefined while nobody is attached. */
  #progress: Progress | undefined;
  /** The highest `ackedSeq` there was, kept over a detach. */
  #lastDeliveredSeq: Seq = 0;
  /** The cursor of the last read of a client that acknowledges nothing, and since when it counts. */
  #read: { readonly afterSeq: Seq; readonly sinceMs: number } | undefined;
  #releasedSeq: Seq = 0;
  #paused = false;

  constructor(history: History, detached: DetachedPolicy, clock: Pick<Clock, 'now'>) {
    this.#history = history;
    this.#detached = detached;
    this.#clock = clock;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Seq through which the last attached reader had everything. */
  get lastDeliveredSeq(): Seq {
    return this.#lastDeliveredSeq;
  }

  /**
   * Seq through which nothing needs to be kept on disk. It goes back where a client asks for what it was pushed, and follows
   * every change at once: what is spooled has no holes.
   */
  get releasedSeq(): Seq {
    return this.#releasedSeq;
  }

  /** Whether somebody is attached whose pace counts. */
  get attached(): boolean {
    return this.#progress !== undefined;
  }

  /** Whether an attached reader has not got everything yet. */
  get beingRead(): boolean {
    return this.#progress !== undefined && this.#progress.ackedSeq < this.#history.log.nextSeq - 1;
  }

  control(outputs: readonly OutputSource[]): void {
    this.#outputs = outputs;
  }

  delivered(progress: Progress | undefined): void {
    if (progress !== undefined && this.#read !== undefined) {
      // Nobody can read while nobody is attached.
      if (this.#progress === undefined) this.#read = { ...this.#read, sinceMs: this.#clock.now() };
      else if (this.#clock.now() - this.#read.sinceMs > READ_COUNTS_MS) this.#read = undefined;
    }
    this.#progress = progress;
    // A reader that goes back to an earlier cursor has had what follows it all the same.
    if (progress !== undefined && progress.ackedSeq > this.#lastDeliveredSeq) {
      this.#lastDeliveredSeq = progress.ackedSeq;
    }
    this.#release();
    this.adjust();
  }

  /**
   * A client that acknowledges nothing has read behind this cursor. That its connection took what was pushed does not say that
   * it used it: one that goes by its reads comes for it again.
   */
  readBehind(afterSeq: Seq): void {
    this.#read = { afterSeq, sinceMs: this.#clock.now() };
    this.#release();
  }

  /** To be called after each event, and when the spool has moved on. */
  adjust(): void {
    const { log } = this.#history;
    const cursor = this.#progress?.cursor ?? (this.#detached === 'pause' ? this.#lastDeliveredSeq : undefined);
    const behind = cursor === undefined ? 0 : this.#bytesBehind(cursor);
    const unsent = this.#progress === undefined ? 0 : log.nextSeq - 1 - this.#progress.sentSeq;
    const pending = this.#history.pendingBytes;
    const { crowded } = this.#history;
    const full =
      behind >= limits.PAUSE_PROCESS_BYTES || unsent >= PAUSE_EVENTS || pending >= SPOOL_PENDING_PAUSE_BYTES || crowded;
    const free =
      behind <= limits.RESUME_PROCESS_BYTES &&
      unsent <= RESUME_EVENTS &&
      pending <= SPOOL_PENDING_RESUME_BYTES &&
      !crowded;
    if (!this.#paused && full) this.#set(true);
    else if (this.#paused && free) this.#set(false);
  }

  #release(): void {
    const releasedSeq = Math.min(this.#lastDeliveredSeq, this.#read?.afterSeq ?? this.#lastDeliveredSeq);
    if (releasedSeq === this.#releasedSeq) return;
    this.#releasedSeq = releasedSeq;
    this.#history.delivered(releasedSeq);
  }

  /** What is lost nobody waits for. */
  #bytesBehind(cursor: Seq): number {
    const from = Math.max(cursor, this.#history.firstHeldSeq - 1);
    return this.#history.log.totalBytes - (this.#history.bytesThrough(from) ?? 0);
  }

  #set(paused: boolean): void {
    this.#paused = paused;
    for (const output of this.#outputs) {
      if (paused) output.pause();
      else output.resume();
    }
  }
}
