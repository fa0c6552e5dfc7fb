/** Who takes the notifications that are not about processes, by method. What they carry ends with its connection. */
import type { Connection } from './connection.js';
import type { ClientError } from './errors.js';

export interface NoticeTaker {
  /** Takes the params of one notification; false when they do not decode, which ends the connection. */
  take(params: unknown, connection: Connection): boolean;
  /** The connection is over: nothing more of it comes. Told once, after everything that was read before. */
  lost(connection: Connection, error: ClientError): void;
}

export class Notices {
  readonly #takers = new Map<string, NoticeTaker>();

  register(method: string, taker: NoticeTaker): void {
    this.#takers.set(method, taker);
  }

  /** False when it does not decode. Nobody misses methods of a later version, and those of services this client does not use. */
  route(method: string, params: unknown, connection: Connection): boolean {
    return this.#takers.get(method)?.take(params, connection) ?? true;
  }

  lost(connection: Connection, error: ClientError): void {
    for (const taker of new Set(this.#takers.values())) taker.lost(connection, error);
  }
}
