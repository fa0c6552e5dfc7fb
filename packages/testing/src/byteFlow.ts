/** One direction of a byte carrier: takes from a source, passes to a sink, and on the way stalls, splits, drips, delays, drops. */
import type { Readable, Writable } from 'node:stream';
import { checkShape, type ConnectionFaults, type Direction, type FaultAction, type FlowShape } from './faultPlan.js';
import type { SeededRandom } from './random.js';
import type { MessageScanner, Scanned } from './scanner.js';

/** Bytes taken from the source and not yet given to the sink at which the source is paused: the most a cut can lose here. */
const QUEUE_BYTES = 64 * 1024;

export interface ByteFlowOptions {
  readonly direction: Direction;
  readonly source: Readable;
  readonly sink: Writable;
  readonly faults: ConnectionFaults;
  readonly scanner: MessageScanner;
  readonly shape?: FlowShape | undefined;
  /** A rule is due; may stall, silence or dispose this flow before it returns. */
  readonly act: (action: FaultAction) => void;
  /** Bytes were given to the sink. */
  readonly passed: (bytes: number) => void;
}

interface Queued extends Scanned {
  /** Bytes of it that have passed. */
  at: number;
  /** Whether the rules for "before this message" were asked. */
  judged: boolean;
  readonly dueAt: number;
}

/** Owns the queue and the one timer of its direction. Streams belong to the caller, who destroys them. */
export class ByteFlow {
  readonly #options: ByteFlowOptions;
  readonly #random: SeededRandom;
  #shape: FlowShape;
  #queue: Queued[] = [];
  #queuedBytes = 0;
  #state: 'open' | 'ending' | 'ended' | 'dropping' | 'disposed' = 'open';
  #stalled = false;
  #sinkFull = false;
  #pumping = false;
  #cancelWait: (() => void) | undefined;

  constructor(options: ByteFlowOptions) {
    this.#options = options;
    this.#shape = options.shape ?? {};
    checkShape(this.#shape);
    this.#random = options.faults.random.fork(`split ${options.direction}`);
  }

  start(): void {
    const { source, sink, scanner } = this.#options;
    sink.on('drain', this.#onDrain);
    source.on('data', this.#onData);
    source.on('end', () => {
      if (this.#state !== 'open') return;
      this.#enqueue(scanner.end());
      this.#end();
    });
    source.resume();
  }

  stall(): void {
    this.#stalled = true;
  }

  release(): void {
    this.#stalled = false;
    this.#pump();
  }

  setShape(shape: FlowShape): void {
    checkShape(shape);
    this.#shape = shape;
    this.#endWait();
    this.#pump();
  }

  /** Passes what was taken, then ends the sink; what comes after is dropped. */
  halfClose(): void {
    if (this.#state !== 'open') return;
    this.#enqueue(this.#options.scanner.end());
    this.#end();
  }

  /** From here on takes everything and passes nothing, not even the end. */
  drop(): void {
    if (this.#state === 'disposed') return;
    this.#state = 'dropping';
    this.#clear();
    this.#options.source.resume();
  }

  /** Stops for good and forgets what was taken. */
  dispose(): void {
    this.#state = 'disposed';
    this.#clear();
    this.#options.source.off('data', this.#onData);
    this.#options.sink.off('drain', this.#onDrain);
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#state !== 'open') return;
    const { scanner, faults, direction } = this.#options;
    scanner.inspect = faults.inspects(direction);
    this.#enqueue(scanner.push(chunk));
    this.#pump();
    if (this.#queuedBytes >= QUEUE_BYTES && this.#state === 'open') this.#options.source.pause();
  };

  readonly #onDrain = (): void => {
    this.#sinkFull = false;
    this.#pump();
  };

  #enqueue(runs: readonly Scanned[]): void {
    const dueAt = this.#shape.delayMs === undefined ? 0 : performance.now() + this.#shape.delayMs;
    for (const run of runs) {
      this.#queue.push({ ...run, at: 0, judged: false, dueAt });
      this.#queuedBytes += run.bytes.length;
    }
  }

  #end(): void {
    this.#state = 'ending';
    this.#pump();
    // What still comes is dropped, so that the sender is not blocked by a direction that has ended.
    this.#options.source.resume();
  }

  #clear(): void {
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#endWait();
  }

  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    const { sink } = this.#options;
    sink.cork();
    while (this.#canPass()) {
      const head = this.#queue[0];
      if (head === undefined) break;
      this.#passPiece(head);
    }
    sink.uncork();
    this.#pumping = false;
    if (this.#state === 'ending' && this.#queue.length === 0 && this.#canPass()) {
      this.#state = 'ended';
      sink.end();
    }
    if (this.#state === 'open' && this.#queuedBytes < QUEUE_BYTES) this.#options.source.resume();
  }

  #canPass(): boolean {
    const isLive = this.#state === 'open' || this.#state === 'ending';
    return isLive && !this.#stalled && !this.#sinkFull && this.#cancelWait === undefined;
  }

  #passPiece(head: Queued): void {
    const { direction, faults, sink } = this.#options;
    const wait = head.dueAt - performance.now();
    if (head.dueAt > 0 && wait > 0) return this.#waitMs(wait);
    if (head.text !== undefined && !head.judged) {
      head.judged = true;
      this.#act(faults.beforeMessage(direction, head.text));
      if (!this.#canPass()) return undefined;
    }
    const size = Math.min(head.bytes.length - head.at, faults.room(direction), this.#pieceBytes());
    const piece = head.bytes.subarray(head.at, head.at + size);
    head.at += size;
    this.#queuedBytes -= size;
    const isLast = head.at === head.bytes.length;
    if (isLast) this.#queue.shift();
    if (size > 0) {
      this.#sinkFull = !sink.write(piece);
      this.#options.passed(size);
      this.#spread();
      this.#act(faults.bytesPassed(direction, size));
    }
    if (isLast && head.endsMessage && this.#state !== 'disposed') {
      this.#act(faults.afterMessage(direction, head.text));
    }
    return undefined;
  }

  #act(actions: readonly FaultAction[]): void {
    if (actions.length === 0) return;
    // What has passed leaves before the action: a cut after a message must not take the message with it.
    this.#options.sink.uncork();
    for (const action of actions) if (this.#state !== 'disposed') this.#options.act(action);
    this.#options.sink.cork();
  }

  #pieceBytes(): number {
    const { drip, splitBytes } = this.#shape;
    const most = drip?.bytes ?? Number.POSITIVE_INFINITY;
    return splitBytes === undefined ? most : Math.min(most, 1 + this.#random.integer(splitBytes));
  }

  /** Keeps this piece and the next apart, or the kernel joins them again. */
  #spread(): void {
    if (this.#shape.drip !== undefined) {
      this.#waitMs(this.#shape.drip.pauseMs);
    } else if (this.#shape.splitBytes !== undefined) {
      const immediate = setImmediate(() => this.#resumeAfterWait());
      this.#cancelWait = () => clearImmediate(immediate);
    }
  }

  #waitMs(ms: number): void {
    const timer = setTimeout(() => this.#resumeAfterWait(), ms);
    this.#cancelWait = () => clearTimeout(timer);
  }

  #resumeAfterWait(): void {
    this.#cancelWait = undefined;
    this.#pump();
  }

  #endWait(): void {
    this.#cancelWait?.();
    this.#cancelWait = undefined;
  }
}
