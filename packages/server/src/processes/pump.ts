/**
 * Moves one process's events from its log to one connection: a cursor, the credit its client gave, and where pushes start
 * after a resume.
 */
import { limits, type Seq } from '@exec-server/protocol';
import type { FrameSource } from '../connection/outbox.js';
import { FrameEncoder } from './frames.js';
import type { LogEvent, LogGap } from './eventLog.js';
import { Lookahead } from './lookahead.js';
import type { Process } from './process.js';

export interface PumpOptions {
  /** Whether what it takes counts as delivered, and what it leaves holds the process back. Not for an observer. */
  readonly controls: boolean;
  /** Bytes that may be on the way unconfirmed; undefined: the transport alone sets the pace. */
  readonly creditBytes: number | undefined;
  /** Whether the client takes `process/gap`. */
  readonly tellsGaps: boolean;
  /** Pushes wait for `goOnFrom`: after a resume the client says by its first read where it is. */
  readonly held: boolean;
  /** Tells the outbox that there may be something to send. */
  readonly ready: (pump: Pump) => void;
  /** Everything through this seq was handed to the outbox. */
  readonly sent?: (pump: Pump, seq: Seq) => void;
  /** The close was delivered: there is nothing more to push. */
  readonly over: (pump: Pump) => void;
  /** Nothing more is sent before the client reads. */
  readonly stuck?: (pump: Pump) => void;
}

export class Pump implements FrameSource {
  readonly process: Process;
  readonly #options: PumpOptions;
  readonly #encoder: FrameEncoder;
  readonly #lookahead: Lookahead;
  readonly #stopWatching: () => void;
  /** Last seq handed to the outbox. */
  #sentSeq: Seq;
  /** Last seq the client has for sure. */
  #ackedSeq: Seq;
  /** Behind it everything that was sent is on the way: what was acknowledged, or the cursor the client chose to follow. */
  #creditSeq: Seq;
  #held: boolean;
  /** What was pushed behind a hole that the client has not been told of. */
  #behindHole: { events: number; bytes: number } | undefined;
  /** The client has to read before anything goes on, and may never do so: the process does not wait for it. */
  #unattended = false;
  #ended = false;

  constructor(process: Process, options: PumpOptions) {
    this.process = process;
    this.#options = options;
    this.#encoder = new FrameEncoder(process.id);
    this.#lookahead = new Lookahead(process.history, () => options.ready(this));
    this.#stopWatching = process.watch(() => this.#looked());
    this.#held = options.held;
    // An observer has had nothing of what the controller had.
    this.#sentSeq = options.controls ? process.lastDeliveredSeq : 0;
    this.#ackedSeq = this.#sentSeq;
    this.#creditSeq = this.#sentSeq;
    this.#report();
  }

  /** Whether nothing is pushed before the client reads. */
  get awaitsRead(): boolean {
    return this.#held || this.#unattended;
  }

  get sentSeq(): Seq {
    return this.#sentSeq;
  }

  /** Bytes fetched ahead from the disk. */
  get fetchedBytes(): number {
    return this.#lookahead.bytes;
  }

