/**
 * The one place that decides how a file gets new content: by a rename of a temporary file beside it, so that readers see the
 * old file or the new one; or in place, where a rename would change what the file is. See docs/protocol.md §8.3.
 */
import { constants, type Stats } from 'node:fs';
import { access, type FileHandle, open } from 'node:fs/promises';
import type { InPlaceReason } from '@exec-server/protocol';
import { type BytePath, nativeBytes, parentOf } from '../paths.js';
import { errnoOf, onPath } from './errno.js';
import { copyContent, syncFile } from './content.js';
import { takeFreeName } from './freeName.js';
import { findTarget, type Target } from './target.js';
import type { TempFile, TempFiles } from './tempFiles.js';
import { secondsOf } from './times.js';
import { umask } from './umask.js';

export interface ReplaceOptions {
  /** Refuse a path that exists, links included: EEXIST. */
  readonly exclusive?: boolean | undefined;
  /** Of a file that is created; the umask is not applied. Default: 0666 without the umask. */
  readonly permissions?: number | undefined;
  /** Give the file the permissions of this one, whether it existed or not. */
  readonly like?: Stats | undefined;
  /** With `like`: owner, where the host allows it, and times as well. */
  readonly alike?: boolean;
  /** Time of its last change, in ms since 1970. */
  readonly modifiedAtMs?: number | undefined;
  /** Resolve when the disk has it, and its name. */
  readonly fsync?: boolean;
  /** Write in place although a rename would do. */
  readonly inPlace?: boolean;
  /** Write behind what is there, in place. */
  readonly append?: boolean;
}

/** Why the write was made in place; absent for a rename. */
export interface Written {
  readonly inPlace?: InPlaceReason;
}

/** Writes the whole content, once, into an open empty file (or behind what is there, with `append`). */
export type Fill = (file: FileHandle) => Promise<void>;

type Found = Exclude<Target, { kind: 'other' }>;

/** Errnos for which no temporary file can be made beside a file that may well be written to. */
const NO_TEMP = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENAMETOOLONG', 'EINVAL', 'EOPNOTSUPP']);
const NOT_RENAMED: Readonly<Record<string, InPlaceReason | undefined>> = {
  // The target is a mount point. That its device differs from that of its folder proves nothing: layered file systems do so.
  EBUSY: 'mount',
  EXDEV: 'mount',
  // Another one's file in a folder with the sticky bit; a file that may only be appended to.
  EACCES: 'directoryNotWritable',
  EPERM: 'directoryNotWritable',
  EROFS: 'directoryNotWritable',
};
const PERMISSION_BITS = 0o7777;
const SET_ID_BITS = 0o6000;

/** Gives a path new content. Throws WireError; a failed write by rename leaves the old file, and nothing beside it. */
export function replaceFile(
  temps: TempFiles,
  path: BytePath,
  fill: Fill,
  options: ReplaceOptions = {},
): Promise<Written> {
  return onPath(path, async () => {
    const target = await findTarget(path, options);
    const reason = reasonInPlace(target, options);
    if (reason !== undefined || target.kind === 'other') {
      return writeInPlace(target, fill, reason ?? 'notRegularFile', options);
    }
    const temp = await tempBeside(temps, target);
    if (temp === undefined) return writeInPlace(target, fill, 'directoryNotWritable', options);
    try {
      await fill(temp.file);
      const written = await putInPlace(temp, target, options);
      // Network file systems tell of a failed write here at the latest.
      await temp.file.close();
      return written;
    } finally {
      await temp.remove();
    }
  });
}

/**
 * Puts a temporary file in the place of a path, by the same rules; one that lies elsewhere is copied. Throws WireError, and the
 * temporary file is as it was. The caller removes it, in any case.
 */
export function commitTemp(
  temps: TempFiles,
  temp: TempFile,
  path: BytePath,
  options: ReplaceOptions = {},
): Promise<Written> {
  return onPath(path, async () => {
    const target = await findTarget(path, options);
    const isBeside = parentOf(target.path) === parentOf(temp.path);
    if (target.kind === 'other' || reasonInPlace(target, options) !== undefined || !isBeside) {
      return replaceFile(temps, path, contentOf(temp), options);
    }
    await refuseUnwritable(target);
    try {
      return await putInPlace(temp, target, options);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
      // Somebody removed or renamed it, or the folder it was in; what was written is still there.
      return replaceFile(temps, path, contentOf(temp), options);
    }
  });
}

/**
 * A temporary file beside a target; undefined where there can be none, and the target may be written in place all the same.
 * Throws the error of the host, that for a target which may not be written included.
 */
export async function tempBeside(temps: TempFiles, target: Target): Promise<TempFile | undefined> {
  await refuseUnwritable(target);
  try {
    return await temps.create(parentOf(target.path));
  } catch (error) {
    if (NO_TEMP.has(errnoOf(error) ?? '')) return undefined;
    throw error;
  }
}

