/** The file methods as typed calls: checks answers, names operations, binds handles to their connection. Holds no state but ids. */
import type { ParamsOf } from '@exec-server/protocol';
import { emptyReply } from '../callGuards.js';
import { type Attempt, type Call, type CallOptions, type Calls, notSupported } from '../calls.js';
import type { Connection } from '../connection.js';
import { isClientError } from '../errors.js';
import type { InitializeReply } from '../guards.js';
import type { Members } from '../shapes.js';
import { ByteRoom } from './byteRoom.js';
import { FileError, fileErrorOf, isFileError } from './fileErrors.js';
import { HandleLine } from './handleLine.js';
import {
  type BlockReply,
  blockReply,
  type CloseReply,
  closeReply,
  copyReply,
  type MetadataReply,
  metadataReply,
  moveReply,
  type OpenReply,
  openReply,
  pathReply,
  type ReadDirectoryReply,
  readDirectoryReply,
  type ReadFileReply,
  readFileReply,
  type WalkReply,
  walkReply,
  type WrittenReply,
  writtenReply,
} from './fileGuards.js';
import { shownPath } from './wirePath.js';
import { randomId } from '../randomId.js';

export interface FileCallsHost {
  readonly calls: Calls;
  /** What the server said first; only after it. */
  readonly server: InitializeReply;
  /** Names the server. */
  readonly label: string;
}

type FileMethod = Extract<Call<unknown>['method'], `fs/${string}`>;
type Mutating = 'fs/writeFile' | 'fs/createDirectory' | 'fs/remove' | 'fs/copy' | 'fs/move';
type ParamsWithoutId<M extends Mutating> = Omit<ParamsOf<M>, 'operationId'>;

/** How long a handle that nobody needs any more may take to close, in ms. */
const RELEASE_MS = 10_000;

/**
 * Calls that any connection can answer are repeated after a cut where that is safe; those that change something are named for it
 * where the server can (`extended`), and reject with OUTCOME_UNKNOWN where it cannot. Calls on a handle belong to the connection
 * that opened it; `cut` says that it was lost, and the handle with it. Paths in params are `file:` URIs. Rejects with FileError
 * and ClientError.
 */
/** Content on its way to the server: a quarter of what a server lets be unanswered, so that other calls are not refused. */
const WRITES_ON_THE_WAY_BYTES = 16 * 1024 * 1024;

export class FileCalls {
  readonly #host: FileCallsHost;
  /** Apart from ids that a caller of raw calls chooses. */
  readonly #idPrefix = crypto.getRandomValues(new Uint32Array(1)).join('');
  #lastId = 0;
  readonly #line = new HandleLine<Connection>();
  readonly #room = new ByteRoom(WRITES_ON_THE_WAY_BYTES);

  constructor(host: FileCallsHost) {
    this.#host = host;
  }

  /** Whether the server has the additions to the file methods. */
  get extended(): boolean {
    return this.#host.server.extended?.files === true;
  }

