/** One http connection: requests one after the other, and an end that leaves nothing of it open. */
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { callbackify } from 'node:util';
import type { Client, Dispatcher } from 'undici';
import { askedOrigin, dial, type Route } from './dial.js';
import { type Hop, wireHeaders } from './hop.js';

export interface HostConnectionHost {
  /** It takes another request. */
  idle(connection: HostConnection): void;
  /** It takes none any more. */
  over(connection: HostConnection): void;
}

/** How long an idle connection is kept at most, whatever its server says; undici's own default is 4 s where it says nothing. */
const KEEP_ALIVE_MAX_MS = 30_000;
/** Bytes of the headers of an answer. */
const MAX_HEADER_BYTES = 256 * 1024;

export class HostConnection {
  /** Requests with the same key go over the same connections. */
  readonly key: string;
  readonly #route: Route;
  readonly #host: HostConnectionHost;
  readonly #client: Client;
  readonly #dialing = new AbortController();
  #socket: Socket | undefined;
  #busy = true;
  #destroyed: Promise<void> | undefined;

  /** Waits for a request. */
  constructor(ClientClass: typeof Client, route: Route, host: HostConnectionHost) {
    this.key = keyOf(route);
    this.#route = route;
    this.#host = host;
    this.#client = new ClientClass(askedOrigin(route).origin, {
      connect: (_, callback) => {
        callbackify(() => dial(route, this.#dialing.signal))((error, socket) => {
          // The type says that there is always an error; it is null where there is none.
          if ((error as Error | null) !== null) return callback(error, null);
          this.#socket = socket;
          callback(null, socket);
        });
      },
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // The client says how long a request may take.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    // A connection that ends in the middle of a request tells the request.
    this.#client.on('disconnect', () => {
      if (!this.#busy) void this.destroy();
    });
  }

  send(hop: Hop, handler: Dispatcher.DispatchHandlers): void {
    this.#busy = true;
    const { url, proxy } = this.#route;
    const headers = wireHeaders(hop);
    const isPassedOn = proxy !== undefined && url.protocol === 'http:';
    if (isPassedOn) addForProxy(headers, hop.url, proxy.authorization);
    const path = hop.url.pathname + hop.url.search;
    this.#client.dispatch(
      {
        path: isPassedOn ? hop.url.origin + path : path,
        // The type names common methods; any token is sent as it is.
        method: hop.method as Dispatcher.HttpMethod,
        headers,
        body: bodyOf(hop.body),
      },
      handler,
    );
  }

  /** The answer has come to its end: there may be another request. */
  release(): void {
    if (this.#destroyed !== undefined) return;
    // The host answered without taking the whole request, and would not take what comes behind it.
    if (this.#socket !== undefined && this.#socket.writableLength > 0) return void this.destroy();
    this.#busy = false;
    this.#host.idle(this);
  }

  /** Ends it, a request under way included. Idempotent; never rejects. */
  destroy(reason = new Error('the http connection is not wanted any more')): Promise<void> {
    if (this.#destroyed === undefined) {
      this.#dialing.abort(reason);
      this.#destroyed = this.#client.destroy(reason);
      this.#host.over(this);
    }
    return this.#destroyed;
  }
}

/** undici holds a body until the answer has ended, which may be long after the last of it was sent: a stream is empty then. */
function bodyOf(bytes: Uint8Array | undefined): Uint8Array | Readable | null {
  if (bytes === undefined || bytes.length === 0) return bytes ?? null;
  // `Readable.from` would hold them for as long as it lives.
  let held: Uint8Array | undefined = bytes;
  return new Readable({
    read() {
      const part = held;
      held = undefined;
      this.push(part ?? null);
    },
  });
}

export function keyOf(route: Route): string {
  return `${askedOrigin(route).origin} ${route.proxy === undefined ? '' : route.proxy.url.href}`;
}

/** What a proxy needs that passes a request on. */
function addForProxy(headers: string[], url: URL, authorization: string | undefined): void {
  const given = new Set(headers.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()));
  if (!given.has('host')) headers.push('host', url.host);
  if (authorization !== undefined && !given.has('proxy-authorization')) {
    headers.push('proxy-authorization', authorization);
  }
}
