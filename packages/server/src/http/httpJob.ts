/** One `http/request` from its arrival to its last byte: what ends it early, and what the client is told then. */
import { types } from 'node:util';
import { WireError } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import type { Ending } from '../files/connectionFiles.js';
import { BODY_CUT } from './bodyStream.js';
import { invalid } from './httpInput.js';
import { HopFailed, TooManyRedirects } from './perform.js';

/** Codes of undici for requests it does not send as they are. */
const UNSENDABLE = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH']);

export interface HttpJobOptions {
  /** What is asked first. */
  readonly url: string;
  /** For all of it, in ms; undefined for no limit. */
  readonly timeoutMs: number | undefined;
  readonly clock: Clock;
}

export class HttpJob implements Ending {
  readonly #options: HttpJobOptions;
  readonly #controller = new AbortController();
  readonly #cancelTimer: () => void;
  readonly #early: Promise<void>;
  #why: 'timedOut' | 'connectionEnded' | undefined;
  #headCame = false;
  #finished = false;

  constructor(options: HttpJobOptions) {
    this.#options = options;
    this.#early = new Promise((resolve) => this.signal.addEventListener('abort', () => resolve(), { once: true }));
    const { timeoutMs, clock } = options;
    this.#cancelTimer = timeoutMs === undefined ? () => {} : clock.after(timeoutMs, () => this.#abort('timedOut'));
  }

  /** Aborted when the job ends early. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether nobody takes what comes any more. */
  get abandoned(): boolean {
    return this.#why === 'connectionEnded';
  }

  /** What `work` gives; rejects at once when the job ends before. */
  async race<T>(work: Promise<T>): Promise<T> {
    // Nobody waits any more for what fails later.
    work.catch(() => undefined);
    const first = await Promise.race([work.then((value) => ({ value })), this.#early]);
    if (first === undefined) throw new Error(this.#why);
    return first.value;
  }

  /** Status and headers have come. */
  headCame(): void {
    this.#headCame = true;
  }

  /** Nothing is left to be done, and nothing ends it early any more. */
  finish(): void {
    this.#finished = true;
    this.#cancelTimer();
  }

  /** Ends it at once: its connection to the client is over. */
  end(): Promise<void> {
    this.#abort('connectionEnded');
    return Promise.resolve();
  }

  /** An error of this job as the client is told it. */
  wireError(error: unknown): WireError {
    if (error instanceof WireError) return error;
    const hop = error instanceof HopFailed ? error : undefined;
    const text = this.#headCame
      ? `failed to read http/request response body: ${BODY_CUT}`
      : `http/request failed: error sending request for url (${hop?.url ?? this.#options.url})`;
    if (this.#why === 'timedOut') return new WireError('httpTimedOut', text, { timeoutMs: this.#options.timeoutMs });
    if (this.#why === 'connectionEnded') {
      return new WireError('sessionEnded', 'the connection ended before the http request was answered');
    }
    if (error instanceof TooManyRedirects) {
      return new WireError('httpFailed', 'http/request failed: too many redirects', { cause: 'too many redirects' });
    }
    const cause = hop === undefined ? error : hop.cause;
    const code = codeOf(cause);
    if (code !== undefined && UNSENDABLE.has(code)) {
      return invalid('headers', `http/request cannot be sent: ${textOf(cause)}`);
    }
    return new WireError('httpFailed', text, { cause: textOf(cause) });
  }

  #abort(why: 'timedOut' | 'connectionEnded'): void {
    if (this.#finished) return;
    this.#why ??= why;
    this.#cancelTimer();
    this.#controller.abort(new Error(why));
  }
}

function textOf(error: unknown): string {
  if (!types.isNativeError(error)) return String(error);
  // Several addresses that were tried in vain have no text of their own.
  return error.message === '' ? (codeOf(error) ?? error.name) : error.message;
}

function codeOf(error: unknown): string | undefined {
  const code = types.isNativeError(error) && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
