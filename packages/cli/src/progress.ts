/** What the demo shows while it runs: one line that moves on a terminal, plain lines otherwise. */
import type { WriteStream } from 'node:tty';
import type { ClientState } from '@exec-server/client';

const REDRAW_MS = 80;

export class Progress {
  readonly #out: Pick<WriteStream, 'write'> & { readonly isTTY?: boolean };
  readonly #since = performance.now();
  #drawn = false;
  #lastDraw = Number.NEGATIVE_INFINITY;
  #lostAt: number | undefined;
  #cuts = 0;

  constructor(out: Pick<WriteStream, 'write'> & { readonly isTTY?: boolean }) {
    this.#out = out;
  }

  /** A line that stays. */
  line(text: string): void {
    this.done();
    this.#out.write(`[${this.#elapsed()}] ${text}\n`);
  }

  /** Moves the progress line, on a terminal. */
  update(lines: number, of: number): void {
    const now = performance.now();
    if (this.#out.isTTY !== true || (now - this.#lastDraw < REDRAW_MS && lines < of)) return;
    this.#lastDraw = now;
    const share = Math.min(1, lines / Math.max(1, of));
    const bar = '#'.repeat(Math.round(share * 30)).padEnd(30, '.');
    this.#out.write(`\r\u001b[K[${this.#elapsed()}] ${bar} ${lines} of ${of} files, ${this.#cuts} cuts`);
    this.#drawn = true;
  }

  cut(lines: number): void {
    this.#cuts += 1;
    this.#lostAt = performance.now();
    this.line(`cut ${this.#cuts}: the connection is gone after ${lines} lines; the job goes on`);
  }

  state(state: ClientState): void {
    if (state !== 'ready' || this.#lostAt === undefined) return;
    this.line(`      resumed after ${Math.round(performance.now() - this.#lostAt)} ms, from the last event received`);
    this.#lostAt = undefined;
  }

  /** Removes the progress line. */
  done(): void {
    if (!this.#drawn) return;
    this.#drawn = false;
    this.#out.write('\r\u001b[K');
  }

  #elapsed(): string {
    return `${((performance.now() - this.#since) / 1000).toFixed(2).padStart(5)} s`;
  }
}
