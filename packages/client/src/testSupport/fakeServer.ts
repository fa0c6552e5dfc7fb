/** A server whose every answer is written by the test: no state, no timers, one connection per dial. */
import { encodeBase64, memoryTransportPair, type Transport } from '@exec-server/protocol';

type Params = Readonly<Record<string, unknown>>;

export interface FakeRequest {
  readonly id: number;
  readonly method: string;
  readonly params: Params;
}

export const EPOCH = 'epoch-1';

/** Answer to `initialize` of a server that speaks the extensions. */
export function extendedReply(sessionId: string, overrides: Params = {}): Params {
  return {
    sessionId,
    environmentInfo: { cwd: 'file:///srv' },
    serverInfo: { name: 'fake', version: '0' },
    protocolVersion: 1,
    extensions: { flowControl: true, terminal: true, files: true },
    epoch: EPOCH,
    limits: { pendingRequests: 100 },
    resumed: false,
    leaseMs: 80_000,
    ...overrides,
  };
}

/** Answer to `process/read`; the members a test cares about over those of an empty one. */
export function readResult(overrides: Params = {}): Params {
  return {
    chunks: [],
    nextSeq: 1,
    exited: false,
    exitCode: null,
    closed: false,
    failure: null,
    sandboxDenied: false,
    ...overrides,
  };
}

export function chunk(seq: number, text: string, stream = 'stdout'): Params {
  return { seq, stream, chunk: encodeBase64(new TextEncoder().encode(text)) };
}

export class FakeConnection {
  readonly #transport: Transport;
  readonly received: FakeRequest[] = [];
  readonly #unclaimed: FakeRequest[] = [];
  #waiting: { readonly method: string; readonly take: (request: FakeRequest) => void }[] = [];
  readonly closed: Promise<void>;
  /** Whether `session/close` is answered by itself. */
  answersClose = true;

  constructor(transport: Transport) {
    this.#transport = transport;
    let close = (): void => {};
    this.closed = new Promise((resolve) => (close = resolve));
    transport.start({
      message: (text) => this.#receive(text),
      drained: () => {},
      ended: () => {},
      closed: () => close(),
    });
  }

  /** The next request or notification of this method; notifications have id 0. */
  next(method: string): Promise<FakeRequest> {
    const index = this.#unclaimed.findIndex((request) => request.method === method);
    const [found] = index === -1 ? [] : this.#unclaimed.splice(index, 1);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((take) => this.#waiting.push({ method, take }));
  }

  /** How often a method was called so far. */
  count(method: string): number {
    return this.received.filter((request) => request.method === method).length;
  }

  answer(request: FakeRequest, result: unknown): void {
    this.raw(JSON.stringify({ id: request.id, result }));
  }

  refuse(request: FakeRequest, code: number, message: string, data?: unknown): void {
    this.raw(JSON.stringify({ id: request.id, error: { code, message, data } }));
  }

  notify(method: string, params: unknown): void {
    this.raw(JSON.stringify({ method, params }));
  }

  output(processId: string, seq: number, text: string, stream = 'stdout'): void {
    this.notify('process/output', { processId, ...chunk(seq, text, stream) });
  }

  exited(processId: string, seq: number, exitCode = 0): void {
    this.notify('process/exited', { processId, seq, exitCode, sandboxDenied: false });
  }

  closedEvent(processId: string, seq: number): void {
    this.notify('process/closed', { processId, seq });
  }

  raw(text: string): void {
    this.#transport.send(text);
  }

  async handshake(reply: unknown): Promise<FakeRequest> {
    const initialize = await this.next('initialize');
    this.answer(initialize, reply);
    await this.next('initialized');
    return initialize;
  }

  /** Takes the next start and answers it. */
  async start(): Promise<string> {
    const request = await this.next('process/start');
    const { processId } = request.params;
    this.answer(request, { processId, sandboxType: 'none', pid: 42 });
    return String(processId);
  }

  /** Takes nothing until `resume`. */
  pause(): void {
    this.#transport.pause();
  }

  resume(): void {
    this.#transport.resume();
  }

  cut(): void {
    this.#transport.abort({ kind: 'cut', detail: 'cut by the test' });
  }

  /** Says that it stops, and closes. */
  stop(): void {
    this.#transport.close({ kind: 'stopped', detail: 'stopped by the test' });
  }

  #receive(text: string): void {
    const { id = 0, method, params = {} } = JSON.parse(text) as Partial<FakeRequest>;
    const request = { id, method: method ?? '', params };
    this.received.push(request);
    if (this.answersClose && request.method === 'session/close') this.answer(request, {});
    const waiter = this.#waiting.find((candidate) => candidate.method === request.method);
    if (waiter === undefined) {
      this.#unclaimed.push(request);
      return;
    }
    this.#waiting = this.#waiting.filter((candidate) => candidate !== waiter);
    waiter.take(request);
  }
}

export class FakeServer {
  readonly connections: FakeConnection[] = [];
  #waiting: ((connection: FakeConnection) => void)[] = [];
  #taken = 0;
  /** Set to refuse dials. */
  refusal: Error | undefined;
  dials = 0;

  /** To be passed as the `transport` option. */
  readonly dial = (): Transport => {
    this.dials += 1;
    if (this.refusal !== undefined) throw this.refusal;
    const [client, server] = memoryTransportPair(['fake server', 'client']);
    const connection = new FakeConnection(server);
    this.connections.push(connection);
    this.#waiting.shift()?.(connection);
    return client;
  };

  /** The next connection nobody has asked for yet. */
  accept(): Promise<FakeConnection> {
    const connection = this.connections[this.#taken];
    this.#taken += 1;
    if (connection !== undefined) return Promise.resolve(connection);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
