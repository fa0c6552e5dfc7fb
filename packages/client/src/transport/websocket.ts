/** Connections over WebSocket: the address, the token, and who asks for it again. The sockets are those of the host. */
import { host } from '#host';
import { ClientError, toClientError } from '../errors.js';
import type { Carrier, Dialer } from './dialer.js';
import { givenUp } from './givenUp.js';

/** What a token is asked for with. */
export interface TokenContext {
  /** The address of the server, without credentials and query. */
  readonly url: string;
  /** True when the server has just refused the token of this connection attempt (401); asked once. A browser cannot tell. */
  readonly refused: boolean;
}

/** A server that listens for WebSocket connections. */
export interface WebSocketOptions {
  /** Where the server listens: a `ws:` or `wss:` URL; `http:` and `https:` stand for the same. */
  readonly url: string | URL;
  /**
   * What the server asks for: sent as `Authorization: Bearer`, in browsers as a subprotocol. A function is called at each dial,
   * and once more when its token was refused. Default: none is sent.
   */
  readonly token?: string | ((context: TokenContext) => string | Promise<string>) | undefined;
}

/** Its connections can be dialed again. Throws REFUSED for what is no WebSocket address. */
export function webSocketDialer(options: WebSocketOptions): Dialer {
  const url = parseUrl(options.url);
  const label = labelOf(url);
  return { label, redials: true, ownsServer: false, dial: (signal) => dial(url, label, options, signal) };
}

/** What stands for the server in errors and logs: credentials and query may hold secrets. */
const labelOf = ({ protocol, host: place, pathname }: URL): string => `${protocol}//${place}${pathname}`;

function parseUrl(address: string | URL): URL {
  const text = String(address);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['ws:', 'wss:', 'http:', 'https:'].includes(url.protocol)) {
    throw new ClientError(
      'REFUSED',
      'the address of the server must be a URL such as ws://127.0.0.1:7000; nothing was sent',
    );
  }
  if (url.hash === '') return url;
  throw new ClientError(
    'REFUSED',
    'the URL of the server has a fragment; leave the `#` out, and what follows it; nothing was sent',
    { url: labelOf(url) },
  );
}

async function dial(url: URL, label: string, { token }: WebSocketOptions, signal: AbortSignal): Promise<Carrier> {
  const tokenFor = async (refused: boolean): Promise<string | undefined> => {
    if (typeof token !== 'function') return token;
    try {
      return await token({ url: label, refused });
    } catch (error) {
      throw toClientError(error, 'CONNECT_FAILED', `no token for ${label}`);
    }
  };
  const open = async (refused: boolean): Promise<Carrier> => {
    const offered = await tokenFor(refused);
    if (signal.aborted) throw givenUp(label);
    return await host.openSocket({ url, label, token: offered, signal });
  };
  try {
    return await open(false);
  } catch (error) {
    const isUnauthorized = error instanceof ClientError && error.data.status === 401;
    if (!isUnauthorized || typeof token !== 'function') throw error;
    return await open(true);
  }
}
