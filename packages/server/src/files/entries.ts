/** The entries of a folder, one after the other, so that a large one takes no memory. */
import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { type BytePath, nativeBytes } from '../paths.js';

/** Entries fetched from the host at a time. */
const BATCH = 64;

export interface Entry {
  /** One character a byte. */
  readonly name: string;
  readonly isDirectory: boolean;
}

/** In the order of the host; links are links. Throws the error of the host. */
export async function* entriesOf(folder: BytePath): AsyncGenerator<Entry, void, undefined> {
  // Latin-1 is one character a byte, which is how paths are kept here.
  const dir: AsyncIterable<Dirent> = await opendir(nativeBytes(folder), { encoding: 'latin1', bufferSize: BATCH });
  for await (const entry of dir) yield { name: entry.name, isDirectory: entry.isDirectory() };
}
