/**
 * Moves one process's events from its log to one connection: a cursor, the credit its client gave, and where pushes start
 * after a resume.
 */
import type { Seq } from '@exec-server/protocol';
import type { FrameSource } from '../connection/outbox.js';
import { FrameEncoder } from './frames.js';
import { Lookahead } from './lookahead.js';
import type { Process } from './process.js';

export interface PumpOptions {
  /** Bytes that may be on the way unacknowledged; undefined for a client without flow control. */
  readonly creditBytes: number | undefined;
  /** Pushes wait for `goOnFrom`: after a resume the client says by its first read where it is. */
  readonly held: boolean;
  /** Tells the outbox that there may be something to send. */
  readonly ready: (pump: Pump) => void;
  /** The close was delivered: there is nothing more to push. */
  readonly over: (pump: Pump) => void;
}

export class Pump implements FrameSource {
  readonly process: Process;
  readonly #options: PumpOptions;
  readonly #encoder: FrameEncoder;
  readonly #lookahead: Lookahead;
  readonly #stopWatching: () => void;
  /** Last seq handed to the outbox. */
  #sentSeq: Seq = 0;
  /** Last seq the client has for sure. */
  #ackedSeq: Seq = 0;
  #held: boolean;
  #ended = false;

  constructor(process: Process, options: PumpOptions) {
    this.process = process;
    this.#options = options;
    this.#encoder = new FrameEncoder(process.id);
    this.#lookahead = new Lookahead(process.history, () => options.ready(this));
    this.#stopWatching = process.watch(() => this.#looked());
    this.#held = options.held;
    this.#sentSeq = process.lastDeliveredSeq;
    this.#ackedSeq = process.lastDeliveredSeq;
    process.delivered(this.#ackedSeq);
    if (!this.#held) options.ready(this);
  }

  get held(): boolean {
    return this.#held;
  }

  /**
   * Pushes go on after `sentSeq`, which a reply has carried; the client's cursor was `afterSeq`. A client with flow control may
   * still want what it has not acknowledged, whatever its cursor. Without seqs they go on after what the last reader had. Does
   * nothing unless held.
   */
  goOnFrom(sentSeq: Seq = this.process.lastDeliveredSeq, afterSeq: Seq = sentSeq): void {
    if (!this.#held || this.#ended) return;
    this.#held = false;
    this.#sentSeq = sentSeq;
    const ackedSeq = this.#options.creditBytes === undefined ? afterSeq : this.process.lastDeliveredSeq;
    // As in `next`: no credit waits for what is lost, nor for what was sent before it.
    const lostSeq = this.process.history.firstHeldSeq - 1;
    this.#ackedSeq = Math.min(Math.max(ackedSeq, lostSeq), sentSeq);
    this.process.delivered(this.#ackedSeq, sentSeq);
    this.#options.ready(this);
    this.#endIfOver();
  }

  /** The client has everything through `seq`; beyond what was sent it counts as what was sent. */
  acked(seq: Seq): void {
    const through = Math.min(seq, this.#sentSeq);
    if (through <= this.#ackedSeq) return;
    this.#ackedSeq = through;
    this.process.delivered(through, this.#sentSeq);
    this.#options.ready(this);
    this.#endIfOver();
  }

  next(): string | Uint8Array | undefined {
    if (this.#held || this.#ended) return undefined;
    const { history } = this.process;
    const credit = this.#options.creditBytes;
    if (credit !== undefined && this.#unackedBytes() >= credit) return undefined;
    const event = this.#lookahead.at(this.#sentSeq + 1) ?? history.at(this.#sentSeq + 1);
    if (event === 'spooled') {
      this.#lookahead.fetch(this.#sentSeq);
      return undefined;
    }
    if (event === undefined) {
      const gap = history.gapAfter(this.#sentSeq);
      if (gap === undefined) return undefined;
      // Neither what is lost nor what was sent before it can be held for the client any more: no credit waits for it.
      this.#ackedSeq = gap.throughSeq;
      this.#sent(gap.throughSeq);
      // A client without flow control does not know the notification; the jump in seq tells it to read.
      return credit === undefined ? this.next() : this.#encoder.gap(gap);
    }
    this.#sent(event.seq);
    this.#endIfOver();
    return this.#encoder.event(event);
  }

  /** The connection is gone, or the process is over. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopWatching();
    this.process.delivered(undefined);
  }

  #sent(seq: Seq): void {
    this.#sentSeq = seq;
    if (this.#options.creditBytes === undefined) this.#ackedSeq = seq;
    this.process.delivered(this.#ackedSeq, seq);
  }

  #looked(): void {
    this.#options.ready(this);
    this.#endIfOver();
  }

  #endIfOver(): void {
    const closedSeq = this.process.log.closed?.seq;
    // A client that has not acknowledged the end of an expired process cannot ask for it again: nothing is kept for it.
    const through = this.process.expired ? this.#sentSeq : this.#ackedSeq;
    if (closedSeq === undefined || this.#ended || this.#held || through < closedSeq) return;
    this.end();
    this.#options.over(this);
  }

  #unackedBytes(): number {
    const { history } = this.process;
    return (history.bytesThrough(this.#sentSeq) ?? 0) - (history.bytesThrough(this.#ackedSeq) ?? 0);
  }
}
