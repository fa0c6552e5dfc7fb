/** The same faults for a server over stdio: stands between a program and the pipes of a child it has started. */
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { ByteLink } from './byteLink.js';
import {
  type CutAction,
  type Direction,
  type FaultAction,
  FaultPlan,
  type FaultRule,
  type FlowShape,
} from './faultPlan.js';
import type { Seed } from './random.js';
import { LineScanner } from './scanner.js';

/** The two pipes of a server, as a child process has them. */
export interface StdioStreams {
  /** What the server reads. */
  readonly stdin: Writable;
  /** What it writes. */
  readonly stdout: Readable;
}

/** What happens to the pipes by itself. */
export interface FaultStdioOptions {
  /** What random cut points and split sizes are drawn from. Default 1. */
  readonly seed?: Seed | undefined;
  /** Faults that happen by themselves; a message is a line. Default none. */
  readonly rules?: readonly FaultRule[] | undefined;
  /** How bytes flow. Default: as they come. */
  readonly shape?:
    | {
        /** To the server. */
        readonly up?: FlowShape | undefined;
        /** From the server. */
        readonly down?: FlowShape | undefined;
      }
    | undefined;
  /** A rule is due and happens now. */
  readonly onFault?: ((action: FaultAction) => void) | undefined;
}

/** The pipes to use instead, and what can be done to them. A method without a direction means both. */
export interface FaultyStdio extends StdioStreams, Disposable {
  /** Bytes that have passed to the server. */
  readonly bytesUp: number;
  /** Bytes that have passed from the server. */
  readonly bytesDown: number;
  /** Breaks both pipes; `hard: false` ends them after what was taken by the carrier. */
  cut(options?: Omit<CutAction, 'type'>): void;
  /** Arms one more rule; it counts from now on. Throws a RangeError for a count that is no whole number from 1. */
  addRule(rule: FaultRule): void;
  /** Holds bytes back without losing any, for `ms` or until `release`. */
  stall(direction?: Direction, ms?: number): void;
  /** Ends `stall`; what was held back flows on. */
  release(direction?: Direction): void;
  /** Takes everything and passes on nothing, not even an end, until `cut` or `close`. */
  silence(): void;
  /** Ends one direction behind what it has taken; the other goes on. */
  halfClose(direction: Direction): void;
  /** Changes how bytes flow; `{}` is as they come. */
  setShape(direction: Direction, shape: FlowShape): void;
  /** Destroys all four streams and ends every timer. The child is the caller's. */
  close(): void;
}

/**
 * Wraps the pipes of a server; starts nothing itself.
 *
 * @example
 * ```ts
 * const child = spawn('exec-server', ['--listen', 'stdio'], { stdio: ['pipe', 'pipe', 'inherit'] });
 * using faulty = faultyStdio(child, { shape: { down: { splitBytes: 7 } } });
 * const transport = byteTransport(faulty.stdout, faulty.stdin, { label: 'stdio' });
 * ```
 */
export function faultyStdio(server: StdioStreams, options: FaultStdioOptions = {}): FaultyStdio {
  return new StdioFaults(server, options);
}

/** What a side takes in before it makes its writer wait; the default of Node grows with its versions. */
const PIPE_BYTES = 16 * 1024;

class StdioFaults implements FaultyStdio {
  readonly stdin = new PassThrough({ highWaterMark: PIPE_BYTES });
  readonly stdout = new PassThrough({ highWaterMark: PIPE_BYTES });
  readonly #server: StdioStreams;
  readonly #plan: FaultPlan<FaultAction>;
  readonly #link: ByteLink;
  readonly #bytes: Record<Direction, number> = { up: 0, down: 0 };

  constructor(server: StdioStreams, options: FaultStdioOptions) {
    this.#server = server;
    this.#plan = new FaultPlan(options.rules ?? [], options.seed ?? 1);
    const faults = this.#plan.openConnection();
    const { shape } = options;
    this.#link = new ByteLink({
      up: { source: this.stdin, sink: server.stdin, faults, scanner: new LineScanner(), shape: shape?.up },
      down: { source: server.stdout, sink: this.stdout, faults, scanner: new LineScanner(), shape: shape?.down },
      passed: (direction, bytes) => {
        this.#bytes[direction] += bytes;
      },
      faulted: (action) => options.onFault?.(action),
      sever: (hard) => this.#sever(hard),
    });
    joinFate(this.stdin, server.stdin, () => this.#link.silent);
    joinFate(server.stdout, this.stdout, () => this.#link.silent);
    this.#link.start();
  }

  get bytesUp(): number {
    return this.#bytes.up;
  }

  get bytesDown(): number {
    return this.#bytes.down;
  }

  cut(options: Omit<CutAction, 'type'> = {}): void {
    this.#link.cut(options);
  }

  addRule(rule: FaultRule): void {
    this.#plan.add(rule);
  }

  stall(direction?: Direction, ms?: number): void {
    this.#link.stall(direction, ms);
  }

  release(direction?: Direction): void {
    this.#link.release(direction);
  }

  silence(): void {
    this.#link.silence();
  }

  halfClose(direction: Direction): void {
    this.#link.apply({ type: 'halfClose', direction });
  }

  setShape(direction: Direction, shape: FlowShape): void {
    this.#link.setShape(direction, shape);
  }

  close(): void {
    this.#link.dispose();
    this.#sever(true);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #sever(hard: boolean): void {
    if (hard) {
      this.#server.stdin.destroy();
      this.stdout.destroy();
    } else {
      this.#server.stdin.end();
      this.stdout.end();
    }
    this.stdin.destroy();
    this.#server.stdout.destroy();
  }
}

/** A pipe that breaks at one side breaks at the other; an orderly end goes through the flow instead. */
function joinFate(source: Readable, sink: Writable, isSilent: () => boolean): void {
  source.on('error', () => source.destroy());
  sink.on('error', () => sink.destroy());
  source.once('close', () => {
    if (!source.readableEnded && !isSilent() && !sink.writableEnded) sink.destroy();
  });
  sink.once('close', () => {
    if (!sink.writableFinished && !isSilent()) source.destroy();
  });
}
