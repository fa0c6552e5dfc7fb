/** What callers pass to and get from the file methods of a client. Pure. */
import type { FileKind } from '@exec-server/protocol';
import type { CallOptions } from '../calls.js';
import type { ClientError } from '../errors.js';

/** Most bytes `readFile` takes into memory unless told otherwise. */
export const DEFAULT_MAX_BYTES = 512 * 1024 * 1024;

/** What to do about symbolic links on the way. */
export interface LinkOptions {
  /** False refuses a symbolic link anywhere in the path. Default true. */
  readonly followSymlinks?: boolean | undefined;
}

/** Which part of a file. */
export interface RangeOptions extends LinkOptions {
  /** First byte. Default 0. */
  readonly offset?: number | undefined;
  /** Most bytes. Default: to the end. */
  readonly length?: number | undefined;
}

/** How {@link FileSystem.readFile} reads. */
export interface ReadFileOptions extends RangeOptions, CallOptions {
  /** Most bytes to take into memory; FILE_TOO_LARGE comes before it is taken. Default 512 MiB. */
  readonly maxBytes?: number | undefined;
  /** Read a FIFO or device, too: what is there at once, up to 9 MiB. Default false. Not on foreign servers. */
  readonly anyKind?: boolean | undefined;
}

/** How {@link FileSystem.readText} reads. */
export interface ReadTextOptions extends ReadFileOptions {
  /** As `TextDecoder` takes it. Default `utf-8`; a byte order mark is left out. */
  readonly encoding?: string | undefined;
  /** Reject with a TypeError for bytes that are not of the encoding, in place of U+FFFD. Default false. */
  readonly fatal?: boolean | undefined;
}

/** How {@link FileSystem.readStream} reads. `timeoutMs` is for each step, since the reader sets the pace. */
export interface ReadStreamOptions extends RangeOptions, CallOptions {}

/** How a file is written. Only `followSymlinks` and `inPlace` work on foreign servers, which write in place always. */
export interface WriteOptions extends LinkOptions {
  /** False refuses a path that exists, with EEXIST; in the same step as the write, so that of two writers one wins. Default true. */
  readonly overwrite?: boolean | undefined;
  /** Permission bits of a new file, 0 to 0o7777. Default 0o666. */
  readonly mode?: number | undefined;
  /** Wait until the disk has it. Default false. */
  readonly fsync?: boolean | undefined;
  /** Write into the file that is there: readers may see a part. Default false: the new content appears at once. */
  readonly inPlace?: boolean | undefined;
}

/** How {@link FileSystem.writeFile} writes. */
export interface WriteFileOptions extends WriteOptions, CallOptions {
  /** Write behind what is there, in place; over 1 MiB in several pieces. Default false. */
  readonly append?: boolean | undefined;
}

/** How {@link FileSystem.writeStream} writes. `timeoutMs` is for each step, since the writer sets the pace. */
export interface WriteStreamOptions extends WriteOptions, CallOptions {}

/** What a server says about a file. Foreign servers know `isSymlink`, size and times, and of kinds files and folders. */
export interface FileStat {
  /** `other`: neither file nor folder, on foreign servers. */
  readonly kind: FileKind | 'other';
  /** In bytes. */
  readonly size: number;
  /** When the content was last changed, in ms since 1970. */
  readonly modifiedAtMs: number;
  /** In ms since 1970; 0 where the host does not know it. */
  readonly createdAtMs: number;
  /** The path names a link; the rest describes its target, unless `followSymlinks` is false. */
  readonly isSymlink: boolean;
  /** Permission bits, 0 to 0o7777. */
  readonly mode?: number;
  /** Numeric user id of the owner. */
  readonly uid?: number;
  /** Numeric group id. */
  readonly gid?: number;
  /** Hard links. */
  readonly links?: number;
  /** Bytes on the disk; less than `size` for a file with holes. */
  readonly allocatedBytes?: number;
  /** Which file it is: stays through writes and renames. */
  readonly identity?: string;
  /** In which state it is: differs after each change. */
  readonly version?: string;
  /** The text of a link, where the link itself is described. */
  readonly linkTarget?: string;
}

