/**
 * Order of the requests of one connection. They begin in the order of arrival; what parks gives its place away; urgent ones
 * wait for nobody. With a concurrency of one it is strictly one after the other, as in the base protocol.
 */
import { limits, WireError } from '@exec-server/protocol';
import PQueue from 'p-queue';
import { Parked } from './parking.js';

export interface DispatcherOptions {
  /** Undefined: the rule above with a limit. 1: strictly one at a time, waits included. */
  readonly concurrentRequests: number | undefined;
}

export class Dispatcher {
  readonly #strict: boolean;
  readonly #queue: PQueue;
  readonly #idle = new Set<() => void>();
  #pending = 0;

  constructor(options: DispatcherOptions) {
    this.#strict = options.concurrentRequests === 1;
    this.#queue = new PQueue({ concurrency: options.concurrentRequests ?? limits.CONCURRENT_REQUESTS });
  }

  /** Requests that are not answered yet, parked ones included. */
  get pending(): number {
    return this.#pending;
  }

  async dispatch(urgent: boolean, run: () => unknown): Promise<unknown> {
    if (this.#pending >= limits.PENDING_REQUESTS_PER_CONNECTION) {
      throw new WireError('tooManyRequests', `${this.#pending} requests of this connection are unanswered`, {
        limit: limits.PENDING_REQUESTS_PER_CONNECTION,
      });
    }
    this.#pending += 1;
    try {
      if (this.#strict) return await this.#queue.add(() => unpark(run()));
      const outcome = urgent ? await run() : await this.#queue.add(async () => run());
      return await unpark(outcome);
    } finally {
      this.#pending -= 1;
      if (this.#pending === 0) {
        for (const tell of this.#idle) tell();
        this.#idle.clear();
      }
    }
  }

  /** Settles when nothing is pending. */
  idle(): Promise<void> {
    if (this.#pending === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.add(resolve));
  }
}

async function unpark(outcome: unknown): Promise<unknown> {
  let settled = await outcome;
  // A call that waited for a start may have to wait again.
  while (settled instanceof Parked) settled = await settled.answer;
  return settled;
}
