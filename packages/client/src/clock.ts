/** Time as the client sees it; tests pass their own. */
import { clampTimerMs } from '@exec-server/protocol';

/**
 * Time as the client sees it. A test passes its own as {@link CommonOptions.clock}, so that deadlines and pauses pass
 * without waiting.
 */
export interface Clock {
  /** Milliseconds on a clock that never goes back. */
  now(): number;
  /** Runs `action` once after `ms`; the returned function cancels it. */
  timer(ms: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  timer(ms, action) {
    const handle = setTimeout(action, clampTimerMs(ms));
    return () => clearTimeout(handle);
  },
};
