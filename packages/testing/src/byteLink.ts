/** Both directions of one byte carrier: applies actions to them and owns their timers. */
import { ByteFlow, type ByteFlowOptions } from './byteFlow.js';
import type { CutAction, Direction, FaultAction, FlowShape } from './faultPlan.js';

export interface ByteLinkOptions {
  readonly up: Omit<ByteFlowOptions, 'act' | 'passed' | 'direction'>;
  readonly down: Omit<ByteFlowOptions, 'act' | 'passed' | 'direction'>;
  readonly passed: (direction: Direction, bytes: number) => void;
  /** A rule is due and happens now. */
  readonly faulted: (action: FaultAction) => void;
  /** The flows have stopped; ends the streams at both sides. Called at most once. */
  readonly sever: (hard: boolean) => void;
}

export class ByteLink {
  readonly #options: ByteLinkOptions;
  readonly #flows: Readonly<Record<Direction, ByteFlow>>;
  readonly #timers = new Set<NodeJS.Timeout>();
  #silent = false;
  #disposed = false;

  constructor(options: ByteLinkOptions) {
    this.#options = options;
    const flow = (direction: Direction): ByteFlow =>
      new ByteFlow({
        ...options[direction],
        direction,
        act: (action) => {
          options.faulted(action);
          this.apply(action);
        },
        passed: (bytes) => options.passed(direction, bytes),
      });
    this.#flows = { up: flow('up'), down: flow('down') };
  }

  /** Whether it swallows everything; the loss of one side must then stay hidden from the other. */
  get silent(): boolean {
    return this.#silent;
  }

  start(): void {
    this.#flows.up.start();
    this.#flows.down.start();
  }

  apply(action: FaultAction): void {
    if (this.#disposed) return;
    switch (action.type) {
      case 'cut':
        this.cut(action);
        break;
      case 'stall':
        this.stall(action.direction, action.ms);
        break;
      case 'silence':
        this.silence();
        break;
      case 'halfClose':
        this.#flows[action.direction].halfClose();
        break;
      case 'shape':
        this.setShape(action.direction, action.shape);
        break;
      default:
        action satisfies never;
    }
  }

  cut({ hard = true, silentMs }: Omit<CutAction, 'type'> = {}): void {
    if (this.#disposed) return;
    if (silentMs !== undefined) {
      this.silence();
      this.#after(silentMs, () => this.cut({ hard }));
      return;
    }
    this.dispose();
    this.#options.sever(hard);
  }

  stall(direction?: Direction, ms?: number): void {
    for (const one of sides(direction)) this.#flows[one].stall();
    if (ms !== undefined) this.#after(ms, () => this.release(direction));
  }

  release(direction?: Direction): void {
    if (this.#disposed) return;
    for (const one of sides(direction)) this.#flows[one].release();
  }

  silence(): void {
    if (this.#disposed) return;
    this.#silent = true;
    this.#flows.up.drop();
    this.#flows.down.drop();
  }

  setShape(direction: Direction, shape: FlowShape): void {
    if (!this.#disposed) this.#flows[direction].setShape(shape);
  }

  /** Stops both flows and every timer; idempotent. */
  dispose(): void {
    this.#disposed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#flows.up.dispose();
    this.#flows.down.dispose();
  }

  #after(ms: number, then: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      then();
    }, ms);
    this.#timers.add(timer);
  }
}

export function sides(direction: Direction | undefined): readonly Direction[] {
  return direction === undefined ? ['up', 'down'] : [direction];
}