function reasonInPlace(target: Target, { inPlace, append }: ReplaceOptions): InPlaceReason | undefined {
  if (target.kind === 'other') return 'notRegularFile';
  if (inPlace === true || append === true) return 'asked';
  return target.kind === 'file' && target.stats.nlink > 1 ? 'hardLinks' : undefined;
}

/** A rename would get around the permissions of the file. */
async function refuseUnwritable(target: Target): Promise<void> {
  if (target.kind === 'file') await access(nativeBytes(target.path), constants.W_OK);
}

async function putInPlace(temp: TempFile, target: Found, options: ReplaceOptions): Promise<Written> {
  if (!(await dress(temp.file, target, options))) return copyInPlace(temp, target, 'owner', options);
  if (options.fsync === true) await syncFile(temp.file);
  try {
    if (options.exclusive === true) await takeFreeName(temp, target.path, 'file');
    else await temp.moveTo(target.path);
  } catch (error) {
    const reason = NOT_RENAMED[errnoOf(error) ?? ''];
    if (reason === undefined || options.exclusive === true) throw error;
    return copyInPlace(temp, target, reason, options);
  }
  if (options.fsync === true) await syncFolder(parentOf(target.path));
  return {};
}

/** Gives the new file owner, mode and times. False when it cannot have the owner of the old one. */
async function dress(file: FileHandle, target: Found, options: ReplaceOptions): Promise<boolean> {
  const { like, permissions } = options;
  const owner = target.kind === 'file' ? target.stats : undefined;
  // A new owner takes set-id bits away, so the mode comes behind it.
  if (owner !== undefined && !(await own(file, owner))) return false;
  if (like !== undefined) await liken(file, like, options);
  else await file.chmod((owner?.mode ?? permissions ?? 0o666 & ~umask()) & PERMISSION_BITS);
  await date(file, options);
  return true;
}

async function date(file: FileHandle, { modifiedAtMs }: ReplaceOptions): Promise<void> {
  if (modifiedAtMs !== undefined) await file.utimes(new Date(), secondsOf(modifiedAtMs));
}

/** False when the host does not allow it. */
async function own(file: FileHandle, { uid, gid }: Stats): Promise<boolean> {
  const now = await file.stat();
  if (now.uid === uid && now.gid === gid) return true;
  try {
    await file.chown(uid, gid);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EPERM' || errnoOf(error) === 'EINVAL') return false;
    throw error;
  }
}

/** Set-id bits come along only with their owner: else a copy would lend the rights of another one. */
async function liken(file: FileHandle, like: Stats, { alike }: ReplaceOptions): Promise<void> {
  if (alike === true) await own(file, like);
  const { uid, gid } = await file.stat();
  const isSame = uid === like.uid && gid === like.gid;
  await file.chmod(like.mode & PERMISSION_BITS & (isSame ? PERMISSION_BITS : ~SET_ID_BITS));
  if (alike === true) await file.utimes(like.atime, like.mtime);
}

function contentOf({ file, path }: TempFile): Fill {
  return async (target) => copyContent({ file, path, stats: await file.stat() }, target);
}

async function copyInPlace(
  temp: TempFile,
  target: Target,
  reason: InPlaceReason,
  options: ReplaceOptions,
): Promise<Written> {
  return writeInPlace(target, contentOf(temp), reason, options);
}

async function writeInPlace(
  target: Target,
  fill: Fill,
  inPlace: InPlaceReason,
  options: ReplaceOptions,
): Promise<Written> {
  const { exclusive, append, permissions, like, alike, fsync } = options;
  const { O_WRONLY, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;
  const kept = target.kind === 'other' ? 0 : O_CREAT | O_NOFOLLOW;
  const how = (append === true ? O_APPEND : O_TRUNC) | (exclusive === true ? O_EXCL : 0);
  // Without O_NONBLOCK a FIFO nobody reads would hold a thread of the host for ever.
  const file = await open(nativeBytes(target.path), O_WRONLY | O_NONBLOCK | O_NOCTTY | kept | how, 0o666);
  try {
    await fill(file);
    if (target.kind === 'new' && permissions !== undefined) await file.chmod(permissions);
    if (target.kind !== 'other' && like !== undefined) await liken(file, like, { alike: alike ?? false });
    if (target.kind !== 'other') await date(file, options);
    if (fsync === true) await syncFile(file);
  } finally {
    await file.close();
  }
  if (fsync === true && target.kind === 'new') await syncFolder(parentOf(target.path));
  return { inPlace };
}

async function syncFolder(path: BytePath): Promise<void> {
  const folder = await open(nativeBytes(path), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await syncFile(folder);
  } finally {
    await folder.close();
  }
}
