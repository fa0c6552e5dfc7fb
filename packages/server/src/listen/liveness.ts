/**
 * Whether a peer may be gone without a word. A sign of life is anything that comes from it, a pong too, and anything it takes of
 * what it was sent. Time is counted in looks: a stall of this program is no silence of the peer. Pure.
 */
import { limits } from '@exec-server/protocol';

/** How far apart looks are. */
export const LOOK_EVERY_MS = 5_000;

export class Liveness {
  #silentLooks = 0;
  #sentBytes = 0;
  /** Whether something waited to be sent at the last look. */
  #waited = false;

  /** Anything came from the peer. */
  heard(): void {
    this.#silentLooks = 0;
  }

  /**
   * A look at how much the host has taken for the peer so far, and at what waits, every LOOK_EVERY_MS. The host takes some for a
   * peer that is gone as well; once it takes no more, the next byte it takes means that the peer took one.
   */
  look(sentBytes: number, waitingBytes: number): void {
    const taken = this.#waited && sentBytes > this.#sentBytes;
    this.#silentLooks = taken ? 0 : this.#silentLooks + 1;
    this.#sentBytes = sentBytes;
    this.#waited = waitingBytes > 0;
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
