/** Lets the time of a test go by itself from here on, for what ends in steps; the returned function stops it. */
import type { ManualClock } from './manualClock.js';

export function runClock(clock: ManualClock): () => void {
  const timer = setInterval(() => clock.advance(20), 5);
  return () => clearInterval(timer);
}
