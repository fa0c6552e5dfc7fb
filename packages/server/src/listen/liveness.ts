/**
 * Whether a peer may be gone without a word. A sign of life is anything that comes from it, a pong too, and anything it takes of
 * what it was sent. Time is counted in looks: a stall of this program is no silence of the peer. Pure.
 */
import { limits } from '@exec-server/protocol';

/** How far apart looks are. */
export const LOOK_EVERY_MS = 5_000;

/** What the carrier of a peer has done so far, in bytes. */
export interface CarrierCounts {
  /** Taken from the peer: a large message may take long to be whole. */
  readonly received: number;
  /** In writes that the host has taken whole. */
  readonly sent: number;
  /** Not taken yet of the write under way. */
  readonly waiting: number;
}

export class Liveness {
  #silentLooks = 0;
  #last: CarrierCounts = { received: 0, sent: 0, waiting: 0 };

  /** Anything came from the peer. */
  heard(): void {
    this.#silentLooks = 0;
  }

  /**
   * A look at the carrier, every LOOK_EVERY_MS. The host takes some for a peer that is gone as well; once it takes no more, the
   * next byte it takes means that the peer took one.
   */
  look(now: CarrierCounts): void {
    const last = this.#last;
    const lives =
      now.received > last.received || (last.waiting > 0 && (now.sent > last.sent || now.waiting < last.waiting));
    this.#silentLooks = lives ? 0 : this.#silentLooks + 1;
    this.#last = now;
  }

  /** Another client may take its place. */
  get isSuspect(): boolean {
    return this.#silentLooks * LOOK_EVERY_MS >= limits.SUSPECT_MS;
  }

  /** It is to be cut; long before, it may just not read. */
  get isIdle(): boolean {
    return this.#silentLooks * LOOK_EVERY_MS >= limits.IDLE_LIMIT_MS;
  }
}
