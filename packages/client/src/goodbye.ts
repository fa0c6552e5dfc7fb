/** Leaves a connection: ends the session where the transport does not, then closes, within a bound. */
import type { Clock } from './clock.js';
import type { Connection } from './connection.js';

/** How long the server may take to confirm the end of the session, and then to close. */
const GOODBYE_MS = 2_000;

/** A foreign server stops answering when it is given too much at a time; what else is on its way is on top of these. */
const FOREIGN_AT_A_TIME = 16;

/** `processIds`: what to end first where the server has no call for the whole session; undefined leaves the session alone. */
export async function goodbye(
  connection: Connection,
  processIds: readonly string[] | undefined,
  clock: Clock,
): Promise<void> {
  if (processIds !== undefined && !connection.closed) {
    const farewell = connection.extended
      ? connection.request('session/close', {})
      : terminateAll(connection, [...processIds]);
    await within(farewell, clock);
  }
  connection.close();
  if (!(await within(connection.finished, clock))) connection.abort();
}

/** Never rejects; what is left when the connection closes ends with the lease of the session. */
async function terminateAll(connection: Connection, processIds: string[]): Promise<void> {
  while (processIds.length > 0 && !connection.closed) {
    const some = processIds.splice(0, FOREIGN_AT_A_TIME);
    await Promise.allSettled(some.map((processId) => connection.request('process/terminate', { processId })));
  }
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
