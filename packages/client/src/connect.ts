/** `connect`: picks the transport and waits for the first connection. */
import { host } from '#host';
import { Client } from './client.js';
import { ClientError } from './errors.js';
import { checkAttach, type CommonOptions } from './options.js';
import { type ClientInternals, Session } from './session.js';
import type { ChildOptions } from './transport/childOptions.js';
import type { Dialer } from './transport/dialer.js';
import { type GivenTransport, givenDialer } from './transport/given.js';
import { type WebSocketOptions, webSocketDialer } from './transport/websocket.js';

/** A connection of your own making. */
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
 * `data.body`), INITIALIZE_TIMEOUT, SESSION_EXPIRED for a `resumeSessionId` the server no longer has, SERVER_GONE for one
 * of another `epoch`, SERVER_ERROR with `data.reason` `attachedElsewhere` while another client controls it, or
 * PROTOCOL_VIOLATION, or INVALID_ARGUMENT for a `command` that is no array of strings; nothing is left behind then. A client
 * keeps its program running until it is closed, detached or failed.
 *
 * @example
 * ```ts
 * await using client = await connect({ url: 'ws://127.0.0.1:7000', token: () => readToken() });
 * client.onState((state, error) => console.error(state, error?.message ?? ''));
 * console.log((await client.run(['uname', '-a'])).text());
 * ```
 */
export function connect(options: ConnectOptions): Promise<Client> {
  return connectWith(options, {});
}

/** With the clock and chance of a test. */
export async function connectWith(options: ConnectOptions, internals: ClientInternals): Promise<Client> {
  const dialer = dialerOf(options);
  checkAttach(options);
  const session = new Session(dialer, options, internals);
  await session.opened();
  return new Client(session, options);
}

function dialerOf(options: ConnectOptions): Dialer {
  if (typeof options !== 'object' || options === null) throw noServer();
  // A member that is there and undefined says nothing.
  if ('url' in options && options.url !== undefined) return webSocketDialer(options);
  if ('command' in options && options.command !== undefined) {
    checkCommand(options.command);
    return host.childDialer(options);
  }
  if ('transport' in options && options.transport !== undefined) return givenDialer(options.transport);
  throw noServer();
}

function noServer(): ClientError {
  const message =
    'connect needs an object with `url`, `command` or `transport`, and none was given; nothing was started';
  return new ClientError('INVALID_ARGUMENT', message, { argument: 'options' });
}

/** Throws INVALID_ARGUMENT for a shell line, an empty array and whatever else names no program. */
function checkCommand(command: unknown): void {
  if (Array.isArray(command) && command.length > 0 && command.every((part) => typeof part === 'string')) return;
  const message =
    'command cannot be used: pass the server program and its arguments as an array of strings; nothing was started';
  throw new ClientError('INVALID_ARGUMENT', message, { argument: 'command' });
}
