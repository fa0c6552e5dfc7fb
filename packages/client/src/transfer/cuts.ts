/** Goes on after the loss of a handle, as long as that leads anywhere. */
import { Cuts } from '../files/cuts.js';
import { HandleLost } from './remote.js';

/** `attempt`: 1 the first time. `progress`: grows with what has arrived for good. Throws TRANSFER_LOST in the end. */
export async function throughCuts<T>(
  what: string,
  action: (attempt: number) => Promise<T>,
  progress: () => number = () => 0,
): Promise<T> {
  const cuts = new Cuts(what);
  let reached = progress();
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await action(attempt);
    } catch (error) {
      if (!(error instanceof HandleLost)) throw error;
      if (progress() > reached) cuts.progress();
      reached = progress();
      cuts.count(error);
    }
  }
}
