/** Time as the server sees it; injected, so that leases and retention are tested without waiting. */
import { clampTimerMs } from '@exec-server/protocol';

export interface Clock {
  /** Milliseconds on a clock that never goes back. */
  now(): number;
  /** Calls `action` once after `ms`; the returned function cancels it. The timer does not keep the program alive. */
  after(ms: number, action: () => void): () => void;
}

export const hostClock: Clock = {
  now: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, clampTimerMs(ms));
    timer.unref();
    return () => clearTimeout(timer);
  },
};
