/** Connections over WebSocket, by `ws`. */
import { limits, type SocketLike, socketTransport } from '@exec-server/protocol';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import { ClientError, toClientError } from '../errors.js';
import type { Carrier, Dialer, Pulse } from './dialer.js';

export interface TokenContext {
  readonly url: string;
  /** True when the server has just refused the token of this connection attempt (401); asked once. */
  readonly refused: boolean;
}

export interface WebSocketOptions {
  readonly url: string | URL;
  /** Sent as `Authorization: Bearer`. A function is called at each dial. */
  readonly token?: string | ((context: TokenContext) => string | Promise<string>) | undefined;
}

/** How much of a refusal's body an error carries, and how long it may pause before it is taken for the end. */
const BODY_BYTES = 1_024;
const BODY_PAUSE_MS = 500;
/** Refusals that pass: timeout, too many requests, and faults of a server or of a proxy whose server restarts. */
const isPassing = (status: number): boolean => status === 408 || status === 429 || status >= 500;

/** Error codes that say: this is no WebSocket server (bad frames, bad HTTP), or one whose certificate is not trusted. */
const FINAL_CODES = /^(WS_ERR|HPE_|ERR_TLS|ERR_SSL|EPROTO)|CERT/;

export function webSocketDialer(options: WebSocketOptions): Dialer {
  const url = parseUrl(options.url);
  // Credentials and query may hold secrets; the label goes into errors and logs.
  const label = `${url.protocol}//${url.host}${url.pathname}`;
  return { label, redials: true, ownsServer: false, dial: (signal) => dial(url, label, options, signal) };
}

function parseUrl(address: string | URL): URL {
  const text = String(address);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && ['ws:', 'wss:', 'http:', 'https:'].includes(url.protocol)) return url;
  throw new ClientError('REFUSED', 'the address of the server must be a ws: or wss: URL');
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
  try {
    return await open(url, label, await tokenFor(false), signal);
  } catch (error) {
    const isUnauthorized = error instanceof ClientError && error.data.status === 401;
    if (!isUnauthorized || typeof token !== 'function') throw error;
    return await open(url, label, await tokenFor(true), signal);
  }
}

function open(url: URL, label: string, token: string | undefined, signal: AbortSignal): Promise<Carrier> {
  if (signal.aborted) return Promise.reject(givenUp(label));
  // `ws` sends no Origin by itself and switches Nagle's algorithm off.
  const socket = new WebSocket(url, {
    perMessageDeflate: false,
    maxPayload: limits.MAX_MESSAGE_BYTES,
    followRedirects: false,
    ...(token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } }),
  });
  return new Promise((resolve, reject) => {
    let carrier: Socket | undefined;
    const gone = new Promise<void>((done) => socket.once('close', () => done()));
    const giveUp = (): void => {
      reject(givenUp(label));
      socket.terminate();
    };
    signal.addEventListener('abort', giveUp, { once: true });
    socket.once('upgrade', (response) => (carrier = response.socket));
    socket.once('open', () => {
      signal.removeEventListener('abort', giveUp);
      // The events of `ws` have more members than the transport reads; as properties, handlers are compared too strictly.
      const transport = socketTransport(socket as SocketLike, { label, ...(carrier === undefined ? {} : { carrier }) });
      resolve({ transport, gone, pulse: pulseOf(socket, carrier) });
    });
    socket.once('unexpected-response', (request, response) => {
      refusal(label, response).then((error) => {
        reject(error);
        request.destroy();
      }, reject);
    });
    // Stays for the life of the socket: after the opening, `close` follows and tells.
    socket.on('error', (error) => {
      signal.removeEventListener('abort', giveUp);
      reject(connectError(label, error));
    });
  });
}

function givenUp(label: string): ClientError {
  return new ClientError('CONNECT_FAILED', `the attempt to connect to ${label} was given up`, { url: label });
}

function connectError(label: string, error: Error): ClientError {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code !== undefined && !FINAL_CODES.test(code)) {
    return new ClientError(
      'CONNECT_FAILED',
      `no connection to ${label}: ${textOf(error)}`,
      { url: label, retryable: true },
      error,
    );
  }
  return new ClientError(
    'REFUSED',
    `${label} is not an exec server: ${textOf(error)}; check the URL`,
    { url: label },
    error,
  );
}

/** Attempts on several addresses fail as one error with an empty message. */
function textOf(error: Error): string {
  // Those of OpenSSL end with a line break.
  if (error.message !== '') return error.message.trim().replaceAll(/\s*\n\s*/g, ' ');
  return error instanceof AggregateError ? error.errors.map(String).join('; ') : error.name;
}

async function refusal(label: string, response: IncomingMessage): Promise<ClientError> {
  const status = response.statusCode ?? 0;
  const body = await startOfBody(response);
  const words = body === '' ? '' : `: ${body}`;
  const data = { url: label, status, body };
  if (isPassing(status)) {
    return new ClientError('CONNECT_FAILED', `${label} answered ${status}${words}`, { ...data, retryable: true });
  }
  const advice = status === 401 || status === 403 ? 'check the token' : 'check the URL';
  return new ClientError('REFUSED', `${label} refused the connection with status ${status}${words}; ${advice}`, data);
}

function startOfBody(response: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let body = Buffer.alloc(0);
    const done = (): void => resolve(body.subarray(0, BODY_BYTES).toString('utf8').trim());
    response.on('data', (chunk: Buffer) => {
      body = Buffer.concat([body, chunk]);
      if (body.length >= BODY_BYTES) done();
    });
    // The status has decided; a body that does not come must not turn it into a connection that is too slow.
    response.setTimeout(BODY_PAUSE_MS, done);
    response.on('end', done);
    response.on('close', done);
    response.on('error', done);
  });
}

/** `carrier` is the TCP or TLS socket below; without it only frames count as signs of life. */
function pulseOf(socket: WebSocket, carrier: Socket | undefined): Pulse {
  return {
    ping: () => {
      if (socket.readyState === WebSocket.OPEN) socket.ping();
    },
    onSign: (listener) => {
      for (const frame of ['ping', 'pong'] as const) socket.on(frame, listener);
    },
    counts: () => ({
      received: carrier?.bytesRead ?? 0,
      // `bytesWritten` counts what waits as well.
      sent: carrier === undefined ? 0 : carrier.bytesWritten - carrier.writableLength,
      waiting: carrier === undefined ? socket.bufferedAmount : waitingBytes(carrier),
    }),
  };
}

/**
 * What the host has not taken of the write under way. Node counts a write as whole until its last byte is taken, which for a
 * large message and a slow reader is minutes; what is left of it the handle alone knows, where Node's own idle timer looks as well.
 */
function waitingBytes(socket: Socket): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? socket.writableLength;
}
