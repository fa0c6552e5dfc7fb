/** The highest values of the gauges of a server and a client while a test runs. */
import type { Client } from '@exec-server/client';
import type { ExecServer } from '@exec-server/server';

const EVERY_MS = 2;

const none = {
  /** Of the server; 0 where it is another program. */
  retainedBytes: 0,
  spooledBytes: 0,
  queuedBytes: 0,
  /** Of the client. */
  tailBytes: 0,
  reorderBytes: 0,
  backlogBytes: 0,
};

export class Peaks {
  readonly #server: ExecServer | undefined;
  readonly #client: Client | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #highest = { ...none };

  constructor({ server, client }: { readonly server?: ExecServer | undefined; readonly client?: Client | undefined }) {
    this.#server = server;
    this.#client = client;
    this.#timer = setInterval(() => this.sample(), EVERY_MS);
  }

  sample(): void {
    const gauges = { ...none, ...this.#server?.gauges(), ...this.#clientGauges() };
    for (const name of Object.keys(none) as (keyof typeof none)[]) {
      this.#highest[name] = Math.max(this.#highest[name], gauges[name]);
    }
  }

  /** Ends the watch. */
  stop(): Readonly<typeof none> {
    clearInterval(this.#timer);
    this.sample();
    return this.#highest;
  }

  /** Without `queuedBytes`, which the server has too. */
  #clientGauges(): Pick<typeof none, 'tailBytes' | 'reorderBytes' | 'backlogBytes'> | undefined {
    if (this.#client === undefined) return undefined;
    const { tailBytes, reorderBytes, backlogBytes } = this.#client.gauges();
    return { tailBytes, reorderBytes, backlogBytes };
  }
}
