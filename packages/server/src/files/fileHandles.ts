/** The open files and archives of one connection, by the ids its client chose. They end with it. */
import { Buffer } from 'node:buffer';
import { limits, type ParamsOf, type ResultOf, WireError } from '@exec-server/protocol';
import { errnoError } from './errno.js';

/** How `fs/close` ends a handle. */
export type CloseHow = Pick<ParamsOf<'fs/close'>, 'commit' | 'fsync' | 'keepStage' | 'modifiedAtMs'>;

/** What a handle stands for; its calls come one after the other. */
export interface OpenHandle {
  /** Absent where it can only be written. */
  readonly read?: (offset: number, len: number) => Promise<ResultOf<'fs/readBlock'>>;
  /** Absent where it can only be read. */
  readonly write?: (offset: number, bytes: Uint8Array) => Promise<void>;
  readonly close: (how: CloseHow) => Promise<ResultOf<'fs/close'>>;
  /** Of what changes its path only when it is committed: the order of requests about that path, in which the commit belongs. */
  readonly inOrder?: Turn<ResultOf<'fs/close'>>;
  /** Its connection has ended: lets go of what it holds. Never rejects. */
  readonly drop: () => Promise<void>;
}

type Turn<T> = (call: () => Promise<T>) => Promise<T>;

interface Entry {
  /** Once it is open. */
  handle?: OpenHandle;
  /** The handle, once it is open, or why it is not. */
  readonly opened: Promise<OpenHandle>;
  /** The last call on it. */
  last: Promise<unknown>;
}

export class FileHandles {
  readonly #entries = new Map<string, Entry>();
  #ended = false;

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Takes the id at once; calls on it wait until it is open. An id whose opening failed is free again. `open` gives
   * undefined where there is nothing to hold open after all.
   */
  async open(handleId: string, open: () => Promise<OpenHandle | undefined>): Promise<void> {
    this.#check(handleId);
    const opened = open();
    const handle = opened.then((given) => given ?? Promise.reject(unknownHandle(handleId)));
    const entry: Entry = { opened: handle, last: handle.catch(() => undefined) };
    this.#entries.set(handleId, entry);
    try {
      const given = await opened;
      if (given !== undefined) entry.handle = given;
      // What opens after the end of the connection is dropped by `end`, which waits for it.
      if (given === undefined) this.#forget(handleId, entry);
    } catch (error) {
      this.#forget(handleId, entry);
      throw error;
    }
  }

  /** `inTurn` is given the call once those before it on this handle are over, and makes it when the connection lets it. */
  read(
    handleId: string,
    offset: number,
    len: number,
    inTurn: Turn<ResultOf<'fs/readBlock'>> = (call) => call(),
  ): Promise<ResultOf<'fs/readBlock'>> {
    return this.#use(handleId, (handle) => {
      const { read } = handle;
      if (read === undefined) throw errnoError('EBADF');
      return inTurn(() => read.call(handle, offset, len));
    });
  }

  write(handleId: string, offset: number, bytes: Uint8Array, inTurn: Turn<void> = (call) => call()): Promise<void> {
    return this.#use(handleId, (handle) => {
      const { write } = handle;
      if (write === undefined) throw errnoError('EBADF');
      return inTurn(() => write.call(handle, offset, bytes));
    });
  }

  /** After the calls before it. A plain close of an unknown id is fine, as in the base protocol; a commit of one is not. */
  async close(handleId: string, how: CloseHow): Promise<ResultOf<'fs/close'>> {
    const entry = this.#entries.get(handleId);
    if (entry === undefined) {
      if (how.commit === true) throw unknownHandle(handleId);
      return {};
    }
    this.#forget(handleId, entry);
    if (how.commit !== true) {
      await entry.last;
      // One that never came to be open: whoever opened it was told.
      const handle = await entry.opened.catch(() => undefined);
      return handle === undefined ? {} : handle.close(how);
    }
    // Its place among the requests about its path is that of its arrival, where it is open by then.
    const handle = entry.handle ?? (await entry.opened);
    const commit = async (): Promise<ResultOf<'fs/close'>> => {
      await entry.last;
      return handle.close(how);
    };
    return handle.inOrder === undefined ? commit() : handle.inOrder(commit);
  }

  /** The connection is over. Resolves when everything was let go of. */
  async end(): Promise<void> {
    this.#ended = true;
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.all(
      entries.map(async ({ opened, last }) => {
        await last;
        await opened.then((handle) => handle.drop()).catch(() => undefined);
      }),
    );
  }

  async #use<T>(handleId: string, call: (handle: OpenHandle) => Promise<T>): Promise<T> {
    const entry = this.#entries.get(handleId);
    if (entry === undefined) throw unknownHandle(handleId);
    const result = entry.last.then(async () => call(await entry.opened));
    entry.last = result.catch(() => undefined);
    return result;
  }

  #check(handleId: string): void {
    checkHandleId(handleId);
    if (this.#ended) throw new WireError('sessionEnded', 'the connection has ended');
    if (this.#entries.has(handleId)) {
      throw new WireError('invalidArgument', `file handle \`${handleId}\` already exists`, { field: 'handleId' });
    }
    if (this.#entries.size >= limits.FILE_HANDLES_PER_CONNECTION) {
      const most = limits.FILE_HANDLES_PER_CONNECTION;
      throw new WireError('tooManyHandles', `at most ${most} file handles may be open per connection`, { limit: most });
    }
  }

  #forget(handleId: string, entry: Entry): void {
    if (this.#entries.get(handleId) === entry) this.#entries.delete(handleId);
  }
}

/** Throws WireError `invalidArgument` for an id that is too long. */
export function checkHandleId(handleId: string): void {
  const limitBytes = limits.MAX_HANDLE_ID_BYTES;
  if (Buffer.byteLength(handleId) <= limitBytes) return;
  throw new WireError('invalidArgument', `file handle ID must not exceed ${limitBytes} bytes`, {
    field: 'handleId',
    limitBytes,
  });
}

function unknownHandle(handleId: string): WireError {
  return new WireError('unknownHandle', `unknown file handle \`${handleId}\``, { field: 'handleId' });
}
