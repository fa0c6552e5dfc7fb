/** A clock that stands still until a test moves it, for a server and for a client. */
import type { Clock as ClientClock } from '@exec-server/client';
import type { Clock } from '@exec-server/server';

interface Timer {
  readonly at: number;
  readonly action: () => void;
}

export class ManualClock implements Clock, ClientClock {
  #now = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  timeOfDay(): number {
    return this.#now;
  }

  after(ms: number, action: () => void): () => void {
    const timer = { at: this.#now + ms, action };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  timer(ms: number, action: () => void): () => void {
    return this.after(ms, action);
  }

  /** Timers that were neither due nor cancelled yet. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves time on; what falls due runs in order, each at its own time, timers set meanwhile included. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let timer = this.#nextDue(end); timer !== undefined; timer = this.#nextDue(end)) {
      this.#timers.delete(timer);
      this.#now = Math.max(this.#now, timer.at);
      timer.action();
    }
    this.#now = end;
  }

  #nextDue(end: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (timer.at <= end && (next === undefined || timer.at < next.at)) next = timer;
    return next;
  }
}
