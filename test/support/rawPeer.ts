/** A WebSocket peer that knows JSON-RPC and nothing else: what it says, and what it makes of the answers, is up to the test. */
import { once } from 'node:events';
import WebSocket from 'ws';

export type Members = Readonly<Record<string, unknown>>;

export interface RawHandlers {
  notification?(method: string, params: Members): void;
  /** Told each message as it comes, before anybody else. */
  message?(message: Members, bytes: number): void;
}

/** An error answer. */
export class RawError extends Error {
  readonly code: number;
  readonly data: Members;

  constructor({ code, message, data }: { code: number; message: string; data?: Members }) {
    super(message);
    this.code = code;
    this.data = data ?? {};
  }
}

export class ConnectionLost extends Error {}

interface Pending {
  readonly answered: (result: Members) => void;
  readonly failed: (error: Error) => void;
}

export class RawPeer {
  readonly #socket: WebSocket;
  readonly #handlers: RawHandlers;
  readonly #pending = new Map<number, Pending>();
  /** Settles when the connection is gone. */
  readonly closed: Promise<void>;
  #nextId = 1;

  private constructor(socket: WebSocket, handlers: RawHandlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    socket.on('message', (data: Buffer) => this.#received(data));
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        for (const { failed } of this.#pending.values()) failed(new ConnectionLost('the connection was lost'));
        this.#pending.clear();
        resolve();
      });
    });
  }

  static async dial(url: string, handlers: RawHandlers = {}): Promise<RawPeer> {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    const peer = new RawPeer(socket, handlers);
    await once(socket, 'open');
    // The close that follows tells as much.
    socket.on('error', () => {});
    return peer;
  }

  /** Shakes hands; the answer to `initialize`. */
  async initialize(params: Members): Promise<Members> {
    const result = await this.request('initialize', { clientName: 'raw', ...params });
    this.notify('initialized', {});
    return result;
  }

  /** `use` sees the answer before the next message is looked at. Rejects with RawError, or ConnectionLost. */
  request<R = Members>(
    method: string,
    params: Members,
    use: (result: Members) => R = (result) => result as R,
  ): Promise<R> {
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise<R>((resolve, reject) => {
      const answered = (result: Members): void => {
        try {
          resolve(use(result));
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      this.#pending.set(id, { answered, failed: reject });
      this.#send({ id, method, params });
    });
  }

  notify(method: string, params: Members): void {
    this.#send({ method, params });
  }

  /** Nothing is read from the socket any more, pings included. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Ends the connection without a word; what is still in it is lost. */
  async cut(): Promise<void> {
    this.#socket.terminate();
    await this.closed;
  }

  #send(message: Members): void {
    // A socket that is closing has its pending requests rejected by its close.
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #received(data: Buffer): void {
    // What `terminate` left in the parser was not received.
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    const message = JSON.parse(data.toString('utf8')) as Members;
    this.#handlers.message?.(message, data.length);
    if (typeof message['method'] === 'string') {
      this.#handlers.notification?.(message['method'], message['params'] as Members);
      return;
    }
    const pending = this.#pending.get(message['id'] as number);
    if (pending === undefined) throw new Error(`an answer to no request: ${data.toString('utf8', 0, 200)}`);
    this.#pending.delete(message['id'] as number);
    if (message['error'] === undefined) pending.answered(message['result'] as Members);
    else pending.failed(new RawError(message['error'] as { code: number; message: string; data?: Members }));
  }
}

/** Params of `process/start` with what the protocol requires. */
export function startOf(processId: string, argv: readonly string[], stdin: 'pipe' | 'none' = 'none'): Members {
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin' };
  return { processId, argv, cwd: 'file:///', env, tty: false, pipeStdin: stdin === 'pipe', arg0: null };
}
