/** Finds processes by a variable of a test's own, whatever the server under test believes of them. */
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { isAlive } from './links.js';

export class Tag {
  readonly #name: string;
  readonly #value = randomUUID();

  constructor(name = 'ACCEPTANCE') {
    this.#name = name;
  }

  /** To be laid over the environment of what is to be found. */
  get env(): Readonly<Record<string, string>> {
    return { [this.#name]: this.#value };
  }

  /** Live processes whose environment has the tag. */
  pids(): number[] {
    const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
    return pids.map(Number).filter((pid) => this.has(pid));
  }

  /** Whether it is alive and tagged. */
  has(pid: number): boolean {
    try {
      const environ = readFileSync(`/proc/${pid}/environ`, 'latin1');
      return environ.includes(`${this.#name}=${this.#value}`) && isAlive(pid);
    } catch {
      // It ended since the listing.
      return false;
    }
  }

  /** For the end of a test, failed ones included. */
  killAll(): void {
    for (const pid of this.pids()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
  }
}
