/** A TCP server on loopback that does with each connection what a test says, and knows which are open. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

export class TcpFixture implements AsyncDisposable {
  readonly #server: Server;
  readonly port: number;
  /** Connections that are open. */
  readonly open = new Set<Socket>();
  /** Connections there have been. */
  accepted = 0;

  private constructor(server: Server, serve: (socket: Socket) => void) {
    this.#server = server;
    // It listens on TCP.
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (socket) => {
      this.open.add(socket);
      this.accepted += 1;
      // A peer that leaves is seen in `open`.
      socket.on('error', () => {}).once('close', () => this.open.delete(socket));
      // What is not read hides that a peer has left.
      socket.resume();
      serve(socket);
    });
  }

  static async start(serve: (socket: Socket) => void): Promise<TcpFixture> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new TcpFixture(server, serve);
  }

  /** One whose connections are answered with these bytes as soon as a request has come. */
  static answering(...pieces: readonly (string | Uint8Array)[]): Promise<TcpFixture> {
    return TcpFixture.start((socket) => {
      socket.once('data', () => void writeAll(socket, pieces));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.open) socket.destroy();
    await closed;
  }
}

/** Piece by piece, each as a packet of its own; the connection stays open. */
async function writeAll(socket: Socket, pieces: readonly (string | Uint8Array)[]): Promise<void> {
  for (const piece of pieces) {
    await new Promise((resolve) => socket.write(piece, resolve));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
