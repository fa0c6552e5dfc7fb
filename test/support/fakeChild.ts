/** A child without a process behind it: the test plays both the program and the host. */
import type { ChildExit, OutputSource, SpawnedChild, StdinSink } from '@exec-server/server';

export class FakeOutput implements OutputSource {
  readonly name: OutputSource['name'];
  paused = false;
  destroyed = false;
  #listener: Parameters<OutputSource['start']>[0] | undefined;
  #ended = false;

  constructor(name: OutputSource['name'] = 'stdout') {
    this.name = name;
  }

  start(listener: Parameters<OutputSource['start']>[0]): void {
    this.#listener = listener;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  destroy(): void {
    this.destroyed = true;
    this.end();
  }

  /** The program wrote. */
  emit(bytes: Uint8Array | string): void {
    this.#listener?.bytes(typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes);
  }

  /** Nobody holds the stream any more. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#listener?.ended();
  }
}

export class FakeStdin implements StdinSink {
  /** What the program took so far. */
  readonly taken: string[] = [];
  ended = false;
  destroyed = false;
  readonly #queue: { readonly bytes: Uint8Array; readonly taken: (error?: Error) => void }[] = [];
  #onBroken: (() => void)[] = [];

  get queuedBytes(): number {
    return this.#queue.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /** What was written and not taken yet. */
  get waiting(): string[] {
    return this.#queue.map(({ bytes }) => new TextDecoder().decode(bytes));
  }

  write(bytes: Uint8Array, taken: (error?: Error) => void): void {
    this.#queue.push({ bytes, taken });
  }

  end(): void {
    this.ended = true;
  }

  onBroken(listener: () => void): void {
    this.#onBroken.push(listener);
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#fail();
  }

  /** The program reads everything that is queued now. */
  takeAll(): void {
    for (const { bytes, taken } of this.#queue.splice(0)) {
      this.taken.push(new TextDecoder().decode(bytes));
      taken();
    }
  }

  /** The program closed its end. */
  break(): void {
    this.#fail();
    for (const listener of this.#onBroken.splice(0)) listener();
  }

  #fail(): void {
    for (const { taken } of this.#queue.splice(0)) taken(new Error('broken pipe'));
  }
}

export class FakeChild implements SpawnedChild {
  readonly pid = 4242;
  readonly outputs: readonly FakeOutput[];
  readonly stdin: FakeStdin | undefined;
  readonly signals: string[] = [];
  /** Thrown by the next signals. */
  refusal: Error | undefined;
  #onExit: ((exit: ChildExit) => void)[] = [];

  constructor(options: { outputs?: readonly FakeOutput[]; stdin?: FakeStdin } = {}) {
    this.outputs = options.outputs ?? [new FakeOutput('stdout'), new FakeOutput('stderr')];
    this.stdin = options.stdin;
  }

  onExit(listener: (exit: ChildExit) => void): void {
    this.#onExit.push(listener);
  }

  signalGroup(signal: string): 'delivered' | 'gone' {
    if (this.refusal !== undefined) throw this.refusal;
    this.signals.push(signal);
    return 'delivered';
  }

  /** The child was reaped. */
  exit(exit: Partial<ChildExit> = { code: 0 }): void {
    for (const listener of this.#onExit.splice(0)) listener({ code: null, signal: null, ...exit });
  }

  endOutputs(): void {
    for (const output of this.outputs) output.end();
  }
}
