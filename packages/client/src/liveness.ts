/**
 * Whether the server may be gone without a word. A sign of life is anything that comes from it and anything it takes of what it
 * was sent. Time is counted in looks: a stall or a sleep of this program is no silence of the server. Pure.
 */
import { limits } from '@exec-server/protocol';

/** How far apart looks are. */
export const LOOK_EVERY_MS = 5_000;
/** How often the server is asked for a sign of life, in looks. */
const LOOKS_A_PING = limits.PING_INTERVAL_MS / LOOK_EVERY_MS;

/** What the carrier of a connection has done so far. */
export interface CarrierCounts {
  /** Bytes taken from the server: a large message may take long to be whole. */
  readonly received: number;
  /** What the host has taken of what was sent: bytes, or writes. */
  readonly sent: number;
  /** Bytes that the host has not taken yet. */
  readonly waiting: number;
}

export class Liveness {
  readonly #limitMs: number;
  #looks = 0;
  #silentLooks = 0;
  #last: CarrierCounts = { received: 0, sent: 0, waiting: 0 };

  /** `limitMs`: how long it may be silent. */
  constructor(limitMs: number = limits.SUSPECT_MS) {
    this.#limitMs = limitMs;
  }

  /** Anything came from the server. */
  heard(): void {
    this.#silentLooks = 0;
  }

  /**
   * A look, every LOOK_EVERY_MS. The host takes some for a server that is gone as well; once it takes no more, the next byte it
   * takes means that the server took one. `held`: this side did not read all the time, so hearing nothing means nothing.
   */
  look(now: CarrierCounts, held: boolean): void {
    const last = this.#last;
    const lives =
      now.received > last.received || (last.waiting > 0 && (now.sent > last.sent || now.waiting < last.waiting));
    if (lives) this.#silentLooks = 0;
    else if (!held) this.#silentLooks += 1;
    this.#looks += 1;
    this.#last = now;
  }

  /** The connection is to be given up. */
  get isLost(): boolean {
    return this.#silentLooks * LOOK_EVERY_MS >= this.#limitMs;
  }

  /** The server is to be asked for a sign of life after this look. */
  get asks(): boolean {
    return this.#looks % LOOKS_A_PING === 0;
  }
}
