/** A process of one test: its events are taken as they come, and can be waited for. */
import type { ProcessEvent, ProcessHandle } from '@exec-server/client';
import { until } from './until.js';

export class Watched {
  readonly handle: ProcessHandle;
  readonly events: ProcessEvent[] = [];
  /** Settles when the events are over. */
  readonly over: Promise<void>;

  constructor(handle: ProcessHandle) {
    this.handle = handle;
    this.over = this.#follow();
    // A client that fails shows to whoever waits for `over`.
    this.over.catch(() => undefined);
  }

  get id(): string {
    return this.handle.processId;
  }

  get pid(): number {
    const { pid } = this.handle;
    if (pid === undefined) throw new Error(`no pid is known of process ${this.id}`);
    return pid;
  }

  /** What came so far, of every stream. */
  get bytes(): Buffer {
    return Buffer.concat(this.events.map((event) => (event.type === 'output' ? event.bytes : new Uint8Array())));
  }

  get text(): string {
    return this.bytes.toString('utf8');
  }

  /** The kinds of the events so far; output that follows output is told once. */
  get order(): string[] {
    const types = this.events.map(({ type }) => type);
    return types.filter((type, index) => type !== 'output' || types[index - 1] !== 'output');
  }

  /** Waits until the output has `part`. */
  async see(part: string | RegExp, withinMs?: number): Promise<void> {
    const seen = (): boolean => (typeof part === 'string' ? this.text.includes(part) : part.test(this.text));
    await until(() => seen() || this.#isOver, `${part} in the output of ${this.id}`, withinMs);
    if (!seen()) throw new Error(`no ${part} in ${JSON.stringify(this.text)}`);
  }

  /** The numbers the output has, once there are so many. */
  async numbers(count: number): Promise<number[]> {
    const found = (): number[] => (this.text.match(/\d+(?=\r?\n)/g) ?? []).map(Number);
    await until(() => found().length >= count, `${count} numbers in the output of ${this.id}`);
    return found();
  }

  get #isOver(): boolean {
    return this.events.at(-1)?.type === 'closed';
  }

  async #follow(): Promise<void> {
    for await (const event of this.handle) this.events.push(event);
  }
}
