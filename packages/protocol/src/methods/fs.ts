/** Shapes of the file methods and notifications. */
import { z } from 'zod';
import { Sandbox } from './process.js';
import { base64, flag, text, u64 } from './scalars.js';

/** Members most file methods share. Paths are `file:` URIs of this host or absolute paths. */
const access = {
  /** False refuses a symbolic link anywhere in the path. Default true. */
  followSymlinks: flag.nullish(),
  sandbox: Sandbox.nullish(),
};
/** Names one operation of this session: a repeat with the same id is answered and not done again. At most 64 bytes. */
const operationId = text.nullish();
/** Permission bits for what is created, 0 to 0o7777; the umask is not applied to them. */
const permissions = u64.nullish();

/** What an entry of a folder is. */
export const FileKind = z.enum(['file', 'directory', 'symlink', 'fifo', 'socket', 'characterDevice', 'blockDevice']);

/** Why a write was made in place although it was to be atomic: a rename would have changed what the file is. */
export const InPlaceReason = z.enum(['hardLinks', 'mount', 'directoryNotWritable', 'owner', 'notRegularFile', 'asked']);

/** What more there is to say about a file, where `detail` asks for it. */
export const FileDetail = z.object({
  kind: FileKind,
  /** Permission bits, 0 to 0o7777. */
  mode: u64,
  /** Numeric user id of the owner. */
  uid: u64,
  /** Numeric group id. */
  gid: u64,
  /** Hard links. */
  links: u64,
  /** Bytes on the disk; less than `size` for a file with holes. */
  allocatedBytes: u64,
  /** Which file it is: stays through writes and renames, differs once another file has its place. */
  identity: text,
  /** In which state it is: differs after each change. */
  version: text,
  /** Of a symbolic link: its text. */
  linkTarget: text.optional(),
});

/** Params of `fs/readFile`: a whole file, or a range of it. */
export const ReadFileParams = z.object({
  path: text,
  ...access,
  /** With `offset` or `maxBytes`: a range, from this byte. Default 0. */
  offset: u64.nullish(),
  /** Most bytes of the range. Default and most: MAX_READ_FILE_BYTES; default for a FIFO or device: 1 MiB. */
  maxBytes: u64.nullish(),
  /** Read a FIFO or device, too; what is there at once is taken. Default false. */
  anyKind: flag.nullish(),
});
/** Result of `fs/readFile`. */
export const ReadFileResult = z.object({
  dataBase64: base64,
  /** With a range: size and identity of the file at this read, and whether the range reached its end; of a FIFO or device always. */
  size: u64.optional(),
  eof: flag.optional(),
  identity: text.optional(),
});

/** Says that a write was made in place, and why; absent for an atomic one. */
const written = { inPlace: InPlaceReason.optional() };

/** Params of `fs/writeFile`: the whole content; atomic unless `append` or `inPlace`. */
export const WriteFileParams = z.object({
  path: text,
  dataBase64: base64,
  ...access,
  /** Write behind what is there, in place. */
  append: flag.nullish(),
  /** Refuse a path that exists. */
  exclusive: flag.nullish(),
  permissions,
  /** Answer when the disk has it. */
  fsync: flag.nullish(),
  /** Write in place: readers may see a part. */
  inPlace: flag.nullish(),
  operationId,
});
/** Result of `fs/writeFile`; empty for an atomic write. */
export const WriteFileResult = z.object({ ...written });

/** Params of `fs/open`: a handle for blocks, or a stage. */
export const OpenParams = z.object({
  /** Chosen by the client, at most 32 bytes, unique on its connection while open. */
  handleId: text,
  path: text,
  /** `replace` empties or creates the file at once and writes in place, unless `stage` or `keep` is given. */
  mode: z.enum(['read', 'replace']).optional(),
  ...access,
  /** Answer with identity, version, size and permissions, and each `fs/readBlock` with the size. */
  detail: flag.nullish(),
  /** Read a FIFO or device, too. */
  anyKind: flag.nullish(),
  /**
   * With `replace`: write to a temporary file beside the target, which takes its place when `fs/close` says `commit`. It
   * belongs to the session under this id: after a cut the same `fs/open` goes on with it.
   */
  stage: text.nullish(),
  /** With `replace`: do not empty the file; `fs/writeBlock` writes into what is there. */
  keep: flag.nullish(),
  /** With `replace`: refuse a path that exists; with `stage` at the commit, too. */
  exclusive: flag.nullish(),
  permissions,
});
/** Result of `fs/open`. */
export const OpenResult = z.object({
  handleId: text,
  /** With `detail`. */
  identity: text.optional(),
  version: text.optional(),
  size: u64.optional(),
  mode: u64.optional(),
  /** With `stage`: bytes that are there already; go on behind them. */
  stagedBytes: u64.optional(),
  /** With `stage`: it was committed before; no handle was opened, and this is what the commit answered. */
  committed: z.object({ ...written }).optional(),
});

