/** Waits for the end of a process that give up without touching it. */
import { type BoundErrors, type BoundOptions, Bounds } from '../bounds.js';
import type { Clock } from '../clock.js';
import { ClientError } from '../errors.js';
import type { Wish } from '../registry/waiters.js';

/** How long {@link ProcessHandle.wait} and {@link ProcessHandle.closed} wait. */
export interface WaitOptions extends BoundOptions {
  /** How long to wait, in ms; then WAIT_TIMEOUT, and the process runs on. Default: for ever. */
  readonly timeoutMs?: number | undefined;
  /** Gives up the wait, with ABORTED; the process runs on. */
  readonly signal?: AbortSignal | undefined;
}

export async function within<T>(wish: Wish<T>, options: WaitOptions, clock: Clock, processId: string): Promise<T> {
  const bounds = new Bounds(options, clock, errorsOf(processId));
  try {
    return await bounds.race(wish.promise);
  } finally {
    bounds.dispose();
    wish.forget();
  }
}

function errorsOf(processId: string): BoundErrors {
  return {
    aborted: (reason) => {
      const message = `waiting for process ${processId} was aborted by the caller; the process was not touched`;
      return new ClientError('ABORTED', message, { processId }, reason);
    },
    timedOut: (timeoutMs) => {
      const message = `process ${processId} had not ended after ${timeoutMs} ms; it was not touched and runs on; wait again, or terminate it`;
      return new ClientError('WAIT_TIMEOUT', message, { processId, timeoutMs });
    },
  };
}