  /** Throws NOT_SUPPORTED where the server lacks the additions `what` needs. */
  require(what: string): void {
    if (!this.extended) throw notSupported(this.#host.label, what);
  }

  notSupported(what: string): Error {
    return notSupported(this.#host.label, what);
  }

  /** For handles and watches: short, and used once by this client. */
  newId(): string {
    this.#lastId += 1;
    return `${this.#idPrefix}-${this.#lastId}`;
  }

  readFile(params: ParamsOf<'fs/readFile'>, options?: CallOptions): Promise<ReadFileReply> {
    return this.#call('fs/readFile', params, readFileReply, options);
  }

  getMetadata(params: ParamsOf<'fs/getMetadata'>, options?: CallOptions): Promise<MetadataReply> {
    return this.#call('fs/getMetadata', params, metadataReply, options);
  }

  canonicalize(params: ParamsOf<'fs/canonicalize'>, options?: CallOptions): Promise<string> {
    return this.#call('fs/canonicalize', params, pathReply, options);
  }

  readDirectory(params: ParamsOf<'fs/readDirectory'>, options?: CallOptions): Promise<ReadDirectoryReply> {
    return this.#call('fs/readDirectory', params, readDirectoryReply, options);
  }

  walk(params: ParamsOf<'fs/walk'>, options?: CallOptions): Promise<WalkReply> {
    return this.#call('fs/walk', params, walkReply, options);
  }

  writeFile(params: ParamsWithoutId<'fs/writeFile'>, options?: CallOptions): Promise<WrittenReply> {
    const path = pathOf(params);
    return this.#withRoom('fs/writeFile', params.dataBase64.length, { ...options, path }, () =>
      this.#change('fs/writeFile', params, writtenReply, options),
    );
  }

  createDirectory(params: ParamsWithoutId<'fs/createDirectory'>, options?: CallOptions): Promise<Members> {
    return this.#change('fs/createDirectory', params, emptyReply, options);
  }

  remove(params: ParamsWithoutId<'fs/remove'>, options?: CallOptions): Promise<Members> {
    return this.#change('fs/remove', params, emptyReply, options);
  }

  copy(params: ParamsWithoutId<'fs/copy'>, options?: CallOptions): Promise<{ readonly skipped?: number }> {
    return this.#change('fs/copy', params, copyReply, options);
  }

  async move(params: ParamsWithoutId<'fs/move'>, options?: CallOptions): Promise<{ readonly copied: boolean }> {
    this.require('fs/move');
    return await this.#change('fs/move', params, moveReply, options);
  }

  /** The ready connection, once there is one, for calls on handles; `method` is what is about to be sent. */
  async connection(method: FileMethod, options: CallOptions = {}): Promise<Connection> {
    const bounds = this.#host.calls.bounds(method, options);
    try {
      return await this.#host.calls.connection(bounds);
    } finally {
      bounds.dispose();
    }
  }

  open(on: Connection, params: ParamsOf<'fs/open'>, options?: CallOptions): Promise<Attempt<OpenReply>> {
    return this.#opening(on, 'fs/open', params, openReply, options);
  }

  readBlock(
    on: Connection,
    params: ParamsOf<'fs/readBlock'>,
    options?: CallOptions,
    path?: string,
  ): Promise<Attempt<BlockReply>> {
    return this.#attempt(on, 'fs/readBlock', params, blockReply, options, path);
  }

  writeBlock(
    on: Connection,
    params: ParamsOf<'fs/writeBlock'>,
    options?: CallOptions,
    path?: string,
  ): Promise<Attempt<Members>> {
    return this.#withRoom('fs/writeBlock', params.chunk.length, { ...options, path }, () =>
      this.#attempt(on, 'fs/writeBlock', params, emptyReply, options, path),
    );
  }

  close(
    on: Connection,
    params: ParamsOf<'fs/close'>,
    options?: CallOptions,
    path?: string,
  ): Promise<Attempt<CloseReply>> {
    return this.#closing(on, params, options, path);
  }

  /**
   * Closes a handle nobody needs any more; a stage is dropped. Never rejects: where it does not come about the end of the
   * connection closes the handle. False when the connection was lost before the answer.
   */
  async release(on: Connection, handleId: string): Promise<boolean> {
    const attempt = await this.close(on, { handleId }, { timeoutMs: RELEASE_MS }).catch(() => undefined);
    this.#line.closed(on, handleId);
    return attempt?.kind !== 'cut';
  }

  async watch(on: Connection, params: ParamsOf<'fs/watch'>, options?: CallOptions): Promise<Attempt<Members>> {
    try {
      return await this.#attempt(on, 'fs/watch', params, emptyReply, options);
    } catch (error) {
      if (gaveUp(error)) void this.unwatch(on, params.watchId);
      throw error;
    }
  }

  /** Never rejects: a watch ends with its connection at the latest. */
  async unwatch(on: Connection, watchId: string): Promise<void> {
    await this.#attempt(on, 'fs/unwatch', { watchId }, emptyReply, { timeoutMs: RELEASE_MS }).catch(() => undefined);
  }

  pack(on: Connection, params: ParamsOf<'fs/pack'>, options?: CallOptions): Promise<Attempt<Members>> {
    return this.#opening(on, 'fs/pack', params, emptyReply, options);
  }

  unpack(on: Connection, params: ParamsOf<'fs/unpack'>, options?: CallOptions): Promise<Attempt<Members>> {
    return this.#opening(on, 'fs/unpack', params, emptyReply, options);
  }

  /**
   * A call of several steps: `timeoutMs` is for all of it where it is given, else each step has the default. The steps are
   * aborted when it is over.
   */
  async within<T>(
    method: FileMethod,
    path: string,
    { timeoutMs, signal }: CallOptions,
    action: (step: CallOptions) => Promise<T>,
  ): Promise<T> {
    if (timeoutMs === undefined) return await action({ signal });
    const steps = new AbortController();
    const bounds = this.#host.calls.bounds(method, { timeoutMs, signal }, { path: shownPath(path) });
    try {
      return await bounds.race(action({ signal: steps.signal, timeoutMs }));
    } finally {
      bounds.dispose();
      steps.abort();
    }
  }

