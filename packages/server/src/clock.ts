/** Time as the server sees it; injected, so that leases and retention are tested without waiting. */
import { clampTimerMs } from '@exec-server/protocol';

/** Time as the server sees it. A test passes its own, so that leases and retention run out without waiting. */
export interface Clock {
  /** Milliseconds on a clock that never goes back. */
  now(): number;
  /** Milliseconds since 1970, for people; it may jump. */
  timeOfDay(): number;
  /** Calls `action` once after `ms`; the returned function cancels it. Only with `hold` the timer keeps the program alive. */
  after(ms: number, action: () => void, hold?: boolean): () => void;
}

/** The same time, with timers that keep the program alive: for work that somebody waits for. */
export function holding(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    timeOfDay: () => clock.timeOfDay(),
    after: (ms, action) => clock.after(ms, action, true),
  };
}

/** The clock of this host; timers are unreferenced unless `hold` is given. */
export const hostClock: Clock = {
  now: () => performance.now(),
  timeOfDay: () => Date.now(),
  after(ms, action, hold = false) {
    const timer = setTimeout(action, clampTimerMs(ms));
    if (!hold) timer.unref();
    return () => clearTimeout(timer);
  },
};
