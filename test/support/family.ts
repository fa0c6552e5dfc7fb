/** Real processes of one test, in sessions of their own; none is left after `end`. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

export interface Relative {
  readonly pid: number;
  /** The next line it prints, as a number: a pid, mostly. */
  readonly number: () => Promise<number>;
}

export class Family {
  readonly #tag = `FAMILY=${randomUUID()}`;
  readonly #others: number[] = [];

  /** Runs a shell script as the leader of a session. */
  sh(script: string, env: Readonly<Record<string, string>> = {}): Relative {
    const [name = '', value] = this.#tag.split('=');
    const child = spawn('/bin/sh', ['-c', script], {
      env: { PATH: '/usr/bin:/bin', ...env, [name]: value },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    if (child.pid === undefined) throw new Error('the shell did not start');
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    return { pid: child.pid, number: async () => Number((await lines.next()).value) };
  }

  /** For a process that cleared its environment: `end` would not know it. */
  adopt(pid: number): number {
    this.#others.push(pid);
    return pid;
  }

  end(): void {
    const tagged = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry) && this.#isTagged(entry));
    for (const pid of [...tagged.map(Number), ...this.#others.splice(0)]) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
  }

  #isTagged(entry: string): boolean {
    try {
      return readFileSync(`/proc/${entry}/environ`, 'latin1').includes(this.#tag);
    } catch {
      // It ended since the listing.
      return false;
    }
  }
}
