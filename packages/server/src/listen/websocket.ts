/** A WebSocket listener: decides who gets in, hands each peer's Transport on, keeps connections alive with pings. */
import { createServer, type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import {
  limits,
  type SocketLike,
  socketTransport,
  tokenOffered,
  type Transport,
  WEBSOCKET_SUBPROTOCOL,
} from '@exec-server/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Clock } from '../clock.js';
import type { Authenticate } from '../auth/bearer.js';
import type { Log } from '../serverContext.js';
import { type AdmissionRules, admit, isLoopback } from './admission.js';
import { Liveness, LOOK_EVERY_MS } from './liveness.js';

/** What is listened on unless an address is given. */
export const DEFAULT_HOST = '127.0.0.1';

/** How much of a refused origin the log repeats, in characters: whoever sends it chooses it. */
const MOST_ORIGIN = 200;

/** Where to listen, and who gets in. */
export interface WebSocketListenOptions extends Partial<AdmissionRules> {
  /** IP address to bind. Default `127.0.0.1`; one beyond loopback needs `authenticate` or `allowUnauthenticated`. */
  readonly host?: string | undefined;
  /** Port to bind; 0 picks a free one, which `url` then names. Default 0. */
  readonly port?: number | undefined;
  /**
   * Decides about each upgrade: {@link capabilityToken}, {@link bearerToken}, or your own. Default: everybody gets in.
   */
  readonly authenticate?: Authenticate | undefined;
  /** Listen beyond loopback without authentication: whoever reaches the port can run commands. Default false. */
  readonly allowUnauthenticated?: boolean | undefined;
  /**
   * Whether clients may make http requests from here, unless `http` of the server is false. Default: `http` of the server, and
   * where that is not given, on loopback alone.
   */
  readonly allowHttp?: boolean | undefined;
}

/** A port that is listened on. */
export interface WebSocketListener {
  /** `ws://HOST:PORT` with the real port. */
  readonly url: string;
  /** Takes no further connections; those that are open go on. */
  close(): Promise<void>;
}

export interface WebSocketHooks {
  /** `isSilent`: whether the peer has given no sign of life for so long that it may be gone. */
  readonly accept: (transport: Transport, peerAddress: string, isSilent: () => boolean) => void;
  readonly clock: Clock;
  /** Connections that are open now. */
  readonly connections: () => number;
  readonly log: Log;
}

/** Rejects when the port is taken, or when the bind is refused because nobody would be kept out. */
export async function listenWebSocket(
  options: WebSocketListenOptions,
  hooks: WebSocketHooks,
): Promise<WebSocketListener> {
  const host = options.host ?? DEFAULT_HOST;
  if (!isLoopback(host) && options.authenticate === undefined && options.allowUnauthenticated !== true) {
    throw new Error(
      `refusing to listen on ${host} without authentication: whoever reaches it could run commands; listen on 127.0.0.1, or pass \`authenticate\`, or \`allowUnauthenticated\` if that is wanted`,
    );
  }
  const rules: AdmissionRules = {
    allowedOrigins: options.allowedOrigins ?? [],
    allowedHosts: options.allowedHosts ?? [],
  };
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    // Never the offer that holds a token. A client that offers nothing known is answered without any.
    handleProtocols: (offers) => (offers.has(WEBSOCKET_SUBPROTOCOL) ? WEBSOCKET_SUBPROTOCOL : false),
  });
  const server = createServer((request, response) => {
    const admission = admit(headOf(request, false), rules);
    const { status, body } = admission.kind === 'answer' ? admission : { status: 400, body: '' };
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(body);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.setNoDelay(true);
    // Until the handshake is done nobody else listens; a reset then is no fault.
    const ignoreReset = (): void => {};
    socket.on('error', ignoreReset);
    void upgrade(request, socket).then(
      (refusal) => {
        if (refusal !== undefined) return refuseUpgrade(socket, refusal.status, refusal.body);
        sockets.handleUpgrade(request, socket, head, (webSocket) => {
          socket.off('error', ignoreReset);
          acceptSocket(webSocket, socket, hooks);
        });
      },
      (error: unknown) => {
        hooks.log('error', 'an upgrade failed by a fault of the server', { error });
        refuseUpgrade(socket, 500, '');
      },
    );
  });

  async function upgrade(
    request: IncomingMessage,
    socket: Socket,
  ): Promise<{ status: number; body: string } | undefined> {
    const refused = (reason: string): void =>
      hooks.log('warn', 'connection refused', { peer: addressOf(socket), reason });
    const admission = admit(headOf(request, true), rules);
    if (admission.kind === 'answer') {
      // A page is told nothing; who runs the server is.
      if (admission.status === 403) refused(admission.body === '' ? originText(request) : admission.body);
      return admission;
    }
    if (request.headers['sec-websocket-version'] !== '13') {
      return { status: 400, body: "`Sec-WebSocket-Version` header did not include '13'" };
    }
    const result = await options.authenticate?.({ authorization: authorizationOf(request) });
    if (result?.ok === false) {
      refused(result.body);
      return result;
    }
    if (hooks.connections() >= limits.MAX_CONNECTIONS) {
      const body = `the server has ${limits.MAX_CONNECTIONS} connections, which is its limit`;
      refused(body);
      return { status: 503, body };
    }
    return undefined;
  }

  const address = await bind(server, host, options.port ?? 0);
  return {
    url: `ws://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        // Also those that have not sent a request yet; WebSocket connections are not among them.
        server.closeAllConnections();
      }),
  };
}

function headOf(request: IncomingMessage, upgrade: boolean): Parameters<typeof admit>[0] {
  const { origin, host } = request.headers;
  return { method: request.method ?? 'GET', target: request.url ?? '/', origin, host, upgrade };
}

/**
 * A page in a browser cannot set `Authorization`; what it offers as a subprotocol counts as that. The browser itself may put what it
 * knows for a proxy in between there; a token in the header wins.
 */
function authorizationOf({ headers }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  const offered = tokenOffered(headers['sec-websocket-protocol']);
  const hasToken = authorization !== undefined && /^bearer\b/i.test(authorization);
  return offered === undefined || hasToken ? authorization : `Bearer ${offered}`;
}

function originText({ headers: { origin = '' } }: IncomingMessage): string {
  return `origin ${origin.slice(0, MOST_ORIGIN)} is not allowed; start the server with --allow-origin for it`;
}

function addressOf(socket: Socket): string {
  const address = socket.remoteAddress ?? 'unknown';
  return `${address.includes(':') ? `[${address}]` : address}:${socket.remotePort ?? 0}`;
}

function refuseUpgrade(socket: Socket, status: number, body: string): void {
  const bytes = Buffer.byteLength(body);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${bytes}\r\n\r\n${body}`,
    () => socket.destroySoon(),
  );
}

