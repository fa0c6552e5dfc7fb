/** An http proxy on loopback: passes on what names a whole address, and opens tunnels. */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface ProxiedRequest {
  readonly method: string;
  /** A whole address, or host and port of a tunnel. */
  readonly target: string;
  /** Name and value in turn, as they came. */
  readonly rawHeaders: readonly string[];
}

export class ProxyFixture implements AsyncDisposable {
  readonly #server: Server;
  readonly #tunnels = new Set<Socket>();
  readonly port: number;
  readonly seen: ProxiedRequest[] = [];
  /** What tunnels are answered with; by default they are opened. */
  refusal: string | undefined;

  private constructor(server: Server) {
    this.#server = server;
    // It listens on TCP.
    this.port = (server.address() as AddressInfo).port;
    server.on('request', (asked, response) => this.#passOn(asked, response));
    // It is a socket of TCP as the server is one.
    server.on('connect', (asked, socket) => this.#tunnel(asked, socket as Socket));
  }

  static async start(): Promise<ProxyFixture> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new ProxyFixture(server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    for (const socket of this.#tunnels) socket.destroy();
    await closed;
  }

  #note({ method = '', url = '', rawHeaders }: IncomingMessage): string {
    this.seen.push({ method, target: url, rawHeaders });
    return url;
  }

  #passOn(asked: IncomingMessage, response: ServerResponse): void {
    const target = this.#note(asked);
    const passed = request(target, { method: asked.method ?? 'GET', headers: asked.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
    });
    passed.once('error', () => response.writeHead(502).end());
    asked.pipe(passed);
  }

  #tunnel(asked: IncomingMessage, socket: Socket): void {
    const target = new URL(`http://${this.#note(asked)}`);
    // A peer that leaves takes the other side with it.
    socket.on('error', () => {});
    if (this.refusal !== undefined) {
      socket.end(this.refusal);
      return;
    }
    const onward = connect(Number(target.port), target.hostname);
    onward.on('error', () => {}).once('close', () => socket.destroy());
    socket.once('close', () => onward.destroy());
    for (const one of [socket, onward]) {
      this.#tunnels.add(one);
      one.once('close', () => this.#tunnels.delete(one));
    }
    onward.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
  }
}
