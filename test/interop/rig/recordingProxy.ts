/** Stands between a client and a server over WebSocket, passes every message on and keeps it. */
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

export interface WireMessage {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: Readonly<Record<string, unknown>>;
}

export interface Recorded {
  /** Counted from 1. */
  readonly connection: number;
  /** `up` is towards the server. */
  readonly direction: 'up' | 'down';
  readonly message: WireMessage;
}

const options = { perMessageDeflate: false, maxPayload: 0, autoPong: false };

export class RecordingProxy {
  readonly recorded: Recorded[] = [];
  readonly #server: WebSocketServer;
  readonly #sockets = new Set<WebSocket>();
  #connections = 0;

  private constructor(target: string) {
    this.#server = new WebSocketServer({ host: '127.0.0.1', port: 0, ...options });
    this.#server.on('connection', (client) => this.#join(client, target));
  }

  static async start(target: string): Promise<RecordingProxy> {
    const proxy = new RecordingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.once('listening', resolve));
    return proxy;
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** What the client asked with this method, in order. */
  requests(method: string): WireMessage[] {
    return this.recorded.flatMap(({ direction, message }) =>
      direction === 'up' && message.method === method ? [message] : [],
    );
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.terminate();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: WebSocket, target: string): void {
    const connection = (this.#connections += 1);
    const server = new WebSocket(target, options);
    client.pause();
    server.on('open', () => client.resume());
    this.#pass(client, server, (data) => this.#keep(connection, 'up', data));
    this.#pass(server, client, (data) => this.#keep(connection, 'down', data));
  }

  /** No more is taken than the other side takes, and pings are answered by the far end: both tell a server what has arrived. */
  #pass(from: WebSocket, to: WebSocket, keep: (data: Buffer) => void): void {
    this.#sockets.add(from);
    from.on('message', (data: Buffer) => {
      keep(data);
      if (to.readyState !== WebSocket.OPEN) return;
      from.pause();
      to.send(data.toString('utf8'), () => from.resume());
    });
    from.on('ping', (data: Buffer) => to.readyState === WebSocket.OPEN && to.ping(data));
    from.on('pong', (data: Buffer) => to.readyState === WebSocket.OPEN && to.pong(data));
    from.on('close', () => {
      this.#sockets.delete(from);
      to.terminate();
    });
    // The close that follows ends the other side as well.
    from.on('error', () => {});
  }

  #keep(connection: number, direction: Recorded['direction'], data: Buffer): void {
    this.recorded.push({ connection, direction, message: JSON.parse(data.toString('utf8')) as WireMessage });
  }
}
