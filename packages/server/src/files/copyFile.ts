/** Copies one file, by the rules of a write to its destination. */
import { type BigIntStats, constants } from 'node:fs';
import { open, readlink, stat, symlink } from 'node:fs/promises';
import { type BytePath, nativeBytes } from '../paths.js';
import { copyContent } from './content.js';
import { errnoOf, onPath } from './errno.js';
import { replaceFile } from './replaceFile.js';
import { isSameFile } from './target.js';
import type { TempFiles } from './tempFiles.js';

export interface CopyFileOptions {
  readonly temps: TempFiles;
  /** False refuses a destination that exists. */
  readonly overwrite: boolean;
  readonly followSymlinks: boolean;
  /** Owner, where the host allows it, and times as well. */
  readonly alike: boolean;
  /** Called again and again; stops the copy by throwing. */
  readonly check: () => void;
}

/** With its mode and its holes. A file onto itself is left as it is. False for what is no regular file. Throws WireError. */
export async function copyFile(source: BytePath, destination: BytePath, options: CopyFileOptions): Promise<boolean> {
  const { O_RDONLY, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants;
  // The path may have got another file since it was looked at: one that blocks, or a link.
  const flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (options.followSymlinks ? 0 : O_NOFOLLOW);
  const file = await onPath(source, () => open(nativeBytes(source), flags));
  try {
    const identity = await onPath(source, () => file.stat({ bigint: true }));
    if (!identity.isFile()) return false;
    if (options.overwrite) {
      const there = await identityBehind(destination);
      if (there !== undefined && isSameFile(identity, there)) return true;
    }
    const like = await onPath(source, () => file.stat());
    const { temps, overwrite, alike, check } = options;
    await replaceFile(temps, destination, (copy) => copyContent({ file, stats: like, path: source }, copy, check), {
      exclusive: !overwrite,
      like,
      alike,
    });
    return true;
  } finally {
    await file.close();
  }
}

/** Copies a link as a link. A destination that exists is EEXIST. Throws WireError. */
export async function copyLink(source: BytePath, destination: BytePath): Promise<void> {
  const text = await onPath(source, () => readlink(nativeBytes(source), { encoding: 'buffer' }));
  await onPath(destination, () => symlink(text, nativeBytes(destination)));
}

/** Undefined when there is nothing, or nothing that can be looked at: the write says why. */
async function identityBehind(path: BytePath): Promise<BigIntStats | undefined> {
  try {
    return await stat(nativeBytes(path), { bigint: true });
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}
