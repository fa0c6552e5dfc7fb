/** Holds a child back while an attached reader is behind. The only caller of `pause` and `resume` of its streams. */
import { limits, type Seq } from '@exec-server/protocol';
import type { OutputSource } from '../host/child.js';
import { type DetachedPolicy, type History, SPOOL_PENDING_PAUSE_BYTES, SPOOL_PENDING_RESUME_BYTES } from './history.js';

/** Unsent events at which streams are paused: tiny chunks fill the window by number long before they do by bytes. */
const PAUSE_EVENTS = limits.RETAINED_CHUNKS_PER_PROCESS / 2;
const RESUME_EVENTS = limits.RETAINED_CHUNKS_PER_PROCESS / 4;

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
  #outputs: readonly OutputSource[] = [];
  /** Undefined while nobody is attached. */
  #progress: Progress | undefined;
  /** The highest `ackedSeq` there was, kept over a detach. */
  #lastDeliveredSeq: Seq = 0;
  #paused = false;

  constructor(history: History, detached: DetachedPolicy) {
    this.#history = history;
    this.#detached = detached;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Seq through which the last attached reader had everything. */
  get lastDeliveredSeq(): Seq {
    return this.#lastDeliveredSeq;
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
    this.#progress = progress;
    // A reader that goes back to an earlier cursor has had what follows it all the same.
    if (progress !== undefined && progress.ackedSeq > this.#lastDeliveredSeq) {
      this.#lastDeliveredSeq = progress.ackedSeq;
      this.#history.delivered(progress.ackedSeq);
    }
    this.adjust();
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
