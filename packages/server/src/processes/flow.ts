/** Holds a child back while an attached reader is behind. The only caller of `pause` and `resume` of its streams. */
import { limits, type Seq } from '@exec-server/protocol';
import type { OutputSource } from '../host/child.js';
import { type DetachedPolicy, type History, SPOOL_PENDING_PAUSE_BYTES, SPOOL_PENDING_RESUME_BYTES } from './history.js';

/** Unsent events at which streams are paused: tiny chunks fill the window by number long before they do by bytes. */
const PAUSE_EVENTS = limits.RETAINED_CHUNKS_PER_PROCESS / 2;
const RESUME_EVENTS = limits.RETAINED_CHUNKS_PER_PROCESS / 4;

export class Flow {
  readonly #history: History;
  readonly #detached: DetachedPolicy;
  #outputs: readonly OutputSource[] = [];
  /** Seq through which the attached reader has everything; undefined while nobody is attached. */
  #deliveredSeq: Seq | undefined;
  /** Seq through which everything was handed to the attached reader's connection. */
  #sentSeq: Seq = 0;
  /** The last known `#deliveredSeq`, kept over a detach. */
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
    return this.#deliveredSeq !== undefined;
  }

  /** Whether an attached reader has not got everything yet. */
  get beingRead(): boolean {
    return this.#deliveredSeq !== undefined && this.#deliveredSeq < this.#history.log.nextSeq - 1;
  }

  control(outputs: readonly OutputSource[]): void {
    this.#outputs = outputs;
  }

  delivered(seq: Seq | undefined, sentSeq: Seq): void {
    this.#deliveredSeq = seq;
    this.#sentSeq = sentSeq;
    // A reader that goes back to an earlier cursor has had what follows it all the same.
    if (seq !== undefined && seq > this.#lastDeliveredSeq) {
      this.#lastDeliveredSeq = seq;
      this.#history.delivered(seq);
    }
    this.adjust();
  }

  /** To be called after each event, and when the spool has moved on. */
  adjust(): void {
    const { log } = this.#history;
    const delivered = this.#deliveredSeq ?? (this.#detached === 'pause' ? this.#lastDeliveredSeq : undefined);
    const behind = delivered === undefined ? 0 : log.totalBytes - (this.#history.bytesThrough(delivered) ?? 0);
    const unsent = this.#deliveredSeq === undefined ? 0 : log.nextSeq - 1 - this.#sentSeq;
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

  #set(paused: boolean): void {
    this.#paused = paused;
    for (const output of this.#outputs) {
      if (paused) output.pause();
      else output.resume();
    }
  }
}