  /**
   * The client has read: its cursor was `afterSeq`, and the reply has carried everything through `throughSeq`. Held pushes, and
   * those that wait behind a hole, go on behind it; others are not affected.
   */
  readThrough(afterSeq: Seq, throughSeq: Seq): void {
    if (this.#options.controls && !this.#options.tellsGaps) this.process.readBehind(afterSeq);
    if (this.#held || this.#behindHole !== undefined) this.#goOn(throughSeq, afterSeq);
  }

  /** Nobody has read yet: pushes go on after what the last reader had. Does nothing unless held. */
  goOn(): void {
    if (this.#held) this.#goOn(this.process.lastDeliveredSeq, this.process.lastDeliveredSeq);
  }

  /** Pushes start behind a cursor of the client's choice, again if they were under way. */
  restart(afterSeq: Seq): void {
    if (this.#ended) return;
    this.#startBehind(afterSeq, this.#ackedSeq, afterSeq);
  }

  /** While held: nobody seems to be there who will ask, and the process runs on as if nobody was attached. */
  letGo(): void {
    if (!this.#held || this.#ended) return;
    this.#unattended = true;
    this.#report();
    this.#endIfOver();
  }

  /**
   * The client has everything through `seq`; beyond what was sent it counts as what was sent. Before the first read it may be
   * about what an earlier connection was sent.
   */
  acked(seq: Seq): void {
    if (this.#ended) return;
    const through = Math.min(seq, this.awaitsRead ? this.process.log.nextSeq - 1 : this.#sentSeq);
    if (through <= this.#ackedSeq && through <= this.#creditSeq) return;
    this.#ackedSeq = Math.max(this.#ackedSeq, through);
    this.#creditSeq = Math.max(this.#creditSeq, through);
    this.#report();
    this.#options.ready(this);
    this.#endIfOver();
  }

  next(): string | Uint8Array | undefined {
    if (this.#held || this.#ended) return undefined;
    const { history } = this.process;
    const { creditBytes, tellsGaps } = this.#options;
    if (creditBytes !== undefined && this.#unackedBytes() >= creditBytes) return undefined;
    const event = this.#lookahead.at(this.#sentSeq + 1) ?? history.at(this.#sentSeq + 1);
    if (event === 'spooled') {
      this.#lookahead.fetch(this.#sentSeq);
      return undefined;
    }
    if (event === undefined) {
      const gap = history.gapAfter(this.#sentSeq);
      if (gap === undefined) return undefined;
      this.#skip(gap);
      return tellsGaps ? this.#encoder.gap(gap) : this.next();
    }
    if (this.#waitsBehindHole(event)) return undefined;
    this.#sent(event.seq);
    this.#endIfOver();
    return this.#encoder.event(event);
  }

  /** The connection is gone, or the process is over. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopWatching();
    const { controls, tellsGaps } = this.#options;
    if (!controls) return;
    // What its connection took such a client may never have used: until the next one reads, nothing that is held goes.
    if (!tellsGaps) this.process.readBehind(this.process.history.firstHeldSeq - 1);
    this.process.delivered(undefined);
  }

  /** Seq through which nothing is held any more: no credit waits for it. */
  get #lostSeq(): Seq {
    return this.process.history.firstHeldSeq - 1;
  }

  #goOn(sentSeq: Seq, afterSeq: Seq): void {
    if (this.#ended) return;
    // A client with flow control may hold what it has not acknowledged, whatever its cursor, and go on being behind.
    const ackedSeq = this.#options.tellsGaps ? this.process.lastDeliveredSeq : afterSeq;
    this.#startBehind(sentSeq, ackedSeq, ackedSeq);
  }

  #startBehind(sentSeq: Seq, ackedSeq: Seq, cursor: Seq): void {
    this.#held = false;
    this.#behindHole = undefined;
    this.#unattended = false;
    this.#sentSeq = sentSeq;
    this.#ackedSeq = Math.min(ackedSeq, this.process.log.nextSeq - 1);
    this.#creditSeq = Math.min(cursor, sentSeq);
    this.#report();
    this.#options.sent?.(this, sentSeq);
    this.#options.ready(this);
    this.#endIfOver();
  }

  #skip(gap: LogGap): void {
    // Neither what is lost nor what was sent before it can be held for the client any more: no credit waits for it.
    this.#ackedSeq = Math.max(this.#ackedSeq, gap.throughSeq);
    this.#creditSeq = gap.throughSeq;
    if (!this.#options.tellsGaps) this.#behindHole ??= { events: 0, bytes: 0 };
    this.#sent(gap.throughSeq);
  }

  /**
   * A client that knows no gaps sees a jump in seq, keeps what lies behind it for a while, and gives up when that is too
   * much. Its next read tells it what is lost.
   */
  #waitsBehindHole(event: LogEvent): boolean {
    const hole = this.#behindHole;
    if (hole === undefined) return false;
    const bytes = event.kind === 'output' ? event.bytes.length : 0;
    if (hole.events >= limits.EVENTS_BEHIND_HOLE || hole.bytes + bytes > limits.BYTES_BEHIND_HOLE) {
      this.#unattended = true;
      this.#report();
      this.#options.stuck?.(this);
      return true;
    }
    hole.events += 1;
    hole.bytes += bytes;
    return false;
  }

  #sent(seq: Seq): void {
    this.#sentSeq = seq;
    if (this.#options.creditBytes === undefined) {
      this.#ackedSeq = seq;
      this.#creditSeq = seq;
    }
    this.#report();
    this.#options.sent?.(this, seq);
  }

  #report(): void {
    if (!this.#options.controls) return;
    const { process } = this;
    process.delivered({ ackedSeq: this.#ackedSeq, cursor: this.#creditSeq, sentSeq: this.#sentSeq });
    if (this.#unattended) process.delivered(undefined);
  }

  #looked(): void {
    this.#options.ready(this);
    this.#endIfOver();
  }

  #endIfOver(): void {
    const closedSeq = this.process.log.closed?.seq;
    const { expired } = this.process;
    if (closedSeq === undefined || this.#ended) return;
    // A client that has not acknowledged the end of an expired process, or not read it, cannot ask for it any more.
    const through = expired ? this.#sentSeq : Math.min(this.#ackedSeq, this.#sentSeq);
    const isOver = this.awaitsRead ? expired || this.#ackedSeq >= closedSeq : through >= closedSeq;
    if (!isOver) return;
    this.end();
    this.#options.over(this);
  }

  #unackedBytes(): number {
    const from = Math.max(this.#creditSeq, this.#lostSeq);
    if (from >= this.#sentSeq) return 0;
    const { history } = this.process;
    return (history.bytesThrough(this.#sentSeq) ?? 0) - (history.bytesThrough(from) ?? 0);
  }
}
