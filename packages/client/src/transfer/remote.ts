/** What a transfer asks of the server, by paths of bytes, and its handles, which belong to one connection. */
import { encodeBase64, limits, type ParamsOf } from '@exec-server/protocol';
import type { Attempt, CallOptions } from '../calls.js';
import type { Connection } from '../connection.js';
import { ClientError, isClientError } from '../errors.js';
import type { FileCalls } from '../files/fileCalls.js';
import { isFileError } from '../files/fileErrors.js';
import type { BlockReply, DirectoryEntryReply, OpenReply } from '../files/fileGuards.js';
import { baseName, bytesOf, bytesOfWire, isEntryName, shownBytes, uriOf } from './bytePath.js';

/** The connection of a handle was lost, and the handle with it: it is opened again. Never leaves a transfer. */
export class HandleLost extends Error {
  override readonly name = 'HandleLost';
}

export interface RemoteStat {
  readonly kind: 'file' | 'directory' | 'other';
  readonly isLink: boolean;
  readonly size: number;
  readonly mode: number | undefined;
  readonly modifiedAtMs: number;
  /** In which state it is; without extensions a guess from size and time. */
  readonly version: string;
  /** Which file it is; undefined without extensions. */
  readonly identity: string | undefined;
}

export interface RemoteEntry {
  /** One character a byte. */
  readonly name: string;
  readonly kind: string;
  readonly size: number;
  readonly mode: number | undefined;
  readonly modifiedAtMs: number;
  readonly target: string | undefined;
}

/** Most entries of one answer. */
const PAGE_ENTRIES = 5_000;
/** How long an answer is waited for that nothing depends on. */
const CLEAN_UP_TIMEOUT_MS = 5_000;

/** Paths are absolute and strings of bytes. */
export class Remote {
  readonly #calls: FileCalls;
  readonly #signal: AbortSignal | undefined;
  readonly #options: CallOptions;

  /** `options`: of each call. */
  constructor(calls: FileCalls, options: CallOptions) {
    this.#calls = calls;
    this.#signal = options.signal;
    // What ends a transfer is its signal; a slow link may take its time.
    this.#options = { timeoutMs: limits.MAX_TIMER_MS, ...options };
  }

  /** Whether the server has our additions to the file methods. */
  get extended(): boolean {
    return this.#calls.extended;
  }

