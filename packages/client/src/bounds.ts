/** Deadline and abort of one call. Both are local: nothing of them reaches the wire or the JSON-RPC library. */
import type { Clock } from './clock.js';
import { ClientError, type ClientErrorData } from './errors.js';
import { onAbort } from './signals.js';

export interface BoundOptions {
  /** How long the call may take, waiting for a connection included. */
  readonly timeoutMs?: number | undefined;
  /** Gives up waiting; what was sent may still take effect. */
  readonly signal?: AbortSignal | undefined;
}

/** What a caller is told who gave up, or whose time is over. */
export interface BoundErrors {
  aborted(reason: unknown): ClientError;
  timedOut(timeoutMs: number): ClientError;
}

/** Those of a call that may have been sent; `what` stands in them, for example a method. */
export function callErrors(what: string, data: ClientErrorData = {}, changesNothing = false): BoundErrors {
  const sent = changesNothing ? 'it changes nothing' : 'if it was sent, it may still take effect';
  const late = changesNothing
    ? 'it changes nothing, so it may be repeated'
    : 'it may still take effect, so look before you repeat it';
  return {
    aborted: (reason) => {
      const message = `${what} was aborted by the caller; ${sent}`;
      return new ClientError('ABORTED', message, data, reason);
    },
    timedOut: (timeoutMs) => {
      const message = `${what} was not answered within ${timeoutMs} ms; ${late}; \`timeoutMs\` allows more`;
      return new ClientError('REQUEST_TIMEOUT', message, data);
    },
  };
}

export class Bounds {
  #error: ClientError | undefined;
  readonly #waiting = new Set<(error: ClientError) => void>();
  readonly #cleanUp: () => void;

  /** `disposed` is called when the owner has let go of it. */
  constructor({ timeoutMs, signal }: BoundOptions, clock: Clock, errors: BoundErrors, disposed?: () => void) {
    const cancel =
      timeoutMs === undefined ? undefined : clock.timer(timeoutMs, () => this.#end(errors.timedOut(timeoutMs)));
    this.#cleanUp = () => {
      cancel?.();
      forget();
      disposed?.();
    };
    const forget = onAbort(signal, (reason) => this.#end(errors.aborted(reason)));
  }

  /** Whether the caller has given up, or the time is over. */
  get over(): boolean {
    return this.#error !== undefined;
  }

  /** Throws when the call is over. */
  check(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  /** What the promise gives, unless the call is over before. */
  race<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUp = (error: ClientError): void => reject(error);
      this.#waiting.add(giveUp);
      promise.then(
        (value) => {
          this.#waiting.delete(giveUp);
          resolve(value);
        },
        (error: unknown) => {
          this.#waiting.delete(giveUp);
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      );
      if (this.#error !== undefined) reject(this.#error);
    });
  }

  dispose(): void {
    this.#cleanUp();
  }

  #end(error: ClientError): void {
    this.#error ??= error;
    for (const giveUp of this.#waiting) giveUp(this.#error);
    this.#waiting.clear();
  }
}