/** An entry of a folder. Of a link it describes the link; foreign servers know name, path and kind, and follow links for it. */
export interface FileEntry {
  /** Of a name that is not UTF-8: with replacement characters; `path` is exact. */
  readonly name: string;
  /** Absolute, as text where it is UTF-8, else as `file:` URI; every method takes it. */
  readonly path: string;
  /** What it is; `other`: neither file nor folder, on foreign servers. */
  readonly kind: FileKind | 'other';
  /** In bytes. */
  readonly size?: number;
  /** Permission bits, 0 to 0o7777. */
  readonly mode?: number;
  /** When it was last changed, in ms since 1970. */
  readonly modifiedAtMs?: number;
  /** The text of a link. */
  readonly linkTarget?: string;
}

/** An entry that {@link FileSystem.walk} gives. */
export interface WalkedEntry extends FileEntry {
  /** 0 for the children of the folder that is walked. */
  readonly depth: number;
}

/** How {@link FileSystem.walk} goes; `timeoutMs` is for each step. */
export interface WalkOptions extends CallOptions {
  /** 0 lists the children alone. Default: no limit; 64 on foreign servers. */
  readonly maxDepth?: number | undefined;
  /** Enter folders behind symbolic links, each folder once. Default false. */
  readonly followSymlinks?: boolean | undefined;
  /** Told a folder below that could not be read, which is left out then. Default: it ends the walk. */
  readonly onError?: ((error: ClientError) => void) | undefined;
}

/** How {@link FileSystem.stat} looks. */
export interface StatOptions extends CallOptions {
  /** False describes a link itself. Default true: its target. */
  readonly followSymlinks?: boolean | undefined;
}

/** How {@link FileSystem.copy} copies. */
export interface CopyOptions extends CallOptions {
  /** Copy folders with what is in them. Default true. */
  readonly recursive?: boolean | undefined;
  /** False refuses a destination that exists. Default true. */
  readonly overwrite?: boolean | undefined;
  /** Copy what links point to. Default false: links are copied as links. */
  readonly followSymlinks?: boolean | undefined;
}

/** How {@link FileSystem.move} moves. */
export interface MoveOptions extends CallOptions {
  /** False refuses a destination that exists. Default true. */
  readonly overwrite?: boolean | undefined;
}

/** How {@link FileSystem.remove} removes. */
export interface RemoveOptions extends CallOptions, LinkOptions {
  /** Remove a folder with what is in it. Default false. */
  readonly recursive?: boolean | undefined;
  /** What does not exist is fine. Default false. */
  readonly force?: boolean | undefined;
}

/** How {@link FileSystem.mkdir} makes a folder. */
export interface MkdirOptions extends CallOptions, LinkOptions {
  /** Make parents as well, and take a folder that exists. Default true. */
  readonly recursive?: boolean | undefined;
  /** Permission bits, 0 to 0o7777. Default: as the server makes them. Not on foreign servers. */
  readonly mode?: number | undefined;
}

/** What {@link FileSystem.pack} packs; `timeoutMs` is for each step. */
export interface PackOptions extends CallOptions {
  /** Pack only these, relative to the folder, without what is below them. */
  readonly names?: readonly string[] | undefined;
  /** Begin every name with that of the folder. Default false. */
  readonly includeParent?: boolean | undefined;
  /** Pack what links point to. Default false: links are packed as links. */
  readonly followSymlinks?: boolean | undefined;
}

/** How {@link FileSystem.unpack} unpacks; `timeoutMs` is for each step. */
export interface UnpackOptions extends CallOptions {
  /** False refuses entries that exist. Default true. */
  readonly overwrite?: boolean | undefined;
}