  /** Throws where the transfer has been ended. */
  check(): void {
    if (this.#signal?.aborted === true) throw new ClientError('ABORTED', 'the transfer was ended');
  }

  /** Of what a link leads to; undefined for what does not exist. */
  async stat(path: string): Promise<RemoteStat | undefined> {
    try {
      const detail = this.extended ? { detail: true } : {};
      const found = await this.#calls.getMetadata({ path: uriOf(path), ...detail }, this.#options);
      const { isDirectory, isFile, size, modifiedAtMs, version = `${size} ${modifiedAtMs}` } = found;
      return {
        kind: isDirectory ? 'directory' : isFile ? 'file' : 'other',
        isLink: found.isSymlink,
        size,
        mode: found.mode,
        modifiedAtMs,
        version,
        identity: found.identity,
      };
    } catch (error) {
      if (isFileError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
      throw error;
    }
  }

  /** Everything in a folder, links as links; without extensions with names alone. */
  async list(path: string): Promise<RemoteEntry[]> {
    const entries: RemoteEntry[] = [];
    const detail = this.extended ? { detail: true, limit: PAGE_ENTRIES } : {};
    for (let cursor: string | undefined; ; ) {
      const page = cursor === undefined ? {} : { cursor };
      const answer = await this.#calls.readDirectory({ path: uriOf(path), ...detail, ...page }, this.#options);
      for (const entry of answer.entries) entries.push(entryOf(entry));
      cursor = answer.nextCursor;
      if (cursor === undefined) return entries;
    }
  }

  /** The path with all links resolved. */
  async realpath(path: string): Promise<string> {
    return await this.#calls.canonicalize({ path: uriOf(path) }, this.#options);
  }

  /** A folder and its parents; one that exists is fine. */
  async makeFolders(path: string, mode?: number): Promise<void> {
    const permissions = this.extended && mode !== undefined ? { permissions: mode } : {};
    for (;;) {
      try {
        await this.#calls.createDirectory({ path: uriOf(path), recursive: true, ...permissions }, this.#options);
        return;
      } catch (error) {
        // Making it twice makes it once.
        if (!isClientError(error) || error.code !== 'OUTCOME_UNKNOWN') throw error;
      }
    }
  }

  /** No folder. What does not exist is fine. */
  async remove(path: string): Promise<void> {
    await this.#calls.remove({ path: uriOf(path), recursive: false, force: true }, this.#options);
  }

  async open(
    path: string,
    how: Omit<ParamsOf<'fs/open'>, 'path' | 'handleId'>,
  ): Promise<{ readonly handle: RemoteHandle; readonly answer: OpenReply }> {
    const on = await this.#calls.connection('fs/open', this.#options);
    const handleId = this.#calls.newId();
    const answer = whole(await this.#calls.open(on, { handleId, path: uriOf(path), ...how }, this.#options));
    return { handle: this.#handle(on, handleId, path), answer };
  }

  /** An archive of these entries of a folder. */
  async pack(folder: string, names: readonly string[], followSymlinks: boolean): Promise<RemoteHandle> {
    const on = await this.#calls.connection('fs/pack', this.#options);
    const handleId = this.#calls.newId();
    const params = { handleId, path: uriOf(folder), names: [...names], followSymlinks };
    whole(await this.#calls.pack(on, params, this.#options));
    return this.#handle(on, handleId, folder);
  }

  async unpack(folder: string, overwrite: boolean): Promise<RemoteHandle> {
    const on = await this.#calls.connection('fs/unpack', this.#options);
    const handleId = this.#calls.newId();
    whole(await this.#calls.unpack(on, { handleId, path: uriOf(folder), overwrite }, this.#options));
    return this.#handle(on, handleId, folder);
  }

  /** Does away with what a failed transfer would leave. Never rejects: what cannot be reached ends with the session. */
  async cleanUp(action: (remote: Remote) => Promise<unknown>): Promise<void> {
    try {
      await action(new Remote(this.#calls, { timeoutMs: CLEAN_UP_TIMEOUT_MS }));
    } catch {
      // The transfer has failed before, with the error that its caller gets.
    }
  }

  #handle(on: Connection, handleId: string, path: string): RemoteHandle {
    return new RemoteHandle(this.#calls, this.#options, { on, handleId, path: shownBytes(path) });
  }
}

/** An open file or archive of one connection. Its calls reject with HandleLost once that is lost. */
export class RemoteHandle {
  readonly #calls: FileCalls;
  readonly #options: CallOptions;
  readonly #on: Connection;
  readonly #handleId: string;
  readonly #path: string;

  constructor(
    calls: FileCalls,
    options: CallOptions,
    { on, handleId, path }: { readonly on: Connection; readonly handleId: string; readonly path: string },
  ) {
    this.#calls = calls;
    this.#options = options;
    this.#on = on;
    this.#handleId = handleId;
    this.#path = path;
  }

  async read(offset: number, length: number): Promise<BlockReply> {
    const params = { handleId: this.#handleId, offset, len: length };
    const block = whole(await this.#calls.readBlock(this.#on, params, this.#options, this.#path));
    if (block.bytes.length <= length) return block;
    throw new ClientError('PROTOCOL_VIOLATION', `the server sent more of ${this.#path} than was asked for`);
  }

  /** The bytes are taken before it returns. */
  async write(offset: number, bytes: Uint8Array): Promise<void> {
    const params = { handleId: this.#handleId, offset, chunk: encodeBase64(bytes) };
    whole(await this.#calls.writeBlock(this.#on, params, this.#options, this.#path));
  }

  async close(how: { readonly commit?: boolean; readonly modifiedAtMs?: number } = {}): Promise<void> {
    whole(await this.#calls.close(this.#on, { handleId: this.#handleId, ...how }, this.#options, this.#path));
  }

  /** Closes it whatever became of the transfer. Never rejects: with its connection the server lets go of it. */
  async drop(): Promise<void> {
    await this.#calls.release(this.#on, this.#handleId);
  }
}

function whole<T>(attempt: Attempt<T>): T {
  if (attempt.kind === 'answered') return attempt.value;
  throw new HandleLost(attempt.error.message, { cause: attempt.error });
}

function entryOf({ fileName, path, kind, isDirectory, isFile, ...rest }: DirectoryEntryReply): RemoteEntry {
  const wire = path === undefined ? undefined : bytesOfWire(path);
  const name = wire === undefined ? bytesOf(fileName) : baseName(wire);
  if (!isEntryName(name)) {
    const message = `the server listed an entry whose name is none: ${JSON.stringify(fileName)}`;
    throw new ClientError('PROTOCOL_VIOLATION', message);
  }
  return {
    name,
    kind: kind ?? (isDirectory ? 'directory' : isFile ? 'file' : 'other'),
    size: rest.size ?? 0,
    mode: rest.mode,
    modifiedAtMs: rest.modifiedAtMs ?? 0,
    target: rest.linkTarget,
  };
}
