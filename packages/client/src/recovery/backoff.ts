/** How long to wait before an attempt, and how many attempts there are. Pure. */

const BASE_MS = 50;
const CAP_MS = 2_000;

/**
 * Delay before attempt number `attempt`, counted from 0: the first goes at once, later ones wait a random part (`random`
 * in [0, 1)) of a bound that doubles from 50 ms to 2 s, so that many clients of one server do not come back together.
 */
export function backoffMs(attempt: number, random: number): number {
  if (attempt <= 0) return 0;
  return Math.min(CAP_MS, BASE_MS * 2 ** Math.min(attempt - 1, 16)) * random;
}

/** How long a connection must stay ready before the next loss counts as a new one. */
export const STABLE_MS = 2_000;

/** Attempts already spent when a connection is lost that had been ready for `readyMs`. */
export function spentAttempts(attempts: number, readyMs: number): number {
  return readyMs >= STABLE_MS ? 0 : attempts;
}

/** Where the backoff begins for a connection that is lost before it was stable: such a loss comes about in no time. */
export const FLAPPING_TRIES = 2;