  async #call<T>(
    method: FileMethod,
    params: object,
    guard: Call<T>['guard'],
    options: CallOptions = {},
    replay?: Call<T>['replay'],
  ): Promise<T> {
    const path = pathOf(params);
    const data = path === undefined ? {} : { data: { path } };
    try {
      const how = replay === undefined ? {} : { replay };
      return await this.#host.calls.call({ method, params, guard, ...data, ...how }, options);
    } catch (error) {
      throw fileErrorOf(error, path);
    }
  }

  #change<M extends Mutating, T>(
    method: M,
    params: ParamsWithoutId<M>,
    guard: Call<T>['guard'],
    options?: CallOptions,
  ): Promise<T> {
    if (!this.extended) return this.#call(method, params, guard, options);
    return this.#call(method, { ...params, operationId: randomId() }, guard, options, 'repeat');
  }

  async #closing(
    on: Connection,
    params: ParamsOf<'fs/close'>,
    options?: CallOptions,
    path?: string,
  ): Promise<Attempt<CloseReply>> {
    try {
      const attempt = await this.#attempt(on, 'fs/close', params, closeReply, options, path);
      this.#line.closed(on, params.handleId);
      return attempt;
    } catch (error) {
      // One that was given up was not sent perhaps; it is released then.
      if (!gaveUp(error)) this.#line.closed(on, params.handleId);
      throw error;
    }
  }

  /**
   * Waits where the server has no room and a handle of ours may make some. A caller who gave up leaves nothing open: what was
   * sent may have opened it all the same.
   */
  async #opening<T>(
    on: Connection,
    method: FileMethod,
    params: { readonly handleId: string },
    guard: Call<T>['guard'],
    options?: CallOptions,
  ): Promise<Attempt<T>> {
    const { handleId } = params;
    let wish = this.#line.turn(on);
    for (;;) {
      await this.#inLine(on, method, wish, { ...options, path: pathOf(params) });
      try {
        this.#line.opening(on, handleId);
        const attempt = await this.#attempt(on, method, params, guard, options);
        this.#line.opened(on, handleId);
        return attempt;
      } catch (error) {
        if (gaveUp(error)) {
          this.#line.opened(on, handleId);
          void this.release(on, handleId);
          throw error;
        }
        if (!this.#line.refused(on, handleId) || !isFileError(error) || error.code !== 'TOO_MANY_HANDLES') throw error;
        wish = this.#line.room(on);
      }
    }
  }

  async #inLine(
    on: Connection,
    method: FileMethod,
    wish: ReturnType<HandleLine<Connection>['room']>,
    { path, ...options }: CallOptions & { readonly path: string | undefined },
  ): Promise<void> {
    const bounds = this.#host.calls.bounds(method, options, path === undefined ? {} : { path });
    try {
      await bounds.race(Promise.race([wish.granted, on.finished]));
    } catch (error) {
      wish.forget();
      const isLate = isClientError(error) && error.code === 'REQUEST_TIMEOUT' && options.timeoutMs === undefined;
      throw isLate ? noRoom(path) : error;
    } finally {
      bounds.dispose();
    }
  }

  /** Waits until so many bytes may go out, and sends them. */
  async #withRoom<T>(
    method: FileMethod,
    bytes: number,
    { path, ...options }: CallOptions & { readonly path: string | undefined },
    send: () => Promise<T>,
  ): Promise<T> {
    const wish = this.#room.acquire(bytes);
    const bounds = this.#host.calls.bounds(method, options, path === undefined ? {} : { path });
    try {
      await bounds.race(wish.granted);
    } catch (error) {
      wish.forget();
      throw fileErrorOf(error, path);
    } finally {
      bounds.dispose();
    }
    try {
      return await send();
    } finally {
      this.#room.release(bytes);
    }
  }

  async #attempt<T>(
    on: Connection,
    method: FileMethod,
    params: object,
    guard: Call<T>['guard'],
    options: CallOptions = {},
    path: string | undefined = pathOf(params),
  ): Promise<Attempt<T>> {
    const { calls } = this.#host;
    const data = path === undefined ? {} : { path };
    const bounds = calls.bounds(method, options, data);
    try {
      return await calls.attempt({ method, params, guard, on, data }, bounds);
    } catch (error) {
      throw fileErrorOf(error, path);
    } finally {
      bounds.dispose();
    }
  }
}

/** What was sent may take effect all the same. */
const gaveUp = (error: unknown): boolean =>
  isClientError(error) && (error.code === 'ABORTED' || error.code === 'REQUEST_TIMEOUT');

/** For one that waited for nothing. */
function noRoom(path = 'a file'): FileError {
  const message = `${path} was not opened: as many files are open as the server allows, and none was closed meanwhile; close some, or read and write them to their end`;
  return new FileError('TOO_MANY_HANDLES', message, { path, retryable: true });
}

/** What the call is about, for callers. */
function pathOf(params: object): string | undefined {
  const { path, sourcePath }: { readonly path?: unknown; readonly sourcePath?: unknown } = params;
  const wire = path ?? sourcePath;
  return typeof wire === 'string' ? shownPath(wire) : undefined;
}
