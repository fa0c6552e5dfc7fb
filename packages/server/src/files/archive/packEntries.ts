/**
 * The entries of an archive, one at a time: a folder before what is in it, names in the order of their bytes. FIFOs, sockets and
 * devices are left out, and so is what was removed since it was listed.
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink, stat } from 'node:fs/promises';
import { WireError } from '@exec-server/protocol';
import type { TarHeader } from 'modern-tar';
import { type BytePath, joinPath, nameOf, nativeBytes, pathText } from '../../paths.js';
import { errnoOf, onPath } from '../errno.js';
import { packedText, wantedParts } from './entryNames.js';

export interface PackedEntry {
  readonly header: TarHeader;
  readonly path: BytePath;
  /** The content, of a file; closed when the next entry is asked for. */
  readonly file?: FileHandle;
}

export interface PackOptions {
  /** Relative to the folder; these alone, without what is below them. */
  readonly names: readonly string[] | undefined;
  readonly includeParent: boolean;
  /** What links point to takes their place, unless it is a folder they lie in, or nothing. */
  readonly followSymlinks: boolean;
}

/** A folder that is being read, from the root on: following links must not lead back into one. */
interface Ancestor {
  readonly stats: Stats;
  readonly above: Ancestor | undefined;
}

const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants;

/** `root`, with what it leads to. Rejects with WireError where something cannot be read: nothing is left out in silence. */
export async function* packedEntries(root: BytePath, stats: Stats, options: PackOptions): AsyncGenerator<PackedEntry> {
  if (!stats.isDirectory()) {
    if (!stats.isFile()) throw notPackable(root);
    yield* fileEntry(root, nameOf(root), { follow: true });
    return;
  }
  const hasPrefix = options.includeParent && root !== '/';
  const prefix = hasPrefix ? `${nameOf(root)}/` : '';
  if (hasPrefix) yield { path: root, header: headerOf('directory', prefix, root, stats) };
  if (options.names === undefined) {
    yield* folderEntries(root, prefix, { stats, above: undefined }, options.followSymlinks);
    return;
  }
  const names = new Set(options.names.map((name) => wantedParts(name).join('/')));
  for (const name of [...names].sort()) yield* namedEntry(joinPath(root, name), prefix + name, options.followSymlinks);
}

async function* folderEntries(
  folder: BytePath,
  prefix: string,
  within: Ancestor,
  follow: boolean,
): AsyncGenerator<PackedEntry> {
  const names = await onPath(folder, () => readdir(nativeBytes(folder), { encoding: 'buffer' }));
  for (const name of names.map((bytes) => bytes.toString('latin1')).sort()) {
    const path = joinPath(folder, name);
    const found = await unlessRemoved(() => onPath(path, () => statsOf(path, follow, within)));
    if (found === undefined) continue;
    if (!found.stats.isDirectory()) {
      yield* plainEntry(path, prefix + name, found);
      continue;
    }
    yield { path, header: headerOf('directory', `${prefix}${name}/`, path, found.stats) };
    yield* folderEntries(path, `${prefix}${name}/`, { stats: found.stats, above: within }, follow);
  }
}

async function* namedEntry(path: BytePath, name: string, follow: boolean): AsyncGenerator<PackedEntry> {
  const found = await onPath(path, () => statsOf(path, follow, undefined));
  const { stats } = found;
  if (stats.isDirectory()) yield { path, header: headerOf('directory', `${name}/`, path, stats) };
  else if (stats.isFile() || stats.isSymbolicLink()) yield* plainEntry(path, name, found);
  else throw notPackable(path);
}

async function* plainEntry(path: BytePath, name: string, { stats, follow }: Found): AsyncGenerator<PackedEntry> {
  if (stats.isFile()) yield* fileEntry(path, name, { follow });
  if (!stats.isSymbolicLink()) return;
  const target = await unlessRemoved(() => onPath(path, () => readlink(nativeBytes(path), { encoding: 'buffer' })));
  if (target === undefined) return;
  const linkname = packedText(target.toString('latin1'), path);
  yield { path, header: { ...headerOf('symlink', name, path, stats), linkname } };
}

async function* fileEntry(path: BytePath, name: string, { follow }: { follow: boolean }): AsyncGenerator<PackedEntry> {
  // A FIFO that took the place of the file must not block.
  const flags = O_RDONLY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
  const file = await unlessRemoved(() => onPath(path, () => open(nativeBytes(path), flags)));
  if (file === undefined) return;
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new WireError('fileChanged', 'it is no file any more', { path: pathText(path) });
    yield { path, file, header: { ...headerOf('file', name, path, stats), size: stats.size } };
  } finally {
    await file.close();
  }
}

interface Found {
  readonly stats: Stats;
  /** It was found by following a link. */
  readonly follow: boolean;
}

async function statsOf(path: BytePath, follow: boolean, within: Ancestor | undefined): Promise<Found> {
  const stats = await lstat(nativeBytes(path));
  if (!follow || !stats.isSymbolicLink()) return { stats, follow: false };
  try {
    const target = await stat(nativeBytes(path));
    return target.isDirectory() && isAmong(target, within) ? { stats, follow: false } : { stats: target, follow: true };
  } catch (error) {
    const errno = errnoOf(error);
    // It leads nowhere, or in a circle.
    if (errno === 'ENOENT' || errno === 'ENOTDIR' || errno === 'ELOOP') return { stats, follow: false };
    throw error;
  }
}

function isAmong(stats: Stats, ancestor: Ancestor | undefined): boolean {
  for (let at = ancestor; at !== undefined; at = at.above) {
    if (at.stats.ino === stats.ino && at.stats.dev === stats.dev) return true;
  }
  return false;
}

function headerOf(type: NonNullable<TarHeader['type']>, name: string, path: BytePath, stats: Stats): TarHeader {
  const ms = stats.mtimeMs;
  return {
    type,
    name: packedText(name, path),
    size: 0,
    mode: stats.mode & 0o7777,
    uid: stats.uid,
    gid: stats.gid,
    // The header itself has whole seconds from 1970 on.
    mtime: new Date(Math.max(ms, 0)),
    ...(ms >= 0 && ms % 1000 === 0 ? {} : { pax: { mtime: (ms / 1000).toFixed(6) } }),
  };
}

async function unlessRemoved<T>(action: () => Promise<T>): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof WireError && error.data['errno'] === 'ENOENT') return undefined;
    throw error;
  }
}

function notPackable(path: BytePath): WireError {
  return new WireError('invalidArgument', 'only files, folders and links can be packed', { path: pathText(path) });
}
