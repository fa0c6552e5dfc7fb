/** Makes folders. */
import { chmod, mkdir, stat } from 'node:fs/promises';
import { type BytePath, nativeBytes, parentOf } from '../paths.js';
import { errnoError, errnoOf, onPath } from './errno.js';

export interface CreateOptions {
  /** Parents are made as well, and an existing folder is fine. */
  readonly recursive: boolean;
  /** Of the folder itself; the umask is not applied. Default: 0777 without the umask, which parents have in any case. */
  readonly permissions?: number | undefined;
}

/** Throws WireError. */
export async function createDirectory(path: BytePath, { recursive, permissions }: CreateOptions): Promise<void> {
  await onPath(path, async () => {
    if (!recursive) await mkdir(nativeBytes(path), permissions ?? 0o777);
    else if ((await makeAll(path, permissions)) === 'there') return;
    if (permissions !== undefined) await chmod(nativeBytes(path), permissions);
  });
}

type Made = 'made' | 'there' | 'noParent';

async function makeAll(path: BytePath, permissions: number | undefined): Promise<Made> {
  /** The innermost first. */
  const missing: BytePath[] = [];
  let folder = path;
  let made = await makeOne(path, permissions);
  for (; made === 'noParent'; made = await makeOne(folder, undefined)) {
    missing.push(folder);
    folder = parentOf(folder);
  }
  for (const next of missing.toReversed()) {
    made = await makeOne(next, next === path ? permissions : undefined);
    // It was made a moment ago, and somebody removed it.
    if (made === 'noParent') throw errnoError('ENOENT', next);
  }
  return made;
}

async function makeOne(folder: BytePath, permissions: number | undefined): Promise<Made> {
  try {
    await mkdir(nativeBytes(folder), permissions ?? 0o777);
    return 'made';
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' && folder !== '/') return 'noParent';
    // Some hosts look at the permission to make a folder before they see that it is there.
    if (!(await isFolder(folder))) throw error;
    return 'there';
  }
}

async function isFolder(path: BytePath): Promise<boolean> {
  try {
    const stats = await stat(nativeBytes(path));
    return stats.isDirectory();
  } catch {
    // It is none that can be used; what refused to make it says why.
    return false;
  }
}
