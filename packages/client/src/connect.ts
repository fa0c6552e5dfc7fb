/** `connect`: picks the transport and waits for the first connection. */
import { Client } from './client.js';
import { ClientError } from './errors.js';
import { checkAttach, type CommonOptions } from './options.js';
import { type ClientInternals, Session } from './session.js';
import { type ChildOptions, childDialer } from './transport/child.js';
import type { Dialer } from './transport/dialer.js';
import { type GivenTransport, givenDialer } from './transport/given.js';
import { type WebSocketOptions, webSocketDialer } from './transport/websocket.js';

export interface TransportOptions {
  /** A transport that is ready to be started, or a function that makes one for each connection. */
  readonly transport: GivenTransport;
}

/**
 * Where the server is:
 * - `url`: a WebSocket server; a lost connection is restored.
 * - `command`: a server program, started here, that speaks on its stdin and stdout and ends with the client.
 * - `transport`: anything else that carries messages.
 */
export type ConnectOptions = CommonOptions & (WebSocketOptions | ChildOptions | TransportOptions);

/**
 * Connects and shakes hands. The first connection is tried once: rejects with CONNECT_FAILED, REFUSED (`data.status`,
 * `data.body`), INITIALIZE_TIMEOUT, SESSION_EXPIRED for a `resumeSessionId` the server no longer has, SERVER_GONE for one of
 * another `epoch`, SERVER_ERROR with `data.reason` `attachedElsewhere` while another client controls it, or PROTOCOL_VIOLATION;
 * nothing is left behind then.
 */
export function connect(options: ConnectOptions): Promise<Client> {
  return connectWith(options, {});
}

/** With the clock and chance of a test. */
export async function connectWith(options: ConnectOptions, internals: ClientInternals): Promise<Client> {
  checkAttach(options);
  const session = new Session(dialerOf(options), options, internals);
  await session.opened();
  return new Client(session, options);
}

function dialerOf(options: ConnectOptions): Dialer {
  if ('url' in options) return webSocketDialer(options);
  if ('command' in options) return childDialer(options);
  if ('transport' in options) return givenDialer(options.transport);
  throw new ClientError('NOT_SUPPORTED', 'connect needs url, command or transport');
}
