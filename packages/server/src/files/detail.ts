/** What the host says about a file → members of the wire. */
import type { BigIntStats } from 'node:fs';
import { readlink } from 'node:fs/promises';
import type { FileDetail, FileKind } from '@exec-server/protocol';
import { type BytePath, nativeBytes, pathText } from '../paths.js';

/** Common to what `stat` and a listing say. */
export interface Typed {
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
  isFIFO(): boolean;
  isSocket(): boolean;
  isCharacterDevice(): boolean;
  isBlockDevice(): boolean;
}

export function kindOf(typed: Typed): FileKind {
  if (typed.isDirectory()) return 'directory';
  if (typed.isSymbolicLink()) return 'symlink';
  if (typed.isFIFO()) return 'fifo';
  if (typed.isSocket()) return 'socket';
  if (typed.isCharacterDevice()) return 'characterDevice';
  // The host knows no more kinds than these and regular files.
  return typed.isBlockDevice() ? 'blockDevice' : 'file';
}

/** Which file it is. Inode numbers are used again; the birth time tells the files apart. */
export function identityOf({ dev, ino, birthtimeNs }: BigIntStats): string {
  return [dev, ino, birthtimeNs].map((part) => part.toString(36)).join('-');
}

/** In which state it is. A change within the resolution of the clock shows by the size alone. */
export function versionOf({ size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [size, mtimeNs, ctimeNs].map((part) => part.toString(36)).join('-');
}

/** Permission bits. */
export function permissionsOf({ mode }: BigIntStats): number {
  return Number(mode & 0o7777n);
}

export function wholeMs(ns: bigint): number {
  return Number(ns / 1_000_000n);
}

/** Everything `detail` asks for; `linkTarget` is given for a symbolic link. */
export function detailOf(stats: BigIntStats, linkTarget?: string): FileDetail {
  return {
    kind: kindOf(stats),
    mode: permissionsOf(stats),
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    links: Number(stats.nlink),
    // Blocks of 512 bytes, whatever the block size of the file system.
    allocatedBytes: Number(stats.blocks) * 512,
    identity: identityOf(stats),
    version: versionOf(stats),
    ...(linkTarget === undefined ? {} : { linkTarget }),
  };
}

/** What entries of folders and walks say with `detail`. */
export interface EntryDetail {
  readonly kind: FileKind;
  /** These are absent where the server may not look. */
  readonly size?: number;
  readonly mode?: number;
  readonly modifiedAtMs?: number;
  readonly linkTarget?: string;
}

export function entryDetailOf(stats: BigIntStats, linkTarget?: string): EntryDetail {
  return {
    kind: kindOf(stats),
    size: Number(stats.size),
    mode: permissionsOf(stats),
    modifiedAtMs: wholeMs(stats.mtimeNs),
    ...(linkTarget === undefined ? {} : { linkTarget }),
  };
}

/** The text of a symbolic link. */
export async function linkTextOf(path: BytePath): Promise<string> {
  const text = await readlink(nativeBytes(path), { encoding: 'buffer' });
  return pathText(text.toString('latin1'));
}
