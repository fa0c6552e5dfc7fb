/** One request and its answer over one http connection. */
import { type Buffer, isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { HttpAgents } from './agents.js';
import type { HostConnection } from './hostConnection.js';
import type { Hop } from './hop.js';

export interface ReceivedHeader {
  /** In lower case. */
  readonly name: string;
  readonly value: string;
}

export interface Answer {
  readonly status: number;
  /** In the order of arrival; those whose values are not UTF-8 are left out. */
  readonly headers: readonly ReceivedHeader[];
  /** Ends with what has come, also when that is not all: `failure` tells. Destroying it ends the http connection. */
  readonly body: Readable;
  /** Why the body is not whole; known once it has ended. */
  readonly failure: () => Error | undefined;
  /** Bytes of the body that have come so far. */
  readonly receivedBytes: () => number;
}

/** Bytes of a body that are read ahead. */
const READ_AHEAD_BYTES = 256 * 1024;

/** Rejects when there is no answer: with the error of the host or of undici, or with the reason of `signal`. */
export async function exchange(agents: HttpAgents, hop: Hop, signal: AbortSignal): Promise<Answer> {
  await agents.ready();
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const handler = new Exchange(resolve, reject, signal);
    handler.goesOver(agents.send(hop, handler));
  });
}

class Exchange implements Dispatcher.DispatchHandlers {
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: Error) => void;
  readonly #signal: AbortSignal;
  readonly #body: Readable;
  #connection: HostConnection | undefined;
  #resume: () => void = () => {};
  #receivedBytes = 0;
  #failure: Error | undefined;
  #over = false;

  constructor(resolve: (answer: Answer) => void, reject: (error: Error) => void, signal: AbortSignal) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = signal;
    this.#body = new Readable({
      highWaterMark: READ_AHEAD_BYTES,
      read: () => this.#resume(),
      destroy: (error, done) => {
        this.#cancel(error ?? new Error('the rest of the answer is not wanted'));
        done(error);
      },
    });
    signal.addEventListener('abort', this.#aborted);
  }

  /** To be called once the request is on its way, which may have failed by then. */
  goesOver(connection: HostConnection): void {
    this.#connection = connection;
    if (this.#over) void connection.destroy(this.#failure);
  }

  onConnect(): void {
    // undici wants to be heard; the end of the connection ends the request.
  }

  onHeaders(status: number, raw: Buffer[], resume: () => void): boolean {
    // Others precede the answer.
    if (status < 200 || this.#over) return true;
    this.#resume = resume;
    const headers = decodeHeaders(raw);
    this.#resolve({
      status,
      headers,
      body: this.#body,
      failure: () => this.#failure,
      receivedBytes: () => this.#receivedBytes,
    });
    // There is no body whatever these say; undici would wait for it.
    const announced = headers.some(({ name }) => name === 'content-length' || name === 'transfer-encoding');
    if (announced && (status === 204 || status === 304)) this.#finish('destroy');
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#receivedBytes += chunk.length;
    return this.#body.push(chunk);
  }

  onComplete(): void {
    this.#finish('release');
  }

  onError(error: Error): void {
    this.#cancel(error);
  }

  readonly #aborted = (): void => {
    const reason = this.#signal.reason as unknown;
    this.#cancel(reason instanceof Error ? reason : new Error(String(reason)));
  };

  #cancel(error: Error): void {
    if (this.#over) return;
    this.#failure ??= error;
    this.#reject(error);
    this.#finish('destroy');
  }

  #finish(connection: 'release' | 'destroy'): void {
    if (this.#over) return;
    this.#over = true;
    this.#signal.removeEventListener('abort', this.#aborted);
    // One that is destroyed and at its end would look whole to whoever waits for it.
    if (!this.#body.destroyed) this.#body.push(null);
    if (connection === 'release') this.#connection?.release();
    else void this.#connection?.destroy(this.#failure);
  }
}

/** `raw` has names and values in turn. */
function decodeHeaders(raw: readonly Buffer[]): ReceivedHeader[] {
  const headers: ReceivedHeader[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name, value] = [raw[at], raw[at + 1]];
    if (name === undefined || value === undefined || !isUtf8(value)) continue;
    headers.push({ name: name.toString('latin1').toLowerCase(), value: value.toString('utf8').replace(/[ \t]+$/, '') });
  }
  return headers;
}
