/**
 * The order of file requests: one that changes something waits for earlier ones about the same path, a folder above it or a
 * file below it, and later ones about those wait for it. Everything else runs side by side. Pure.
 */
import { type BytePath, isWithin } from '../paths.js';

export interface Claims {
  readonly reads?: readonly BytePath[];
  readonly writes?: readonly BytePath[];
}

interface Running {
  readonly claims: Claims;
  /** Earlier ones it waits for. */
  ahead: number;
  go: () => void;
}

export class PathOrder {
  /** In the order of arrival. */
  readonly #running = new Set<Running>();

  /** Runs `action` in its turn; its failure is nobody else's. */
  async run<T>(claims: Claims, action: () => Promise<T>): Promise<T> {
    const running: Running = { claims, ahead: 0, go: () => {} };
    for (const other of this.#running) if (conflict(claims, other.claims)) running.ahead += 1;
    this.#running.add(running);
    if (running.ahead > 0) {
      await new Promise<void>((resolve) => {
        running.go = resolve;
      });
    }
    try {
      return await action();
    } finally {
      this.#end(running);
    }
  }

  /** Looks for who waits, since a list of who waits for whom has millions of entries where thousands wait for one path. */
  #end(ended: Running): void {
    this.#running.delete(ended);
    for (const other of this.#running) {
      // It has come later: an earlier one has ended before this one began.
      if (!conflict(ended.claims, other.claims)) continue;
      other.ahead -= 1;
      if (other.ahead === 0) other.go();
    }
  }
}

function conflict(one: Claims, other: Claims): boolean {
  if (one.writes === undefined && other.writes === undefined) return false;
  return overlaps(one.writes, other.writes) || overlaps(one.writes, other.reads) || overlaps(one.reads, other.writes);
}

function overlaps(some: readonly BytePath[] | undefined, others: readonly BytePath[] | undefined): boolean {
  if (some === undefined || others === undefined) return false;
  for (const path of some) {
    for (const other of others)
      if (path.length <= other.length ? isWithin(path, other) : isWithin(other, path)) return true;
  }
  return false;
}
