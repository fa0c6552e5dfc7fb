/** The names in a folder, streamed: a folder may have millions. */
import { Buffer } from 'node:buffer';
import type { Dir } from 'node:fs';
import { opendir } from 'node:fs/promises';
import type { FileKind } from '@exec-server/protocol';
import { type BytePath, nativeBytes } from '../paths.js';
import { kindOf } from './detail.js';
import { type Named, Smallest } from './smallest.js';

export interface FolderName extends Named {
  /** Of the entry itself: a link is one. */
  readonly kind: FileKind;
}

/** Names the host gives at a time; other work of the server goes on in between. */
const BATCH_NAMES = 256;

/** In the order of the host. `checkpoint` is called between batches and throws to give up. */
export async function* namesIn(path: BytePath, checkpoint: () => void): AsyncGenerator<FolderName[], void> {
  const folder = await openFolder(path);
  let batch: FolderName[] = [];
  // Leaving the loop in any way closes the folder.
  for await (const entry of folder) {
    // Opened for names as bytes, which the types of Node do not know.
    const name: unknown = entry.name;
    if (!Buffer.isBuffer(name)) throw new Error('the host gave a name that is not in bytes');
    batch.push({ name: name.toString('latin1'), kind: kindOf(entry) });
    if (batch.length < BATCH_NAMES) continue;
    yield batch;
    batch = [];
    checkpoint();
  }
  yield batch;
}

export interface PageWanted {
  /** The name before the first; empty for the beginning. */
  readonly after: string;
  readonly limit: number;
  /** Give up when the folder has more names than these. */
  readonly scanAtMost: number;
  readonly checkpoint: () => void;
}

export interface NamesPage {
  readonly items: readonly FolderName[];
  readonly more: boolean;
}

/** The `limit` smallest names behind `after`, by their bytes; undefined when it gave up. */
export async function sortedNames(path: BytePath, wanted: PageWanted): Promise<NamesPage | undefined> {
  const smallest = new Smallest<FolderName>(wanted.limit);
  let scanned = 0;
  for await (const batch of namesIn(path, wanted.checkpoint)) {
    scanned += batch.length;
    if (scanned > wanted.scanAtMost) return undefined;
    for (const item of batch) if (item.name > wanted.after) smallest.offer(item);
  }
  return smallest.take();
}

function openFolder(path: BytePath): Promise<Dir> {
  // The host takes 'buffer', as `readdir` does.
  return opendir(nativeBytes(path), { encoding: 'buffer' as BufferEncoding, bufferSize: BATCH_NAMES });
}
