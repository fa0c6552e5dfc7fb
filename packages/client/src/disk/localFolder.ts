/** Folders and links of the local disk, made below a root and never through a link. */
import { lstat, lutimes, mkdir, rename, symlink, unlink, utimes, chmod } from 'node:fs/promises';
import { joinBytes, parentName, shownBytes } from '../transfer/bytePath.js';
import { localError } from '../transfer/transferErrors.js';
import type { TreeItem } from '../transfer/tree.js';
import { native, onDisk } from './localErrors.js';
import { secondsOf } from './times.js';

/** A folder with its parents; one that exists, or a link to one, is fine. */
export async function makeFolders(path: string): Promise<void> {
  await onDisk(path, () => mkdir(native(path), { recursive: true }));
}

/** One folder, which this user can write into until `settleFolder`. A link or a file in its place is refused: ENOTDIR. */
export async function makeFolder(path: string): Promise<'made' | 'there'> {
  const made = await onDisk(path, async () => (await mkdir(native(path), { mode: 0o700 }), true), ['EEXIST']);
  if (made === true) return 'made';
  const found = await onDisk(path, () => lstat(native(path)));
  if (!found.isDirectory()) throw localError('ENOTDIR', shownBytes(path));
  return 'there';
}

/** Mode and time of a folder, once everything is in it. */
export async function settleFolder(path: string, { mode, modifiedAtMs }: TreeItem): Promise<void> {
  await onDisk(path, async () => {
    if (mode !== undefined) await chmod(native(path), mode);
    await utimes(native(path), secondsOf(modifiedAtMs), secondsOf(modifiedAtMs));
  });
}

/** A link, which takes the place of a file or link; of a folder never. */
export async function makeLink(path: string, item: TreeItem, overwrite: boolean): Promise<void> {
  const target = item.target ?? '';
  const created = await onDisk(path, async () => (await symlink(target, native(path)), true), ['EEXIST']);
  if (created !== true) {
    if (!overwrite) throw localError('EEXIST', shownBytes(path));
    const temporary = joinBytes(parentName(path), `.exec-server-${crypto.randomUUID()}.tmp`);
    await onDisk(path, () => symlink(target, native(temporary)));
    try {
      await onDisk(path, () => rename(native(temporary), native(path)));
    } catch (error) {
      // What failed is told; nothing of it stays.
      await unlink(native(temporary)).catch(() => undefined);
      throw error;
    }
  }
  await onDisk(path, () => lutimes(native(path), secondsOf(item.modifiedAtMs), secondsOf(item.modifiedAtMs)));
}

/** Whether anything has the path, a link that leads nowhere included. */
export async function isTaken(path: string): Promise<boolean> {
  return (await onDisk(path, () => lstat(native(path)), ['ENOENT', 'ENOTDIR'])) !== undefined;
}
