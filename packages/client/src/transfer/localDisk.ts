/** What transfers need of the local disk; `disk/disk.ts` has it on Node. Paths are absolute and strings of bytes. */
import type { ByteSink, ByteSource } from './blocks.js';
import type { Tree, TreeItem } from './tree.js';

export type LocalKind = 'missing' | 'file' | 'directory' | 'other';

/** A file that is read: the one that was opened, whatever becomes of its name. */
export interface LocalSource extends ByteSource {
  readonly size: number;
  readonly mode: number;
  readonly modifiedAtMs: number;
  /** Never rejects. */
  close(): Promise<void>;
}

export interface PlacedFile {
  readonly mode: number | undefined;
  readonly modifiedAtMs: number;
  readonly overwrite: boolean;
}

/** A file that comes about: readers see what was there before, or all of it. */
export interface LocalTarget extends ByteSink {
  /** Puts it in its place, or fails (EEXIST among others) and leaves nothing. */
  commit(how: PlacedFile): Promise<void>;
  /** Nothing of it stays. Never rejects. */
  drop(): Promise<void>;
}

export interface LocalTreeOptions {
  readonly followSymlinks: boolean;
  /** Asked before each folder; throws to end the listing. */
  readonly check: () => void;
}

/** Its functions throw FileError with the local path. */
export interface LocalDisk {
  /** The bytes of a path in absolute form; a slash at its end stays, since it says that a folder is meant. */
  absolutePath(path: string): string;
  /** Of what a link leads to. */
  kindOf(path: string): Promise<LocalKind>;
  /** Whether anything has the path, a link that leads nowhere included. */
  isTaken(path: string): Promise<boolean>;
  /** The file a link leads to, so that the link stays when that is replaced; the path itself for anything else. */
  behindLink(path: string): Promise<string>;
  treeOf(root: string, options: LocalTreeOptions): Promise<Tree>;
  /** Undefined for what is no regular file. */
  openSource(path: string, followSymlinks: boolean): Promise<LocalSource | undefined>;
  /** In a folder that exists. */
  createTarget(path: string): Promise<LocalTarget>;
  /** A folder with its parents; one that exists, or a link to one, is fine. */
  makeFolders(path: string): Promise<void>;
  /** One folder that can be written into until it is settled. Anything else in its place, a link too, is ENOTDIR. */
  makeFolder(path: string): Promise<'made' | 'there'>;
  /** Mode and time of a folder, once everything is in it. */
  settleFolder(path: string, item: TreeItem): Promise<void>;
  /** Takes the place of a file or a link; of a folder never. */
  makeLink(path: string, item: TreeItem, overwrite: boolean): Promise<void>;
}
