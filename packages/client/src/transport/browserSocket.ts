/** A connection by the WebSocket of a browser: no header but the subprotocol, no ping frames, no word on why it failed. */
import { type SocketLike, socketTransport, subprotocolsFor, type Transport } from '@exec-server/protocol';
import { ClientError } from '../errors.js';
import type { Carrier } from './dialer.js';
import { givenUp } from './givenUp.js';
import type { SocketRequest } from './host.js';

/** What is used of a browser's WebSocket; the types here are those of Node, which has none before version 22. */
interface BrowserSocket extends SocketLike {
  onopen: (() => void) | null;
  addEventListener(type: 'close', listener: () => void, options: { readonly once: true }): void;
}

type BrowserSocketClass = new (url: string, protocols?: readonly string[]) => BrowserSocket;

/** Without a token no subprotocol is offered: a server that selects none would be refused by the browser. */
export function openSocket({ url, label, token, signal }: SocketRequest): Promise<Carrier> {
  const { WebSocket } = globalThis as { readonly WebSocket?: BrowserSocketClass };
  if (WebSocket === undefined) {
    return Promise.reject(new ClientError('NOT_SUPPORTED', 'there is no WebSocket here to connect with'));
  }
  let socket: BrowserSocket;
  try {
    socket = new WebSocket(url.href.replace(/^http/, 'ws'), token === undefined ? [] : subprotocolsFor(token));
  } catch (error) {
    return Promise.reject(forbidden(label, error));
  }
  let leave = (): void => {};
  const gone = new Promise<void>((done) => (leave = done));
  socket.addEventListener('close', leave, { once: true });
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      reject(givenUp(label));
      socket.close();
    };
    signal.addEventListener('abort', giveUp, { once: true });
    socket.onopen = () => {
      signal.removeEventListener('abort', giveUp);
      resolve({ transport: leaving(socketTransport(socket, { label }), leave), gone });
    };
    void gone.then(() => {
      signal.removeEventListener('abort', giveUp);
      reject(noConnection(label));
    });
  });
}

/**
 * A page cannot cut: of a server that says nothing the browser awaits the close for a minute. Once this side has given the
 * connection up, what is left of it is the browser's, and nobody waits for it.
 */
function leaving(inner: Transport, leave: () => void): Transport {
  return {
    label: inner.label,
    get queuedBytes() {
      return inner.queuedBytes;
    },
    start: (listener) => inner.start(listener),
    send: (message) => inner.send(message),
    pause: () => inner.pause(),
    resume: () => inner.resume(),
    close: (reason) => inner.close(reason),
    abort: (reason) => {
      inner.abort(reason);
      leave();
    },
  };
}

/** The browser keeps the cause from the page; its console has it. */
function noConnection(label: string): ClientError {
  return new ClientError(
    'CONNECT_FAILED',
    `no connection to ${label}, and browsers do not say why: check that the server runs there, that it allows the origin of this page (--allow-origin), and the token`,
    { url: label, retryable: true },
  );
}

/** From a page that came by https, for one, only `wss:` may be used. */
function forbidden(label: string, error: unknown): ClientError {
  const text = error instanceof Error ? error.message : String(error);
  return new ClientError('REFUSED', `the browser does not connect to ${label}: ${text}`, { url: label }, error);
}
