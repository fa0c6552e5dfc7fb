/** Time that a test moves by hand. */
import type { Clock } from '../clock.js';

interface Timer {
  readonly at: number;
  readonly action: () => void;
}

export class FakeClock implements Clock {
  #now = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  timer(ms: number, action: () => void): () => void {
    const timer = { at: this.#now + ms, action };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** As if the program stood still for `ms`: what fell due meanwhile is late, and fires at the next `advance`. */
  skip(ms: number): void {
    this.#now += ms;
  }

  /** Moves on by `ms`; timers fire in the order of their times, new ones included. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.action();
    }
    this.#now = end;
  }
}
