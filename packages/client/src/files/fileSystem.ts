/** The public calls about files of a client. */
import { checkCount } from '../checkCount.js';
import type { CallOptions } from '../calls.js';
import type { Clock } from '../clock.js';
import { download } from '../transfer/download.js';
import type { TransferOptions } from '../transfer/options.js';
import type { TransferResult } from '../transfer/tally.js';
import { upload } from '../transfer/upload.js';
import { packingStream, unpackingStream, type UnpackStream } from './archives.js';
import type { FileCalls } from './fileCalls.js';
import { isFileError } from './fileErrors.js';
import type { MetadataReply, WrittenReply } from './fileGuards.js';
import type {
  CopyOptions,
  FileEntry,
  FileStat,
  MkdirOptions,
  MoveOptions,
  PackOptions,
  ReadFileOptions,
  ReadStreamOptions,
  ReadTextOptions,
  RemoveOptions,
  StatOptions,
  UnpackOptions,
  WalkedEntry,
  WalkOptions,
  WriteFileOptions,
  WriteStreamOptions,
} from './fileOptions.js';
import { pagesOf, walkTree } from './listing.js';
import { readingStream, readWhole } from './reading.js';
import { FileWatch, type WatchHub, type WatchOptions } from './watching.js';
import { type FilePath, shownPath, wirePath } from './wirePath.js';
import { writeWhole, writingStream } from './writing.js';

/**
 * Files of the server's host. Paths are absolute, `file:` URIs or URLs; anything else is INVALID_ARGUMENT and nothing is
 * sent. Refusals about a file are `FileError`s, whose `code` is that of the host (`ENOENT`). Every method goes on after a
 * cut: reads where they were, changes once. On foreign servers a change whose answer is lost is OUTCOME_UNKNOWN, and what
 * they lack is NOT_SUPPORTED before anything is sent.
 *
 * @example
 * ```ts
 * await client.fs.writeFile('/tmp/greeting.txt', 'hello\n');
 * console.log(await client.fs.readText('/tmp/greeting.txt'));
 * for await (const entry of client.fs.walk('/srv/repo', { maxDepth: 2 })) console.log(entry.kind, entry.path);
 * const { files, skipped } = await client.fs.upload('./dist', '/srv/app', { timeoutMs: 60_000 });
 * console.log(`${files} files`, skipped);
 * ```
 */
export class FileSystem {
  readonly #calls: FileCalls;
  readonly #hub: WatchHub;
  readonly #clock: Clock;

  /** @internal Use `client.fs`. */
  constructor(calls: FileCalls, hub: WatchHub, clock: Clock) {
    this.#calls = calls;
    this.#hub = hub;
    this.#clock = clock;
  }

