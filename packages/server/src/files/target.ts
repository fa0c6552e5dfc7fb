/** What a write to a path is going to meet: the file that the links at its end lead to, and of which kind it is. */
import type { BigIntStats, Stats } from 'node:fs';
import { lstat, readlink, realpath, stat } from 'node:fs/promises';
import { type BytePath, joinPath, nameOf, nativeBytes, parentOf, pathOf } from '../paths.js';
import { errnoError, errnoOf } from './errno.js';

export type Target =
  /** Nothing is there; its folder may be missing as well. */
  | { readonly kind: 'new'; readonly path: BytePath }
  /** A regular file under its own name: the path is no link. */
  | { readonly kind: 'file'; readonly path: BytePath; readonly stats: Stats }
  /** A device, a FIFO, or a file that only this link leads to, as those of `/proc/self/fd` do. */
  | { readonly kind: 'other'; readonly path: BytePath };

/** As many as the kernel follows. */
const MOST_LINKS = 40;

/**
 * Follows links at the end of the path, also to what does not exist yet. With `exclusive` anything there is EEXIST, a link
 * included. Throws EISDIR, ELOOP, and errors of the host.
 */
export async function findTarget(path: BytePath, { exclusive = false } = {}): Promise<Target> {
  const stats = await statsOf(path);
  if (stats === undefined) return { kind: 'new', path };
  if (exclusive) throw errnoError('EEXIST', path);
  if (stats.isDirectory()) throw errnoError('EISDIR', path);
  if (stats.isFile()) return { kind: 'file', path, stats };
  if (!stats.isSymbolicLink()) return { kind: 'other', path };
  return (await behindLink(path)) ?? { kind: 'new', path: await endOfLinks(path) };
}

/** Of the path itself, links included; undefined when there is nothing. */
export async function statsOf(path: BytePath): Promise<Stats | undefined> {
  try {
    return await lstat(nativeBytes(path));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

export function isSameFile(one: BigIntStats, other: BigIntStats): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/** The path without links, all of whose parts exist. */
export async function realPath(path: BytePath): Promise<BytePath> {
  return pathOf(await realpath(nativeBytes(path), { encoding: 'buffer' }));
}

/** Undefined when the link leads nowhere. */
async function behindLink(link: BytePath): Promise<Target | undefined> {
  try {
    const behind = await stat(nativeBytes(link), { bigint: true });
    if (behind.isDirectory()) throw errnoError('EISDIR', link);
    if (!behind.isFile()) return { kind: 'other', path: link };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const path = await realPath(link);
    const [behind, named] = await Promise.all([
      stat(nativeBytes(link), { bigint: true }),
      lstat(nativeBytes(path), { bigint: true }),
    ]);
    if (isSameFile(behind, named)) return { kind: 'file', path, stats: await lstat(nativeBytes(path)) };
  } catch (error) {
    // The kernel follows such a link without a path; what it says is no name of the file.
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
  return { kind: 'other', path: link };
}

/** The name that a chain of links ends in. Its `..` are left to the kernel, since folders on the way may be links. */
async function endOfLinks(link: BytePath): Promise<BytePath> {
  let path = link;
  for (let links = 0; links < MOST_LINKS; links += 1) {
    const stats = await statsOf(path);
    if (stats?.isSymbolicLink() !== true) return path;
    const text = await readlink(nativeBytes(path), { encoding: 'latin1' });
    // Absolute, or made so: the brand promises no more for what is given to the kernel alone.
    path = text.startsWith('/') ? (text as BytePath) : joinPath(parentOf(path), text);
    // A name that ends so is that of a folder, which does not exist.
    if (['', '.', '..'].includes(nameOf(path))) throw errnoError('EISDIR', link);
  }
  throw errnoError('ELOOP', link);
}
