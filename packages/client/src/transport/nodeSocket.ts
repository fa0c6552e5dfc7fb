/** A connection by `ws`: the token in a header, ping frames, the words of a refusal. */
import { limits, type SocketLike, socketTransport } from '@exec-server/protocol';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import { ClientError } from '../errors.js';
import { connectError, refusalError } from './dialErrors.js';
import type { Carrier, Pulse } from './dialer.js';
import { givenUp } from './givenUp.js';
import type { SocketRequest } from './host.js';

/** How much of a refusal's body an error carries, and how long it may pause before it is taken for the end. */
const BODY_BYTES = 1_024;
const BODY_PAUSE_MS = 500;
export function openSocket({ url, label, token, signal }: SocketRequest): Promise<Carrier> {
  let socket: WebSocket;
  try {
    // `ws` sends no Origin by itself and switches Nagle's algorithm off.
    socket = new WebSocket(url, {
      perMessageDeflate: false,
      maxPayload: limits.MAX_MESSAGE_BYTES,
      followRedirects: false,
      ...(token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } }),
    });
  } catch (error) {
    return Promise.reject(unusable(label, error));
  }
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
      refusal(label, response, token !== undefined).then((error) => {
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

/** A URL with a fragment, or a token that no header can hold, as one with the line break of its file. */
function unusable(label: string, error: unknown): ClientError {
  const text = error instanceof Error ? error.message : String(error);
  return new ClientError('REFUSED', `no connection to ${label} can be asked for: ${text}`, { url: label }, error);
}

async function refusal(label: string, response: IncomingMessage, hasToken: boolean): Promise<ClientError> {
  return refusalError(label, response.statusCode ?? 0, await startOfBody(response), hasToken);
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
