/** What travels together in one archive, and what travels alone. Pure. */
import { textOf } from './bytePath.js';
import type { TreeItem } from './tree.js';

/** Larger files travel alone, in blocks that go on at their offset after a cut. */
export const SMALL_FILE_BYTES = 256 * 1024;
/** Most bytes of the archive of a batch: what a cut costs, and what several of them hold in memory. */
export const BATCH_BYTES = 4 * 1024 * 1024;
/** Most entries of a batch. */
export const BATCH_ENTRIES = 512;

/** A header, and one of its own with a record of attributes where the name is long. */
const HEADER_BYTES = 2048;

export type Job =
  | { readonly kind: 'batch'; readonly items: readonly TreeItem[] }
  | { readonly kind: 'alone'; readonly item: TreeItem };

/** Bytes an entry takes in an archive, at most. */
export function archiveBytes(item: TreeItem): number {
  return HEADER_BYTES + 2 * item.name.length + Math.ceil(item.size / 512) * 512;
}

/** Archives carry names as UTF-8. */
function fitsBatch(item: TreeItem): boolean {
  return item.size <= SMALL_FILE_BYTES && textOf(item.name) !== undefined;
}

/** The same items in the same order, in jobs that are within the bounds. */
export function* jobsOf(items: Iterable<TreeItem>): Generator<Job> {
  let batch: TreeItem[] = [];
  let bytes = 0;
  for (const item of items) {
    if (!fitsBatch(item)) {
      yield { kind: 'alone', item };
      continue;
    }
    const more = archiveBytes(item);
    if (batch.length > 0 && (batch.length >= BATCH_ENTRIES || bytes + more > BATCH_BYTES)) {
      yield { kind: 'batch', items: batch };
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += more;
  }
  if (batch.length > 0) yield { kind: 'batch', items: batch };
}
