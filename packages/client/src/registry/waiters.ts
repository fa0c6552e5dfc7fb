/** Callers that wait for one outcome of a process. Pure. */
import type { ClientError } from '../errors.js';

/** A wait that can be given up, so that polling leaves nothing behind. */
export interface Wish<T> {
  readonly promise: Promise<T>;
  forget(): void;
}

interface Waiter<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: ClientError) => void;
}

export class Waiters<T> {
  readonly #waiting = new Set<Waiter<T>>();

  get size(): number {
    return this.#waiting.size;
  }

  add(): Wish<T> {
    let waiter: Waiter<T> | undefined;
    const promise = new Promise<T>((resolve, reject) => {
      waiter = { resolve, reject };
      this.#waiting.add(waiter);
    });
    return {
      promise,
      forget: () => {
        if (waiter !== undefined) this.#waiting.delete(waiter);
      },
    };
  }

  resolve(value: T): void {
    this.#settle((waiter) => waiter.resolve(value));
  }

  reject(error: ClientError): void {
    this.#settle((waiter) => waiter.reject(error));
  }

  #settle(settle: (waiter: Waiter<T>) => void): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const waiter of waiting) settle(waiter);
  }
}

/** A wait whose outcome is known. */
export function settled<T>(promise: Promise<T>): Wish<T> {
  return { promise, forget: () => {} };
}
