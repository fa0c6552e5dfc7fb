/** Connections to http servers, kept for a while for the next request; they end with the server. */
import type { Client, Dispatcher } from 'undici';
import { HostConnection, type HostConnectionHost, keyOf } from './hostConnection.js';
import type { Hop } from './hop.js';
import { Proxies } from './proxies.js';

/** Idle connections that are kept; the one that was not used for longest goes first. */
const KEPT_CONNECTIONS = 64;

export class HttpAgents implements HostConnectionHost {
  readonly #proxies: Proxies;
  readonly #open = new Set<HostConnection>();
  /** In the order in which they came to rest. */
  readonly #idle = new Set<HostConnection>();
  #client: typeof Client | undefined;
  #closed = false;

  /** `env` names proxies. */
  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#proxies = new Proxies(env);
  }

  /** To be awaited before `send`: undici is loaded at the first request, as it takes longer than the rest of a start. */
  async ready(): Promise<void> {
    this.#client ??= (await import('undici')).Client;
  }

  /** Sends a request; the connection it goes over is to be released or destroyed when `handler` was told its end. Throws. */
  send(hop: Hop, handler: Dispatcher.DispatchHandlers): HostConnection {
    if (this.#closed || this.#client === undefined) throw new Error('the server is shutting down');
    const proxy = this.#proxies.for(hop.url);
    if (proxy !== undefined && !/^https?:$/.test(proxy.url.protocol)) {
      throw new Error(`proxies of the kind ${proxy.url.protocol.slice(0, -1)} are not supported`);
    }
    const route = { url: hop.url, proxy };
    const key = keyOf(route);
    // The one that was used last is the least likely to be closed by its server.
    const kept = [...this.#idle].findLast((connection) => connection.key === key);
    const connection = kept ?? new HostConnection(this.#client, route, this);
    this.#idle.delete(connection);
    this.#open.add(connection);
    connection.send(hop, handler);
    return connection;
  }

  idle(connection: HostConnection): void {
    this.#idle.add(connection);
    const [oldest] = this.#idle;
    if (this.#idle.size > KEPT_CONNECTIONS) void oldest?.destroy();
  }

  over(connection: HostConnection): void {
    this.#idle.delete(connection);
    this.#open.delete(connection);
  }

  /** Ends every connection, requests under way included. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open].map((connection) => connection.destroy()));
  }
}
