/** One connection through the proxy: two sockets and the link between them. */
import { connect, type Socket } from 'node:net';
import { ByteLink } from './byteLink.js';
import type { ConnectionFaults, Direction, FaultAction, FlowShape } from './faultPlan.js';
import { WebSocketScanner } from './wsFrames.js';

export interface ProxyConnectionOptions {
  readonly client: Socket;
  readonly target: { readonly host: string; readonly port: number };
  readonly faults: ConnectionFaults;
  readonly shape: Readonly<Record<Direction, FlowShape | undefined>>;
  readonly passed: (direction: Direction, bytes: number) => void;
  readonly connected: () => void;
  readonly faulted: (action: FaultAction) => void;
  readonly cut: (hard: boolean) => void;
  /** Both sockets are closed; nothing follows. */
  readonly gone: (detail: string) => void;
}

export class ProxyConnection {
  readonly link: ByteLink;
  readonly #options: ProxyConnectionOptions;
  readonly #client: Socket;
  readonly #server: Socket;
  #open = 2;
  #detail = 'ended by its two sides';

  constructor(options: ProxyConnectionOptions) {
    this.#options = options;
    const { client, faults, shape, target } = options;
    const server = connect({ host: target.host, port: target.port, allowHalfOpen: true, noDelay: true });
    this.#client = client;
    this.#server = server;
    client.setNoDelay(true);
    this.link = new ByteLink({
      up: { source: client, sink: server, faults, scanner: new WebSocketScanner(), shape: shape.up },
      down: { source: server, sink: client, faults, scanner: new WebSocketScanner(), shape: shape.down },
      passed: options.passed,
      faulted: options.faulted,
      sever: (hard) => this.#sever(hard),
    });
    server.once('connect', () => {
      options.connected();
      this.link.start();
    });
    this.#watch(client, server, 'the client side');
    this.#watch(server, client, 'the server side');
  }

  /** Ends without a fault: both sockets go at once. */
  destroy(): void {
    this.link.dispose();
    this.#client.destroy();
    this.#server.destroy();
  }

  #sever(hard: boolean): void {
    this.#detail = 'cut';
    this.#options.cut(hard);
    for (const socket of [this.#client, this.#server]) {
      if (socket.destroyed) continue;
      if (hard || socket.connecting) {
        reset(socket);
      } else {
        // What it still sends is read and dropped: unread bytes would turn the FIN into a reset.
        socket.resume();
        socket.end(() => socket.destroy());
      }
    }
  }

  #watch(socket: Socket, other: Socket, name: string): void {
    socket.on('error', (error) => {
      if (this.#detail !== 'cut') this.#detail = `${name}: ${error.message}`;
    });
    socket.once('close', (hadError) => {
      this.#open -= 1;
      if (this.#open === 0) {
        this.link.dispose();
        this.#options.gone(this.#detail);
      } else if (hadError && !this.link.silent) {
        // A side that was reset resets the other, as one wire would.
        this.link.dispose();
        reset(other);
      }
    });
  }
}

/**
 * A socket that is still being dialled has nobody to reset, and would wait for its dial first. One whose own direction has
 * ended cannot be reset: libuv refuses to (uv_tcp_close_reset), and Node then never closes it. Its peer has the end already.
 */
function reset(socket: Socket): void {
  if (socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