/** Params of `fs/readBlock`: one block of a file or an archive. */
export const ReadBlockParams = z.object({
  handleId: text,
  /** Byte position; of an archive the present one, or that of the last block to get it again. */
  offset: u64,
  /** 1 to 1,048,576. */
  len: u64,
});
/** Result of `fs/readBlock`. */
export const ReadBlockResult = z.object({
  chunk: base64,
  /** Fewer than `len` bytes were there; of an archive: it is complete. */
  eof: flag,
  /** Of the file at this read, where it was opened with `detail`. */
  size: u64.optional(),
});

/** Params of `fs/writeBlock`: at most 1,048,576 bytes at a byte position; of an archive behind the last block. */
export const WriteBlockParams = z.object({ handleId: text, offset: u64, chunk: base64 });
/** Result of `fs/writeBlock`: an empty object. */
export const WriteBlockResult = z.object({});

/** Params of `fs/close`. */
export const CloseParams = z.object({
  handleId: text,
  /** Of a stage: it takes the place of its target; false, or absent, drops it. Of `fs/unpack`: the archive is complete. */
  commit: flag.nullish(),
  /** Of a stage: close the handle and keep the stage for another `fs/open`. */
  keepStage: flag.nullish(),
  /** Of a stage, with `commit`: when the file was last changed, in ms since 1970. Default: by writing the stage. */
  modifiedAtMs: z.number().nullish(),
  /** Answer when the disk has it. */
  fsync: flag.nullish(),
});
/** Result of `fs/close`. */
export const CloseResult = z.object({
  ...written,
  /** Of `fs/unpack`: entries made, and bytes of their files. */
  entries: u64.optional(),
  bytes: u64.optional(),
});

/** Params of `fs/createDirectory`. */
export const CreateDirectoryParams = z.object({
  path: text,
  /** Default true: parents are made as well, and an existing folder is fine. */
  recursive: flag.nullish(),
  ...access,
  permissions,
  operationId,
});
/** Result of `fs/createDirectory`: an empty object. */
export const CreateDirectoryResult = z.object({});

/** Params of `fs/remove`. */
export const RemoveParams = z.object({
  path: text,
  /** Default true. */
  recursive: flag.nullish(),
  /** Default true: what does not exist is fine. */
  force: flag.nullish(),
  ...access,
  operationId,
});
/** Result of `fs/remove`: an empty object. */
export const RemoveResult = z.object({});

/** Params of `fs/copy`; a folder needs `recursive`. */
export const CopyParams = z.object({
  sourcePath: text,
  destinationPath: text,
  recursive: flag,
  sandbox: Sandbox.nullish(),
  /** Default true: files take the place of files, and a folder is merged into one that exists. False: what exists is EEXIST. */
  overwrite: flag.nullish(),
  /** Copy what links point to. Default false: links are copied as links. */
  followSymlinks: flag.nullish(),
  operationId,
});
/** Result of `fs/copy`. */
export const CopyResult = z.object({
  /** Entries that are no file, folder or link and were left out; absent for none. */
  skipped: u64.optional(),
});

/** Params of `fs/move`. */
export const MoveParams = z.object({
  sourcePath: text,
  destinationPath: text,
  sandbox: Sandbox.nullish(),
  /** False refuses a destination that exists. Default true: a file takes the place of a file, a folder that of an empty one. */
  overwrite: flag.nullish(),
  operationId,
});
/** Result of `fs/move`. */
export const MoveResult = z.object({
  /** It lay on another file system and was copied and removed. */
  copied: flag.optional(),
});

/** Params of `fs/getMetadata`. */
export const GetMetadataParams = z.object({
  path: text,
  ...access,
  /** Describe a symbolic link itself. Default false. */
  ofLink: flag.nullish(),
  detail: flag.nullish(),
});
/** Result of `fs/getMetadata`; times in ms since 1970, and the members of `FileDetail` with `detail`. */
export const GetMetadataResult = z.object({
  isDirectory: flag,
  isFile: flag,
  /** The path names a link; the rest describes its target, unless `ofLink`. */
  isSymlink: flag,
  size: u64,
  createdAtMs: z.number(),
  modifiedAtMs: z.number(),
  ...FileDetail.partial().shape,
});

/** Params of `fs/canonicalize`. */
export const CanonicalizeParams = z.object({ path: text, sandbox: Sandbox.nullish() });
/** Result of `fs/canonicalize`: the path with every link resolved, as a `file:` URI. */
export const CanonicalizeResult = z.object({ path: text });

