/** A client that connects at its first use. */
import type { CallOptions } from './calls.js';
import type { Client } from './client.js';
import { connect, type ConnectOptions } from './connect.js';
import { ClientError } from './errors.js';
import type { HttpOptions, HttpResponse } from './http/httpRequest.js';
import type { ProcessHandle } from './process/processHandle.js';
import type { RunOptions, RunResult } from './process/run.js';
import type { SpawnedProcess, SpawnOptions } from './process/spawn.js';
import type { StartOptions } from './process/startParams.js';

/**
 * Connects at first use, once for all callers that wait. A client that has failed is replaced at the next use, by one with
 * a new session, or with that of `resumeSessionId`, which is taken over by the first one alone; one over stdio is not, since
 * its server and everything it held ended with it, nor is one over a transport that was given ready-made, which has one life.
 * A connection that did not come about is tried again at the next use.
 */
export class LazyClient implements AsyncDisposable {
  readonly #options: ConnectOptions;
  readonly #connect: (options: ConnectOptions) => Promise<Client>;
  #client: Client | undefined;
  #connecting: Promise<Client> | undefined;
  #closed = false;

  /** @internal Use `lazyClient`. */
  constructor(options: ConnectOptions, connectTo: (options: ConnectOptions) => Promise<Client> = connect) {
    this.#options = options;
    this.#connect = connectTo;
  }

  /** The connected client, for everything else; rejects as {@link connect} does, and with CLOSED. */
  get(): Promise<Client> {
    if (this.#closed)
      return Promise.reject(new ClientError('CLOSED', 'the lazy client was closed; make a new one to go on'));
    const client = this.#client;
    const isReplaceable = canDialAgain(this.#options);
    if (client !== undefined && !(isReplaceable && client.state === 'failed')) return Promise.resolve(client);
    this.#connecting ??= this.#open();
    return this.#connecting;
  }

  /** As {@link Client.start}; rejects as {@link connect} does, too. */
  async start(options: StartOptions, call?: CallOptions): Promise<ProcessHandle> {
    return await (await this.get()).start(options, call);
  }

  /** As {@link Client.run}; rejects as {@link connect} does, too. */
  async run(argv: readonly string[], options?: RunOptions): Promise<RunResult> {
    return await (await this.get()).run(argv, options);
  }

  /** As {@link Client.spawn}; rejects as {@link connect} does, too. */
  async spawn(argv: readonly string[], options?: SpawnOptions): Promise<SpawnedProcess> {
    return await (await this.get()).spawn(argv, options);
  }

  /** As {@link Client.http}; rejects as {@link connect} does, too. */
  async http(url: string | URL, options?: HttpOptions): Promise<HttpResponse> {
    return await (await this.get()).http(url, options);
  }

  /** Closes the client, also one that is just connecting. Later uses reject with CLOSED. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#connecting?.catch(() => undefined);
    await this.#client?.close();
  }

  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #open(): Promise<Client> {
    try {
      // Two that take over at every use would take the session from each other in turn.
      const options = this.#client === undefined ? this.#options : { ...this.#options, takeOver: false };
      this.#client = await this.#connect(options);
      return this.#client;
    } finally {
      this.#connecting = undefined;
    }
  }
}

function canDialAgain(options: ConnectOptions): boolean {
  // A member that is there and undefined says nothing.
  if ('url' in options && options.url !== undefined) return true;
  return 'transport' in options && typeof options.transport === 'function';
}

/**
 * A client that connects when it is first used; nothing happens before.
 *
 * @example
 * ```ts
 * const lazy = lazyClient({ url: 'ws://127.0.0.1:7000' });
 * const result = await lazy.run(['date']); // connects
 * const home = (await lazy.get()).environmentInfo.userHomeDir;
 * await lazy.close();
 * ```
 */
export function lazyClient(options: ConnectOptions): LazyClient {
  return new LazyClient(options);
}
