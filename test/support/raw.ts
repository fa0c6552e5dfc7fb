/** A peer that speaks in raw messages, without a client. */
import type { CloseReason, Transport } from '@exec-server/protocol';

export interface RawMessage {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Readonly<Record<string, unknown>>;
  };
}

/** One end of a connection that sends what it is told to send, and keeps what comes. */
export class Raw {
  readonly received: RawMessage[] = [];
  readonly closed: Promise<CloseReason>;
  readonly transport: Transport;
  #taken = 0;
  #lastId = 1000;
  #wake: () => void = () => {};

  constructor(transport: Transport) {
    this.transport = transport;
    this.closed = new Promise((resolve) => {
      transport.start({
        message: (text) => {
          this.received.push(JSON.parse(text) as RawMessage);
          this.#wake();
        },
        drained: () => {},
        ended: () => {},
        closed: resolve,
      });
    });
  }

  send(message: string | object): void {
    this.transport.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** The next message that was not taken yet. */
  async next(): Promise<RawMessage> {
    for (;;) {
      const message = this.received[this.#taken];
      if (message !== undefined) {
        this.#taken += 1;
        return message;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Everything up to and including the answer to this id. */
  async until(id: string | number): Promise<RawMessage[]> {
    const seen: RawMessage[] = [];
    for (;;) {
      const message = await this.next();
      seen.push(message);
      if (message.id === id) return seen;
    }
  }

  async answerTo(id: string | number): Promise<RawMessage> {
    const seen = await this.until(id);
    return seen.at(-1) ?? {};
  }

  /** Sends a request and waits for its answer. */
  call(method: string, params?: unknown): Promise<RawMessage> {
    const id = (this.#lastId += 1);
    this.send({ id, method, params });
    return this.answerTo(id);
  }

  async result(method: string, params?: unknown): Promise<Readonly<Record<string, unknown>>> {
    const { result, error } = await this.call(method, params);
    if (result === undefined) throw new Error(`${method} was refused: ${error?.message ?? ''}`);
    return result;
  }

  async initialize(params: object = {}): Promise<string> {
    const { sessionId } = await this.result('initialize', { clientName: 'raw', ...params });
    this.send({ method: 'initialized' });
    return String(sessionId);
  }
}