  /**
   * A file, or a range of it, in one piece; of whatever size the host reports (`/proc`). Rejects with FILE_TOO_LARGE over
   * `maxBytes`, NOT_REGULAR_FILE without `anyKind`, FILE_CHANGED for one that becomes another file again and again meanwhile.
   */
  async readFile(path: FilePath, options: ReadFileOptions = {}): Promise<Uint8Array> {
    return await readWhole(this.#calls, wirePath(path), options);
  }

  /**
   * The same as text. Rejects with a RangeError for an `encoding` that does not exist, with a TypeError for bad bytes
   * when `fatal`.
   */
  async readText(path: FilePath, options: ReadTextOptions = {}): Promise<string> {
    const { encoding = 'utf-8', fatal = false, ...read } = options;
    // Before the file is read: it throws a RangeError for an encoding it does not know.
    const decoder = new TextDecoder(encoding, { fatal });
    return decoder.decode(await this.readFile(path, read));
  }

  /**
   * Replaces or creates a file at once: whoever reads sees the old content or the new one. Where that would change what the file
   * is (hard links, mounts, …) it is written in place, and the answer says so. Text is written as UTF-8.
   */
  async writeFile(path: FilePath, content: string | Uint8Array, options: WriteFileOptions = {}): Promise<WrittenReply> {
    return await writeWhole(this.#calls, wirePath(path), content, options);
  }

  /**
   * A file, or a range of it, as a stream; up to 2 MiB are asked for ahead. After a cut it goes on where it was, and errors with
   * FILE_CHANGED when another file has the path by then. On foreign servers also when size or time have changed.
   */
  readStream(path: FilePath, options: ReadStreamOptions = {}): ReadableStream<Uint8Array> {
    return readingStream(this.#calls, wirePath(path), options);
  }

  /**
   * Replaces or creates a file with what is written; it appears when the stream is closed, and an aborted stream leaves nothing.
   * Up to 2 MiB are under way. After a cut it goes on behind what arrived. With `inPlace`, and on foreign servers, the file is
   * written as the bytes come.
   */
  writeStream(path: FilePath, options: WriteStreamOptions = {}): WritableStream<string | Uint8Array> {
    return writingStream(this.#calls, wirePath(path), options);
  }

  /**
   * The entries of a folder, sorted by the bytes of their names; not sorted on foreign servers. Of any number: it is read
   * in pages.
   */
  async list(path: FilePath, options: CallOptions = {}): Promise<FileEntry[]> {
    const wire = wirePath(path);
    return await this.#calls.within('fs/readDirectory', wire, options, async (step) => {
      const entries: FileEntry[] = [];
      for await (const page of pagesOf(this.#calls, wire, step)) for (const entry of page) entries.push(entry);
      return entries;
    });
  }

  /**
   * Everything below a folder, each folder before what is in it, never in circles. What changes meanwhile may be there or not.
   * `timeoutMs` is for each step.
   */
  walk(path: FilePath, options: WalkOptions = {}): AsyncGenerator<WalkedEntry, void, undefined> {
    return walkTree(this.#calls, wirePath(path), options);
  }

  /** Describes a file, or with `followSymlinks: false` a link itself, which foreign servers cannot. */
  async stat(path: FilePath, options: StatOptions = {}): Promise<FileStat> {
    const { followSymlinks = true, ...call } = options;
    if (!followSymlinks) this.#calls.require('a description of a link itself (followSymlinks: false)');
    const params = { path: wirePath(path), ...(followSymlinks ? {} : { ofLink: true }) };
    return statOf(
      await this.#calls.getMetadata({ ...params, ...(this.#calls.extended ? { detail: true } : {}) }, call),
    );
  }

  /**
   * Whether there is something; of a link, whether there is something behind it. Rejects where that cannot be said, as
   * with EACCES.
   */
  async exists(path: FilePath, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.#calls.getMetadata({ path: wirePath(path) }, options);
      return true;
    } catch (error) {
      if (isFileError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return false;
      throw error;
    }
  }

  /**
   * Copies a file, a link or a folder with its modes, on the host of the server; a folder merges into one that is there.
   */
  async copy(
    source: FilePath,
    destination: FilePath,
    options: CopyOptions = {},
  ): Promise<{
    /** Entries that are no file, folder or link and were left out. */
    readonly skipped: number;
  }> {
    const { recursive = true, overwrite, followSymlinks, ...call } = options;
    if (overwrite === false) this.#calls.require('a copy with overwrite: false');
    if (followSymlinks === true) this.#calls.require('a copy with followSymlinks');
    const params = {
      sourcePath: wirePath(source, 'source'),
      destinationPath: wirePath(destination, 'destination'),
      recursive,
      ...(overwrite === false ? { overwrite } : {}),
      ...(followSymlinks === true ? { followSymlinks } : {}),
    };
    const { skipped = 0 } = await this.#calls.copy(params, call);
    return { skipped };
  }

  /**
   * Renames; a file takes the place of a file, a folder that of an empty one. NOT_SUPPORTED on foreign servers.
   */
  async move(
    source: FilePath,
    destination: FilePath,
    options: MoveOptions = {},
  ): Promise<{
    /** It lay on another file system, and was copied and removed. */
    readonly copied: boolean;
  }> {
    const { overwrite, ...call } = options;
    const params = {
      sourcePath: wirePath(source, 'source'),
      destinationPath: wirePath(destination, 'destination'),
      ...(overwrite === false ? { overwrite } : {}),
    };
    return await this.#calls.move(params, call);
  }

  /** Removes a file, a link itself, or an empty folder; with `recursive` a folder with what is in it. */
  async remove(path: FilePath, options: RemoveOptions = {}): Promise<void> {
    const { recursive = false, force = false, followSymlinks, ...call } = options;
    const links = followSymlinks === undefined ? {} : { followSymlinks };
    await this.#calls.remove({ path: wirePath(path), recursive, force, ...links }, call);
  }

  /** Makes a folder, and unless `recursive` is false what is missing above it. */
  async mkdir(path: FilePath, options: MkdirOptions = {}): Promise<void> {
    const { recursive = true, mode, followSymlinks, ...call } = options;
    checkCount('mode', mode);
    if (mode !== undefined) this.#calls.require('mode');
    const params = {
      path: wirePath(path),
      recursive,
      ...(mode === undefined ? {} : { permissions: mode }),
      ...(followSymlinks === undefined ? {} : { followSymlinks }),
    };
    await this.#calls.createDirectory(params, call);
  }

  /** The path without links, `.` and `..`; of something that exists, else ENOENT. */
  async realpath(path: FilePath, options: CallOptions = {}): Promise<string> {
    return shownPath(await this.#calls.canonicalize({ path: wirePath(path) }, options));
  }

  /**
   * Resolves when the watch is in place: every later change is told. After a cut it is put in place again, and a batch
   * with `overflow` says that changes may be missing. Leave the loop, or abort, to end it. NOT_SUPPORTED on foreign
   * servers.
   *
   * @example
   * ```ts
   * for await (const { changes, overflow } of await client.fs.watch('/srv/repo')) {
   *   if (overflow) console.log('look at everything again');
   *   for (const { kind, path } of changes) console.log(kind, path);
   * }
   * ```
   */
  async watch(path: FilePath, options: WatchOptions = {}): Promise<FileWatch> {
    const wire = wirePath(path);
    this.#calls.require('fs/watch');
    const watch = new FileWatch(this.#calls, this.#hub, wire, options);
    await watch.begin();
    return watch;
  }

  /**
   * A folder or file as a tar archive. It ends only where the archive is whole; a cut ends it with TRANSFER_LOST
   * (`data.retryable`). NOT_SUPPORTED on foreign servers.
   */
  pack(path: FilePath, options: PackOptions = {}): ReadableStream<Uint8Array> {
    return packingStream(this.#calls, wirePath(path), options);
  }

  /**
   * Unpacks a tar archive that is written to the stream into a folder; nothing outside of it is touched. What had arrived before
   * a failure stays; a cut ends it with TRANSFER_LOST (`data.retryable`). NOT_SUPPORTED on foreign servers.
   */
  unpack(path: FilePath, options: UnpackOptions = {}): UnpackStream {
    return unpackingStream(this.#calls, wirePath(path), options);
  }

  /**
   * A local file or folder to the server, by the rules of `cp`: a file lands inside of a folder that exists; a slash at the end
   * of `remote` means a folder, which is made where it is missing; a folder merges into one that exists, or lands inside of it
   * with `includeParent`. Links are carried as links, modes (0o777) and times are kept, empty folders too; a large file that
   * replaces one keeps the mode of that. Nothing is left out in silence: see `skipped` of the result. It goes on after cuts:
   * large files where they were, small ones by the batch. Each file appears at once; what was complete stays when the rest
   * fails, and `data.done` of the error says how much that was. On foreign servers files are written in place, without mode and
   * time, and links are skipped. Needs a host with Node's modules. Rejects with FileError, also for the local disk (`data.local`).
   */
  async upload(local: string, remote: FilePath, options: TransferOptions = {}): Promise<TransferResult> {
    return await upload({ files: this.#calls, clock: this.#clock }, local, remote, options);
  }

  /**
   * A file or folder of the server to the local disk, by the same rules. Each file is written beside its place and renamed.
   * Nothing is written outside of the destination or through a link below it, whatever the server says. Foreign servers list no
   * links that lead nowhere.
   */
  async download(remote: FilePath, local: string, options: TransferOptions = {}): Promise<TransferResult> {
    return await download({ files: this.#calls, clock: this.#clock }, remote, local, options);
  }
}

function statOf({ isDirectory, isFile, kind, ...rest }: MetadataReply): FileStat {
  return { ...rest, kind: kind ?? (isDirectory ? 'directory' : isFile ? 'file' : 'other') };
}
