/**
 * Whether a peer still answers pings. Counted in pings, not in time: a stall of this program is no silence of the peer. Pure.
 */

/** Unanswered pings after which the peer may be gone: fewer than its own client takes to give a connection up. */
export const SILENT_PINGS = 3;
/** Unanswered pings after which it is taken for gone; long before, it may just not read. */
export const DEAD_PINGS = 12;

export class Liveness {
  #unanswered = 0;

  /** A ping was sent. */
  asked(): void {
    this.#unanswered += 1;
  }

  /** Anything came from the peer. */
  heard(): void {
    this.#unanswered = 0;
  }

  get isSilent(): boolean {
    return this.#unanswered >= SILENT_PINGS;
  }

  get isDead(): boolean {
    return this.#unanswered >= DEAD_PINGS;
  }
}
