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
  readonly stdin: Writable;
  readonly stdout: Readable;
}

export interface FaultStdioOptions {
  /** Default 1. */
  readonly seed?: Seed | undefined;
  /** A message is a line. Default none. */
  readonly rules?: readonly FaultRule[] | undefined;
  readonly shape?: { readonly up?: FlowShape | undefined; readonly down?: FlowShape | undefined } | undefined;
  /** A rule is due and happens now. */
  readonly onFault?: ((action: FaultAction) => void) | undefined;
}

/** The pipes to use instead, and what can be done to them. A method without a direction means both. */
export interface FaultyStdio extends StdioStreams, Disposable {
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** Breaks both pipes; `hard: false` ends them after what was taken by the carrier. */
  cut(options?: Omit<CutAction, 'type'>): void;
  addRule(rule: FaultRule): void;
  stall(direction?: Direction, ms?: number): void;
  release(direction?: Direction): void;
  silence(): void;
  halfClose(direction: Direction): void;
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

class StdioFaults implements FaultyStdio {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
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
