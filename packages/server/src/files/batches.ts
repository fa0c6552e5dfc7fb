/** Work on many entries of folders, a few at a time. */
import { setImmediate } from 'node:timers/promises';

/** Entries looked at side by side: enough to keep the threads of the host busy, few enough to share them. */
const SIDE_BY_SIDE = 16;
/** Entries after which everything else of the server has its turn. */
const YIELD_AFTER = 2048;

/** Results in the order of the items. `checkpoint` is called between batches and throws to give up. */
export async function* inBatches<T, R>(
  items: readonly T[],
  checkpoint: () => void,
  look: (item: T) => R | Promise<R>,
): AsyncGenerator<R[], void> {
  for (let at = 0; at < items.length; at += SIDE_BY_SIDE) {
    if (at > 0 && at % YIELD_AFTER === 0) {
      await setImmediate();
      checkpoint();
    }
    yield await Promise.all(items.slice(at, at + SIDE_BY_SIDE).map(look));
  }
}
