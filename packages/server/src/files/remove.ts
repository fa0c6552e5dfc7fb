/** Removes a path and what is below it. Never follows a link; takes no more memory than the tree is deep. */
import { constants, existsSync } from 'node:fs';
import { chmod, type FileHandle, lstat, open, rmdir, unlink } from 'node:fs/promises';
import { WireError } from '@exec-server/protocol';
import { type BytePath, joinPath, nativeBytes } from '../paths.js';
import { entriesOf } from './entries.js';
import { errnoOf, onPath } from './errno.js';

export interface RemoveOptions {
  readonly recursive: boolean;
  /** What does not exist is fine. */
  readonly force: boolean;
  /** Folders of the tree that may not be read or written to are made so, as what moves or ends a tree needs. Default false. */
  readonly unlock?: boolean;
}

/** A folder that is being emptied. */
interface Level {
  /** For people. */
  readonly path: BytePath;
  /** What it is removed by. */
  readonly name: BytePath;
  /** What its entries are reached by: the open folder itself, so that nobody can put a link in its place meanwhile. */
  readonly inside: BytePath;
  readonly handle: FileHandle;
  emptied: number;
}

/** How often a folder that was emptied is emptied again because others go on putting files into it. */
const REFILLS = 16;
const FOLDERS_BY_DESCRIPTOR = '/proc/self/fd';

/** Throws WireError. `/` is refused. */
export async function removePath(path: BytePath, { recursive, force, unlock = false }: RemoveOptions): Promise<void> {
  if (path === '/') throw new WireError('invalidArgument', '`/` is not removed', { field: 'path', path });
  await onPath(path, async () => {
    try {
      const stats = await lstat(nativeBytes(path));
      if (!stats.isDirectory()) await unlink(nativeBytes(path));
      else if (recursive) await removeTree(path, unlock);
      else await rmdir(nativeBytes(path));
    } catch (error) {
      if (!(force && errnoOf(error) === 'ENOENT')) throw error;
    }
  });
}

async function removeTree(root: BytePath, unlock: boolean): Promise<void> {
  /** From the root on. */
  const levels = [await enter(root, root, unlock)];
  try {
    for (let last = levels.at(-1); last !== undefined; last = levels.at(-1)) {
      const { path, name, handle } = last;
      const child = await onPath(path, () => emptyFolder(last, unlock));
      if (child !== undefined) {
        levels.push(child);
        continue;
      }
      last.emptied += 1;
      if (await onPath(path, () => isFull(name))) {
        if (last.emptied > REFILLS) await onPath(path, () => rmdir(nativeBytes(name)));
        continue;
      }
      levels.pop();
      await handle.close();
    }
  } finally {
    for (const { handle } of levels) await handle.close();
  }
}

async function enter(path: BytePath, name: BytePath, unlock: boolean): Promise<Level> {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const openIt = (): Promise<FileHandle> => open(nativeBytes(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const handle = await unlocked(unlock, openIt, () => chmod(nativeBytes(name), 0o700));
  const inside = existsSync(FOLDERS_BY_DESCRIPTOR) ? `${FOLDERS_BY_DESCRIPTOR}/${handle.fd}` : name;
  // Either is absolute.
  return { path, name, inside: inside as BytePath, handle, emptied: 0 };
}

function emptyFolder(level: Level, unlock: boolean): Promise<Level | undefined> {
  return unlocked(
    unlock,
    () => emptyOnce(level, unlock),
    () => level.handle.chmod(0o700),
  );
}

/** Does it again after `open`, where the host refused it for want of permission. */
async function unlocked<T>(unlock: boolean, work: () => Promise<T>, open: () => Promise<void>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const errno = error instanceof WireError ? error.data['errno'] : errnoOf(error);
    if (!unlock || errno !== 'EACCES') throw error;
    try {
      await open();
    } catch {
      // It belongs to somebody else: what refused the work says why.
      throw error;
    }
    return work();
  }
}

/** Removes what is in a folder up to the first folder that is not empty, and enters that. */
async function emptyOnce({ path, inside }: Level, unlock: boolean): Promise<Level | undefined> {
  for await (const entry of entriesOf(inside)) {
    const child = joinPath(path, entry.name);
    const name = joinPath(inside, entry.name);
    const full = await onPath(child, () =>
      ifThere(entry.isDirectory ? removeOrEnter(child, name, unlock) : removeFile(name)),
    );
    if (full !== undefined) return full;
  }
  return undefined;
}

async function removeFile(name: BytePath): Promise<undefined> {
  await unlink(nativeBytes(name));
}

async function removeOrEnter(path: BytePath, name: BytePath, unlock: boolean): Promise<Level | undefined> {
  return (await isFull(name)) ? enter(path, name, unlock) : undefined;
}

/** Removes an empty folder. True when it is not empty. */
async function isFull(folder: BytePath): Promise<boolean> {
  try {
    await ifThere(rmdir(nativeBytes(folder)));
    return false;
  } catch (error) {
    // POSIX allows both.
    if (errnoOf(error) === 'ENOTEMPTY' || errnoOf(error) === 'EEXIST') return true;
    throw error;
  }
}

async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    // Somebody else removed it.
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
