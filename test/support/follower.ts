/** Takes the events of one process as they come, and checks each against the model. Can be slow on purpose. */
import { isClientError, type ProcessHandle } from '@exec-server/client';
import type { ModelProcess } from './modelProcess.js';

export class Follower {
  readonly handle: ProcessHandle;
  readonly process: ModelProcess;
  readonly #mayMiss: boolean;
  #cursor: number;
  #held = false;
  #failure: Error | undefined;
  #changed: () => void = () => {};
  #go: () => void = () => {};

  /** `mayMiss`: whether gaps are allowed at all. */
  constructor(handle: ProcessHandle, process: ModelProcess, options: { afterSeq?: number; mayMiss: boolean }) {
    this.handle = handle;
    this.process = process;
    this.#cursor = options.afterSeq ?? 0;
    this.#mayMiss = options.mayMiss;
    this.#follow().catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      this.#changed();
    });
  }

  get cursor(): number {
    return this.#cursor;
  }

  get held(): boolean {
    return this.#held;
  }

  /** Takes nothing more until it is let go. */
  hold(): void {
    this.#held = true;
  }

  letGo(): void {
    this.#held = false;
    this.#go();
  }

  /** Has everything that came out of its process; throws what was wrong with it. */
  async caughtUp(): Promise<void> {
    while (this.#cursor < this.process.events.length && this.#failure === undefined) await this.#change();
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Resolves with the code of the error it ended with, which must name its cursor; undefined after `closed`. */
  async ended(): Promise<string | undefined> {
    this.letGo();
    const isOver = (): boolean => this.process.events[this.#cursor - 1]?.type === 'closed';
    while (this.#failure === undefined && !isOver()) await this.#change();
    if (this.#failure === undefined) return undefined;
    if (!isClientError(this.#failure)) throw this.#failure;
    const { code, data } = this.#failure;
    if (data.cursor !== this.#cursor) throw new Error(`${code} names cursor ${data.cursor}, not ${this.#cursor}`);
    return code;
  }

  async #follow(): Promise<void> {
    for await (const event of this.handle) {
      while (this.#held) await new Promise<void>((resolve) => (this.#go = resolve));
      const first = event.type === 'gap' ? event.fromSeq : event.seq;
      if (first !== this.#cursor + 1) throw new Error(`event ${first} (${event.type}) came behind ${this.#cursor}`);
      if (event.type === 'gap') {
        if (!this.#mayMiss) throw new Error(`events ${event.fromSeq}-${event.throughSeq} are said to be gone`);
        this.process.expectGap(event);
      } else this.process.expectEvent(event);
      this.#cursor = event.type === 'gap' ? event.throughSeq : event.seq;
      this.#changed();
    }
  }

  #change(): Promise<void> {
    return new Promise((resolve) => (this.#changed = resolve));
  }
}