/** Params of `fs/readDirectory`: all entries of a folder, or a page of them. */
export const ReadDirectoryParams = z.object({
  path: text,
  sandbox: Sandbox.nullish(),
  /** Every entry with its kind, size, mode and time, dangling links as well; sorted by the bytes of the names. */
  detail: flag.nullish(),
  /** Most entries of this page, 1 to 50,000; sorted by the bytes of the names. */
  limit: u64.nullish(),
  /** `nextCursor` of the page before. */
  cursor: text.nullish(),
});
/** One entry of a folder. Without `detail` the kind is that of the target of a link. */
export const DirectoryEntry = z.object({
  /** With replacement characters where it is no UTF-8; `path` is exact then. */
  fileName: text,
  /** Whether it is a folder, or a link to one. */
  isDirectory: flag,
  /** Whether it is a regular file, or a link to one. */
  isFile: flag,
  /** The path of the entry, where `fileName` is not it: the name is no UTF-8. */
  path: text.optional(),
  /** With `detail`: of the entry itself; a link is not followed for these. */
  kind: FileKind.optional(),
  size: u64.optional(),
  mode: u64.optional(),
  modifiedAtMs: z.number().optional(),
  linkTarget: text.optional(),
});
/** Result of `fs/readDirectory`. */
export const ReadDirectoryResult = z.object({
  entries: z.array(DirectoryEntry),
  /** Where the next page begins; absent on the last one. */
  nextCursor: text.optional(),
});

/** Params of `fs/walk`: what lies below a folder, within bounds. */
export const WalkParams = z.object({
  path: text,
  options: z.object({
    /** 0 to 64; 0 lists the children of `path` alone. */
    maxDepth: u64,
    /** 1 to 10,000 directories read. */
    maxDirectories: u64,
    /** 1 to 50,000. */
    maxEntries: u64,
    followDirectorySymlinks: flag,
    /** List hidden directories without entering them. */
    pruneHiddenDirectories: flag.optional(),
    /** Entries of every kind, links as links, with size, mode and time. */
    detail: flag.nullish(),
  }),
  sandbox: Sandbox.nullish(),
});
/** One entry of `fs/walk`; `path` is a `file:` URI. */
export const WalkEntry = z.object({
  path: text,
  kind: FileKind,
  size: u64.optional(),
  mode: u64.optional(),
  modifiedAtMs: z.number().optional(),
  linkTarget: text.optional(),
});
/** Result of `fs/walk`; `errors` names folders that could not be read. */
export const WalkResult = z.object({
  entries: z.array(WalkEntry),
  errors: z.array(z.object({ path: text, message: text })),
  /** A bound cut something. */
  truncated: flag,
});

/** Params of `fs/watchMissing`: paths, at most 64, of which one is told when it comes into being. */
export const WatchMissingParams = z.object({ watchId: u64, missing: z.array(text) });
/** Result of `fs/watchMissing`; false: one of the paths exists already, or the host cannot watch. */
export const WatchMissingResult = z.object({ watching: flag });
/** Params of `fs/missingChanged`: one of the paths of this watch may have appeared; told once. */
export const MissingChangedParams = z.object({ watchId: u64 });

/** Params of `fs/watch`. */
export const WatchParams = z.object({
  /** Chosen by the client, at most 64 bytes, unique on its connection. */
  watchId: text,
  /** A file or a folder. */
  path: text,
  /** With a folder: everything below it. Default true. */
  recursive: flag.nullish(),
  sandbox: Sandbox.nullish(),
});
/** Answered when the watch is in place: every later change is told. */
export const WatchResult = z.object({ watchId: text });
/** Params of `fs/unwatch`. */
export const UnwatchParams = z.object({ watchId: text });
/** Result of `fs/unwatch`: an empty object. */
export const UnwatchResult = z.object({});
/** One change; `path` is a `file:` URI. */
export const WatchChange = z.object({
  kind: z.enum(['created', 'modified', 'removed']),
  path: text,
  isDirectory: flag,
});
/** Params of `fs/changed`: what has changed since the last one. */
export const ChangedParams = z.object({
  watchId: text,
  changes: z.array(WatchChange),
  /** Changes were dropped: look at the whole tree again. */
  overflow: flag.optional(),
  /** The watch has ended, for this reason: nothing more is told. */
  ended: text.optional(),
});

/** Params of `fs/pack`: a tar archive of a folder or a file, read in blocks. */
export const PackParams = z.object({
  /** The archive is read by `fs/readBlock` from 0 on, to its `eof`, and closed like a file. */
  handleId: text,
  /** A folder, whose content is packed under names relative to it; or a file, packed under its name. */
  path: text,
  /** Pack only these, relative to the folder and without what is below them. */
  names: z.array(text).nullish(),
  /** Begin every name with that of the folder. */
  includeParent: flag.nullish(),
  /** Pack what links point to. Default false: links are packed as links. */
  followSymlinks: flag.nullish(),
  sandbox: Sandbox.nullish(),
});
/** Result of `fs/pack`. */
export const PackResult = z.object({ handleId: text });

/** Params of `fs/unpack`: a tar archive, written in blocks, is unpacked as it comes. */
export const UnpackParams = z.object({
  /** The archive is written by `fs/writeBlock` from 0 on, and ended by `fs/close` with `commit`. */
  handleId: text,
  /** The folder it is unpacked into; made if it is missing. Nothing outside of it is touched. */
  path: text,
  /** False refuses files and links that exist; folders are merged. Default true. */
  overwrite: flag.nullish(),
  sandbox: Sandbox.nullish(),
});
/** Result of `fs/unpack`. */
export const UnpackResult = z.object({ handleId: text });
