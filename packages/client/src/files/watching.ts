/** Watches of files and folders: routes what the server tells, and puts each watch in place again after a cut. */
import type { CallOptions } from '../calls.js';
import type { Connection } from '../connection.js';
import type { NoticeTaker } from '../notices.js';
import type { FileCalls } from './fileCalls.js';
import { type ChangedNotice, changedNotice, type FileChange } from './fileGuards.js';
import { onAbort } from '../signals.js';
import { abortedTransfer } from './reading.js';
import { shownPath } from './wirePath.js';

/** Changes nobody has taken; when there are more they are dropped, and the next batch says `overflow`. */
export const QUEUED_CHANGES = 8_192;

/**
 * What {@link FileSystem.watch} watches, and for how long: `signal` ends the watch with ABORTED, `timeoutMs` is for
 * putting it in place.
 */
export interface WatchOptions extends CallOptions {
  /** With a folder: everything below it. Default true. */
  readonly recursive?: boolean | undefined;
}

/** Changes of some 50 ms, collected by the server. */
export interface WatchBatch {
  /** In the order they were told; `path` is absolute, as text where it is UTF-8, else as `file:` URI. */
  readonly changes: readonly FileChange[];
  /** Changes were missed, by too many at a time or by a cut: look at the whole tree again. */
  readonly overflow: boolean;
  /** Why the watch has ended; this is its last batch. */
  readonly ended?: string;
}

/** All watches of a client, by their ids. */
export class WatchHub implements NoticeTaker {
  readonly #watches = new Map<string, FileWatch>();

  add(watch: FileWatch): void {
    this.#watches.set(watch.watchId, watch);
  }

  delete(watch: FileWatch): void {
    this.#watches.delete(watch.watchId);
  }

  take(params: unknown): boolean {
    const notice = changedNotice(params);
    // Nobody misses what is told about a watch that was just ended.
    if (notice !== undefined) this.#watches.get(notice.watchId)?.take(notice);
    return notice !== undefined;
  }

  lost(connection: Connection): void {
    for (const watch of [...this.#watches.values()]) watch.lost(connection);
  }
}

/** Batches of changes, for one reader; ends with the watch, and rejects when it cannot go on. Leaving the loop ends the watch. */
export class FileWatch implements AsyncIterableIterator<WatchBatch, undefined> {
  /** @internal */
  readonly watchId: string;
  readonly #calls: FileCalls;
  readonly #hub: WatchHub;
  readonly #path: string;
  readonly #recursive: boolean | undefined;
  readonly #options: CallOptions;
  #forget = (): void => {};
  #connection: Connection | undefined;
  #changes: FileChange[] = [];
  #overflow = false;
  #ended: string | undefined;
  #failure: { readonly error: unknown } | undefined;
  #over = false;
  #wake: (() => void) | undefined;

  /** @internal Use `watch`. */
  constructor(calls: FileCalls, hub: WatchHub, path: string, { recursive, ...options }: WatchOptions) {
    this.#calls = calls;
    this.#hub = hub;
    this.#path = path;
    this.#recursive = recursive;
    this.#options = options;
    this.watchId = calls.newId();
    hub.add(this);
    this.#forget = onAbort(options.signal, (reason) => this.#fail(abortedTransfer(path, reason)));
  }

  /** @internal Resolves when every later change is told. */
  async begin(): Promise<void> {
    try {
      await this.#establish();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
    // Aborted before it began.
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** @internal */
  take({ changes, overflow, ended }: ChangedNotice): void {
    if (this.#changes.length + changes.length > QUEUED_CHANGES) {
      this.#changes = [];
      this.#overflow = true;
    } else {
      for (const change of changes) this.#changes.push({ ...change, path: shownPath(change.path) });
    }
    this.#overflow ||= overflow;
    if (ended !== undefined) {
      this.#ended = ended;
      this.#letGo();
    }
    this.#wake?.();
  }

  /** @internal What happens until the watch stands again is not told. */
  lost(connection: Connection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#establish().then(
      () => {
        this.#overflow = true;
        this.#wake?.();
      },
      (error: unknown) => this.#fail(error),
    );
  }

  /** The changes since the last batch, as soon as there are any. One call at a time. */
  async next(): Promise<IteratorResult<WatchBatch, undefined>> {
    while (this.#changes.length === 0 && !this.#overflow && this.#ended === undefined) {
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#over) return { done: true, value: undefined };
      await new Promise<void>((wake) => (this.#wake = wake));
    }
    const ended = this.#ended;
    const batch = { changes: this.#changes, overflow: this.#overflow, ...(ended === undefined ? {} : { ended }) };
    this.#changes = [];
    this.#overflow = false;
    this.#ended = undefined;
    return { done: false, value: batch };
  }

  /** Ends the watch; what was not taken is dropped. */
  async return(): Promise<IteratorResult<WatchBatch, undefined>> {
    this.#changes = [];
    this.#overflow = false;
    const connection = this.#letGo();
    this.#wake?.();
    if (connection !== undefined) await this.#calls.unwatch(connection, this.watchId);
    return { done: true, value: undefined };
  }

  /** Itself: there is one reader. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  async #establish(): Promise<void> {
    const { watchId } = this;
    const recursive = this.#recursive === undefined ? {} : { recursive: this.#recursive };
    while (!this.#over) {
      const connection = await this.#calls.connection('fs/watch', this.#options);
      const attempt = await this.#calls.watch(connection, { watchId, path: this.#path, ...recursive }, this.#options);
      if (attempt.kind === 'cut') continue;
      if (this.#isOver()) return await this.#calls.unwatch(connection, watchId);
      this.#connection = connection;
      // A connection that is lost by now told so before the watch had it.
      if (!connection.closed) return;
    }
  }

  #isOver(): boolean {
    return this.#over;
  }

  /** The first failure is told; ends the watch. */
  #fail(error: unknown): void {
    if (this.#over) return;
    this.#failure = { error };
    const connection = this.#letGo();
    if (connection !== undefined) void this.#calls.unwatch(connection, this.watchId);
    this.#wake?.();
  }

  #letGo(): Connection | undefined {
    const connection = this.#connection;
    this.#over = true;
    this.#connection = undefined;
    this.#hub.delete(this);
    this.#forget();
    return connection;
  }
}