function acceptSocket(webSocket: WebSocket, socket: Socket, hooks: WebSocketHooks): void {
  const peer = addressOf(socket);
  // The errors are told by the close event that follows.
  webSocket.on('error', () => {});
  // `ws` declares its handler properties with its own event classes; the members used are the same.
  const transport = socketTransport(webSocket as unknown as SocketLike, {
    label: peer,
    carrier: socket,
    pings: {
      ping: (payload) => webSocket.ping(payload),
      onPong: (listener) => void webSocket.on('pong', (payload) => listener(payload.toString('latin1'))),
    },
  });
  const liveness = new Liveness();
  for (const sign of ['pong', 'ping', 'message'] as const) webSocket.on(sign, () => liveness.heard());
  const endLooking = keepAlive({ liveness, socket, transport, clock: hooks.clock });
  webSocket.once('close', endLooking);
  hooks.accept(transport, peer, () => liveness.isSuspect);
}

interface Kept {
  readonly liveness: Liveness;
  readonly socket: Socket;
  readonly transport: Transport;
  readonly clock: Clock;
}

/** Pings the peer, and cuts it when it has given no sign of life for too long. The returned function ends that. */
function keepAlive({ liveness, socket, transport, clock }: Kept): () => void {
  let sincePing = 0;
  let cancel: () => void;
  const look = (): void => {
    // `bytesWritten` counts what waits as well.
    const sent = socket.bytesWritten - socket.writableLength;
    liveness.look({ received: socket.bytesRead, sent, waiting: waitingBytes(socket) });
    if (liveness.isIdle) {
      transport.abort({ kind: 'cut', detail: `the peer gave no sign of life for ${limits.IDLE_LIMIT_MS / 1000} s` });
      return;
    }
    sincePing += LOOK_EVERY_MS;
    if (sincePing >= limits.PING_INTERVAL_MS) {
      sincePing = 0;
      // Numbered like any other: a peer may answer the newest ping alone, and that answer speaks for all.
      transport.confirm?.(() => {});
    }
    cancel = clock.after(LOOK_EVERY_MS, look);
  };
  cancel = clock.after(LOOK_EVERY_MS, look);
  return () => cancel();
}

/**
 * What the host has not taken of the write under way. Node counts a write as whole until its last byte is taken, which for a
 * large answer and a slow reader is minutes; what is left of it the handle alone knows, where Node's own idle timer looks as well.
 */
function waitingBytes(socket: Socket): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? socket.writableLength;
}

function bind(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      // A TCP server has an address once it listens; a string would be a pipe's name.
      resolve(server.address() as AddressInfo);
    });
  });
}
