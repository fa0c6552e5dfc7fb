/** The highest values of a server's gauges while a test runs. */
import type { ExecServer } from '@exec-server/server';

const watched = ['retainedBytes', 'spooledBytes', 'queuedBytes', 'stdinQueuedBytes'] as const;
type Watched = (typeof watched)[number];

const EVERY_MS = 2;

export class Peaks {
  readonly #server: ExecServer;
  readonly #timer: NodeJS.Timeout;
  readonly #highest: Record<Watched, number> = {
    retainedBytes: 0,
    spooledBytes: 0,
    queuedBytes: 0,
    stdinQueuedBytes: 0,
  };

  constructor(server: ExecServer) {
    this.#server = server;
    this.#timer = setInterval(() => this.sample(), EVERY_MS);
  }

  sample(): void {
    const gauges = this.#server.gauges();
    for (const name of watched) this.#highest[name] = Math.max(this.#highest[name], gauges[name]);
  }

  /** Ends the watch. */
  stop(): Readonly<Record<Watched, number>> {
    clearInterval(this.#timer);
    this.sample();
    return this.#highest;
  }
}
