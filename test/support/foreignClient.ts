/**
 * A client of the base protocol as its reference behaves: it announces nothing, never acknowledges, and after a cut reads
 * each process once from its cursor and merges the answer with what is pushed. Its limits are those of the reference.
 */
import { type Members, RawError, RawPeer, startOf } from './rawPeer.js';
import { until } from './until.js';

/** Events that may wait for one with a lower number. */
export const WAITING_EVENTS = 256;
export const WAITING_BYTES = 1024 * 1024;

type ForeignEvent =
  | { readonly type: 'output'; readonly stream: string; readonly bytes: Buffer }
  | { readonly type: 'exited'; readonly exitCode: number }
  | { readonly type: 'closed' };

interface Chunk {
  readonly seq: number;
  readonly stream: string;
  readonly chunk: string;
}

interface ReadAnswer {
  readonly chunks: readonly Chunk[];
  readonly nextSeq: number;
  readonly exited: boolean;
  readonly exitCode: number | null;
  readonly closed: boolean;
}

export class ForeignProcess {
  readonly processId: string;
  /** Last number delivered. */
  last = 0;
  exitCode: number | undefined;
  /** The number of the exit, once delivered. */
  exitedSeq: number | undefined;
  closed = false;
  /** Why it failed; nothing is delivered after that. */
  failure: string | undefined;
  /** The most that waited for a lower number. */
  waitedEvents = 0;
  waitedBytes = 0;
  readonly #taken: (bytes: Buffer, stream: string) => void;
  readonly #waiting = new Map<number, ForeignEvent>();
  #waitingBytes = 0;

  constructor(processId: string, taken: (bytes: Buffer, stream: string) => void) {
    this.processId = processId;
    this.#taken = taken;
  }

  get over(): boolean {
    return this.closed || this.failure !== undefined;
  }

