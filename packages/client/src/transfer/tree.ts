/** What is carried between two hosts, and what is not. Pure. */

/** One thing of a tree. */
export interface TreeItem {
  /** Relative to the root of the tree, one character a byte; empty for the root itself. */
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'symlink';
  /** Bytes; 0 for what is no file. */
  readonly size: number;
  /** Permission bits, 0 to 0o777: what runs with the rights of its owner does not become that by a transfer. */
  readonly mode: number | undefined;
  readonly modifiedAtMs: number;
  /** Of a symbolic link: its text. */
  readonly target?: string;
}

/** Why something was not carried. */
export type SkipReason =
  /** It is no file, folder or link. */
  | 'fifo'
  | 'socket'
  | 'device'
  /** Links are followed, and this one leads into a folder that it lies in. */
  | 'linkLoop'
  /** Links are followed, and this one leads nowhere. */
  | 'danglingLink'
  /** The server cannot make or read links. */
  | 'linksNotSupported'
  /** The name, or the text of the link, is no UTF-8 and this way of carrying it needs that. */
  | 'notUtf8'
  /** It was listed, and gone when it was to be read. */
  | 'vanished';

/** Something that was not carried. */
export interface SkippedEntry {
  /** Of the source; a `file:` URI where the name is no UTF-8, so that it can be named. */
  readonly path: string;
  /** Why it was not. */
  readonly reason: SkipReason;
}

/** All there is below a root, folders before what is in them. */
export interface Tree {
  readonly items: readonly TreeItem[];
  readonly skipped: readonly SkippedEntry[];
}

export const isFile = (item: TreeItem): boolean => item.kind === 'file';
export const isFolder = (item: TreeItem): boolean => item.kind === 'directory';
export const isLink = (item: TreeItem): boolean => item.kind === 'symlink';

/** Bits of `mode` that are carried. */
export const CARRIED_MODE = 0o777;
