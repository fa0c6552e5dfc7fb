/** Moves a path: a rename, or a copy and a removal where that cannot be. */
import { type BigIntStats, constants } from 'node:fs';
import { access, link, lstat, rename, stat, unlink } from 'node:fs/promises';
import { WireError } from '@exec-server/protocol';
import { type BytePath, joinPath, nameOf, nativeBytes, parentOf, pathText } from '../paths.js';
import { copyPath, liesWithin } from './copyTree.js';
import { errnoError, errnoOf, onPath } from './errno.js';
import { type Named, takeFreeName } from './freeName.js';
import { removePath } from './remove.js';
import { isSameFile, realPath } from './target.js';
import type { TempFiles } from './tempFiles.js';

const STICKY_BIT = 0o1000;

export interface MoveOptions {
  readonly temps: TempFiles;
  /** False refuses a destination that exists. */
  readonly overwrite: boolean;
  /** Called again and again while files are copied; stops the move by throwing. */
  readonly check: () => void;
}

/** True when it was copied and removed. Throws WireError; then the source is whole. */
export async function movePath(source: BytePath, destination: BytePath, options: MoveOptions): Promise<boolean> {
  const stats = await onPath(source, () => lstat(nativeBytes(source), { bigint: true }));
  const there = await onPath(destination, () => identityOf(destination));
  const isFolder = stats.isDirectory();
  if (there !== undefined && isSameFile(stats, there)) {
    if ((await entryOf(source)) === (await entryOf(destination))) return false;
    if (!isFolder && options.overwrite) {
      // Two names of one file: a rename would do nothing, and leave both.
      await onPath(source, () => unlink(nativeBytes(source)));
      return false;
    }
  }
  if (there !== undefined && !options.overwrite) throw errnoError('EEXIST', destination);
  const from: Named = {
    moveTo: (name) => rename(nativeBytes(source), nativeBytes(name)),
    linkTo: (name) => link(nativeBytes(source), nativeBytes(name)),
    remove: () => unlink(nativeBytes(source)),
  };
  try {
    await place(from, destination, isFolder, options);
    return false;
  } catch (error) {
    if (errnoOf(error) === 'EINVAL' && isFolder) throw intoItself(destination);
    if (errnoOf(error) !== 'EXDEV') return await onPath(destination, () => Promise.reject(error));
  }
  await copyAcross(source, destination, { stats, there }, options);
  return true;
}

function place(from: Named, name: BytePath, isFolder: boolean, { overwrite }: MoveOptions): Promise<void> {
  return overwrite ? from.moveTo(name) : takeFreeName(from, name, isFolder ? 'folder' : 'file');
}

/** Whoever looks at the destination sees nothing of it, or all. */
async function copyAcross(
  source: BytePath,
  destination: BytePath,
  { stats, there }: { readonly stats: BigIntStats; readonly there: BigIntStats | undefined },
  options: MoveOptions,
): Promise<void> {
  const isFolder = stats.isDirectory();
  if (isFolder && (await liesWithin(source, destination))) throw intoItself(destination);
  // The rename at the end would say the same, after the copy.
  if (there !== undefined && there.isDirectory() !== isFolder) {
    throw errnoError(isFolder ? 'ENOTDIR' : 'EISDIR', destination);
  }
  await onPath(source, () => refuseUnremovable(source, stats));
  const { temps, check } = options;
  const temp = temps.reserve(parentOf(destination));
  try {
    const copy = { temps, check, recursive: true, overwrite: false, followSymlinks: false, alike: true };
    const { skipped } = await naming(destination, temp.path, () => copyPath(source, temp.path, copy));
    if (skipped > 0) {
      const message = `${skipped} entries are no file, folder or link and cannot be moved to another file system`;
      throw new WireError('notRegularFile', message, { path: pathText(source) });
    }
    await onPath(destination, () => place(temp, destination, isFolder, options));
  } finally {
    await temp.remove();
  }
  // A rename would ask no folder inside for its permissions.
  await removePath(source, { recursive: true, force: true, unlock: true });
}

/** Errors about a temporary path, or one below it, name the path it is for. */
async function naming<T>(path: BytePath, temp: BytePath, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    const named = error instanceof WireError ? error.data.path : undefined;
    if (!(error instanceof WireError) || named?.startsWith(pathText(temp)) !== true) throw error;
    const { reason, data } = error;
    throw new WireError(reason, error.message, { ...data, path: pathText(path) + named.slice(pathText(temp).length) });
  }
}

/** What could not be removed in the end is not copied. Throws the error of the host. */
async function refuseUnremovable(path: BytePath, { uid }: BigIntStats): Promise<void> {
  const folder = parentOf(path);
  await access(nativeBytes(folder), constants.W_OK);
  const { mode, uid: owner } = await stat(nativeBytes(folder), { bigint: true });
  const me = BigInt(process.geteuid?.() ?? 0);
  const isSticky = (Number(mode) & STICKY_BIT) !== 0;
  if (isSticky && me !== 0n && me !== uid && me !== owner) throw errnoError('EPERM', path);
}

/** Undefined when there is nothing. */
async function identityOf(path: BytePath): Promise<BigIntStats | undefined> {
  try {
    return await lstat(nativeBytes(path), { bigint: true });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The name in its folder, whatever links lead there. */
async function entryOf(path: BytePath): Promise<BytePath> {
  return joinPath(await onPath(path, () => realPath(parentOf(path))), nameOf(path));
}

function intoItself(path: BytePath): WireError {
  const message = 'fs/move cannot move a directory to itself or one of its descendants';
  return new WireError('invalidArgument', message, { field: 'destinationPath', path: pathText(path) });
}
