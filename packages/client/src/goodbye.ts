/** Leaves a connection: ends the session where the transport does not, then closes, within a bound. */
import type { Clock } from './clock.js';
import type { Connection } from './connection.js';

/** How long the server may take to confirm the end of the session, and then to close. */
const GOODBYE_MS = 2_000;

/** `processIds`: what to end first where the server has no call for the whole session; undefined leaves the session alone. */
export async function goodbye(
  connection: Connection,
  processIds: readonly string[] | undefined,
  clock: Clock,
): Promise<void> {
  if (processIds !== undefined && !connection.closed) {
    const calls = connection.extended
      ? [connection.request('session/close', {})]
      : processIds.map((processId) => connection.request('process/terminate', { processId }));
    await within(Promise.allSettled(calls), clock);
  }
  connection.close();
  if (!(await within(connection.finished, clock))) connection.abort();
}

function within(promise: Promise<unknown>, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.timer(GOODBYE_MS, () => resolve(false));
    const settle = (): void => {
      cancel();
      resolve(true);
    };
    promise.then(settle, settle);
  });
}