  /** An event that was pushed. */
  pushed(seq: number, event: ForeignEvent): void {
    if (this.over || seq <= this.last || this.#waiting.has(seq)) return;
    this.#hold(seq, event);
    if (seq !== this.last + 1) {
      this.waitedEvents = Math.max(this.waitedEvents, this.#waiting.size);
      this.waitedBytes = Math.max(this.waitedBytes, this.#waitingBytes);
      if (this.#waiting.size > WAITING_EVENTS || this.#waitingBytes > WAITING_BYTES) {
        this.failure = `${this.#waiting.size} events with ${this.#waitingBytes} bytes wait for event ${this.last + 1}`;
      }
    }
    this.#deliver();
  }

  /** The answer to the one read after a cut. */
  replayed(answer: ReadAnswer): void {
    const target = answer.nextSeq - 1;
    if (this.over || target <= this.last) return;
    for (const { seq, stream, chunk } of answer.chunks) {
      if (seq <= this.last || this.#waiting.has(seq)) continue;
      this.#hold(seq, { type: 'output', stream, bytes: Buffer.from(chunk, 'base64') });
    }
    if (answer.closed) {
      const known = this.#waiting.get(target);
      if (known !== undefined && known.type !== 'closed')
        return this.#fail(`event ${target} is ${known.type} and the close`);
      if (known === undefined) this.#hold(target, { type: 'closed' });
    }
    const exitKnown = this.exitedSeq !== undefined || [...this.#waiting.values()].some(({ type }) => type === 'exited');
    if (answer.exited && !exitKnown) {
      if (answer.exitCode === null) return this.#fail('an exit without a code');
      const missing = this.#missing(target);
      const [hole] = missing;
      const first = answer.chunks[0]?.seq;
      const isHole = missing.length === 1 || (hole === this.last + 1 && first !== undefined && first > hole);
      if (hole !== undefined && isHole) this.#hold(hole, { type: 'exited', exitCode: answer.exitCode });
    }
    const [missing] = this.#missing(target);
    if (missing !== undefined)
      return this.#fail(`event ${missing} is no longer retained, while recovering through ${target}`);
    this.#deliver();
  }

  #missing(target: number): number[] {
    const missing: number[] = [];
    for (let seq = this.last + 1; seq <= target; seq += 1) if (!this.#waiting.has(seq)) missing.push(seq);
    return missing;
  }

  #fail(failure: string): void {
    this.failure = failure;
  }

  #hold(seq: number, event: ForeignEvent): void {
    this.#waiting.set(seq, event);
    if (event.type === 'output') this.#waitingBytes += event.bytes.length;
  }

  #deliver(): void {
    for (let event = this.#waiting.get(this.last + 1); event !== undefined; event = this.#waiting.get(this.last + 1)) {
      this.last += 1;
      this.#waiting.delete(this.last);
      if (event.type === 'output') {
        this.#waitingBytes -= event.bytes.length;
        this.#taken(event.bytes, event.stream);
      } else if (event.type === 'exited') {
        this.exitCode = event.exitCode;
        this.exitedSeq = this.last;
      } else {
        this.closed = true;
      }
    }
  }
}

export class ForeignClient {
  readonly #url: string;
  readonly #processes = new Map<string, ForeignProcess>();
  readonly #changed = new Set<() => void>();
  #peer: RawPeer | undefined;
  #sessionId: string | undefined;
  #writes = 0;
  /** The largest answers so far. */
  readonly largest = { bytes: 0, chunks: 0, values: 0 };
  /** Bytes of messages received, over all connections. */
  receivedBytes = 0;

  private constructor(url: string) {
    this.#url = url;
  }

  static async open(url: string): Promise<ForeignClient> {
    const client = new ForeignClient(url);
    await client.#dial();
    return client;
  }

  get peer(): RawPeer {
    if (this.#peer === undefined) throw new Error('there is no connection');
    return this.#peer;
  }

  get sessionId(): string {
    return this.#sessionId ?? '';
  }

  /** The process is known from the request on, so that what is pushed before the answer finds it. */
  async start(
    processId: string,
    argv: readonly string[],
    options: { readonly stdin?: 'pipe'; readonly taken?: (bytes: Buffer, stream: string) => void } = {},
  ): Promise<ForeignProcess> {
    const process = this.follow(processId, options.taken);
    await this.peer.request('process/start', startOf(processId, argv, options.stdin));
    return process;
  }

  /** Keeps the events of a process, from its first on. */
  follow(processId: string, taken: (bytes: Buffer, stream: string) => void = () => {}): ForeignProcess {
    const process = new ForeignProcess(processId, taken);
    this.#processes.set(processId, process);
    return process;
  }

  async write(processId: string, text: string): Promise<void> {
    this.#writes += 1;
    const chunk = Buffer.from(text).toString('base64');
    await this.peer.request('process/write', { processId, chunk, writeId: String(this.#writes) });
  }

  async cut(): Promise<void> {
    await this.peer.cut();
  }

  /** Dials until the session is free, and replays unless it only listens. */
  async resume({ listenOnly = false } = {}): Promise<void> {
    await until(() => this.#dial(), 'the session to be free');
    if (listenOnly) return;
    await Promise.all([...this.#processes.values()].filter(({ over }) => !over).map((process) => this.replay(process)));
  }

  /** Waits for the close of a process on this connection. Throws when it fails. */
  async ended(process: ForeignProcess): Promise<void> {
    await this.until(() => process.over);
    if (process.failure !== undefined) throw new Error(`process ${process.processId} failed: ${process.failure}`);
  }

  /** Waits for a condition on what was received; looked at after each message. */
  async until(condition: () => boolean): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const { closed } = this.peer;
      const look = (): void => {
        if (!condition()) return;
        this.#changed.delete(look);
        resolve();
      };
      this.#changed.add(look);
      void closed.then(() => {
        this.#changed.delete(look);
        reject(new Error('the connection was lost meanwhile'));
      });
    });
  }

  /** Calls `look` after each message; the returned function ends that. */
  watch(look: () => void): () => void {
    this.#changed.add(look);
    return () => this.#changed.delete(look);
  }

  /** Reads once from the cursor, and merges. */
  async replay(process: ForeignProcess): Promise<void> {
    const params = { processId: process.processId, afterSeq: process.last, waitMs: 0 };
    await this.peer.request('process/read', params, (answer) => {
      process.replayed(answer as unknown as ReadAnswer);
      for (const look of [...this.#changed]) look();
    });
  }

  /** False while another connection, our own of before mostly, has the session. */
  async #dial(): Promise<boolean> {
    const peer = await RawPeer.dial(this.#url, {
      message: (message, bytes) => this.#measure(message, bytes),
      notification: (method, params) => this.#notified(method, params),
    });
    try {
      const { sessionId } = await peer.initialize({
        clientName: 'codex-environment',
        resumeSessionId: this.#sessionId ?? null,
      });
      if (this.#sessionId !== undefined && sessionId !== this.#sessionId)
        throw new Error('the server changed the session');
      this.#sessionId = sessionId as string;
      this.#peer = peer;
      return true;
    } catch (error) {
      await peer.cut();
      if (error instanceof RawError && error.code === -32010) return false;
      throw error;
    }
  }

  #notified(method: string, params: Members): void {
    const process = this.#processes.get(params['processId'] as string);
    const seq = params['seq'] as number;
    if (method === 'process/output') {
      const bytes = Buffer.from(params['chunk'] as string, 'base64');
      process?.pushed(seq, { type: 'output', stream: params['stream'] as string, bytes });
    } else if (method === 'process/exited') {
      process?.pushed(seq, { type: 'exited', exitCode: params['exitCode'] as number });
    } else if (method === 'process/closed') {
      process?.pushed(seq, { type: 'closed' });
    } else {
      throw new Error(`a notification this client does not know: ${method}`);
    }
    for (const look of [...this.#changed]) look();
  }

  #measure(message: Members, bytes: number): void {
    this.receivedBytes += bytes;
    if (message['result'] === undefined) return;
    const { chunks } = message['result'] as { readonly chunks?: readonly unknown[] };
    this.largest.bytes = Math.max(this.largest.bytes, bytes);
    this.largest.chunks = Math.max(this.largest.chunks, chunks?.length ?? 0);
    this.largest.values = Math.max(this.largest.values, valuesIn(message));
  }
}

/** JSON values in a message, itself included. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, inner) => sum + valuesIn(inner), 1);
}
