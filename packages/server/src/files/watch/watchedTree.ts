/**
 * What one watch knows of its tree: which entries there are, and a watch of the host on every folder. An event of the host says
 * only where to look; what has changed is found by comparing what is there with what was known, so that nothing depends on kind,
 * order or number of the events.
 */
import type { Stats } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import { limits, WireError } from '@exec-server/protocol';
import { type BytePath, joinPath, nameOf, nativeBytes, parentOf, pathOf, pathText } from '../../paths.js';
import { errnoError, errnoOf, fileError, onPath } from '../errno.js';
import { isTempName } from '../tempFiles.js';
import type { Change, ChangeKind } from './changeBatch.js';
import { FolderWatch } from './folderWatch.js';

/** Paths that all watches of one connection hold together. */
export interface PathBudget {
  /** Whether there was room for one more; it is taken then. */
  take(): boolean;
  give(paths: number): void;
}

export interface TreeListener {
  /** There is something to look at; `settle` does. */
  touched(): void;
  changed(change: Change): void;
  /** Changes may have been missed. */
  lost(): void;
}

interface Folder {
  readonly path: BytePath;
  readonly device: number;
  readonly inode: number;
  /** What is known to be in it; anything but a folder is `file`. */
  readonly entries: Map<string, Folder | 'file'>;
  watch: FolderWatch | undefined;
  gone: boolean;
}

/** Names to look at in a folder; more than these, and the whole folder is read. */
const MAX_TOUCHED_NAMES = 1024;
const STATS_AT_A_TIME = 32;
/** The entry, or the way to it, is not there any more, or cannot be looked into: there is nothing to see for anybody. */
const UNSEEN = new Set(['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM']);

export class WatchedTree {
  readonly #shown: BytePath;
  readonly #recursive: boolean;
  readonly #budget: PathBudget;
  readonly #listener: TreeListener;
  /** Where the path leads, if it is a link. */
  #real: BytePath;
  /** The folder that is watched, or the one that holds the file that is. */
  #base: Folder | undefined;
  /** The name of the file in it. */
  #only: string | undefined;
  #touched = new Map<Folder, Set<string> | 'all'>();
  #paths = 0;
  #ready = false;
  #closed = false;
  #failure: Error | undefined;

  constructor(path: BytePath, recursive: boolean, budget: PathBudget, listener: TreeListener) {
    this.#shown = path;
    this.#real = path;
    this.#recursive = recursive;
    this.#budget = budget;
    this.#listener = listener;
  }

  /** Settles when every later change is noticed. Rejects with WireError, also `tooManyWatches`; `close` is called even then. */
  async open(): Promise<void> {
    const { isFolder, stats } = await onPath(this.#shown, async () => {
      this.#real = pathOf(await realpath(nativeBytes(this.#shown), { encoding: 'buffer' }));
      const found = await lstat(nativeBytes(this.#real));
      if (found.isDirectory()) return { isFolder: true, stats: found };
      this.#only = nameOf(this.#real);
      return { isFolder: false, stats: await lstat(nativeBytes(parentOf(this.#real))) };
    });
    // Closed meanwhile: nothing may be opened any more.
    if (this.#closed) return;
    const base = folderOf(isFolder ? this.#real : parentOf(this.#real), stats);
    this.#base = base;
    this.#takeRoom();
    await this.#enter(base, true);
    if (this.#only !== undefined && !base.entries.has(this.#only)) throw errnoError('ENOENT', this.#shown);
    this.#ready = true;
  }

  get isTouched(): boolean {
    return this.#touched.size > 0;
  }

  /** Looks at what was touched and tells what has changed. Resolves with why the watch has ended, if it has. */
  async settle(): Promise<string | undefined> {
    const touched = this.#touched;
    this.#touched = new Map();
    try {
      if (this.#failure !== undefined) throw this.#failure;
      for (const [folder, names] of touched) {
        if (names === 'all') await this.#reread(folder);
        else await this.#lookAtAll(folder, [...names], true);
      }
      return await this.#ending();
    } catch (error) {
      const failure = fileError(error);
      if (failure instanceof WireError) return failure.message;
      throw failure;
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#touched.clear();
    if (this.#base !== undefined) this.#drop(this.#base);
    this.#budget.give(this.#paths);
    this.#paths = 0;
  }

  /** Watches a folder, then reads it: what is made in between is seen twice rather than never. */
  async #enter(folder: Folder, isBase = false): Promise<void> {
    try {
      folder.watch = new FolderWatch(folder.path, {
        touched: (name) => this.#touch(folder, name),
        lost: () => this.#lostEvents(),
        failed: (error) => this.#fail(error),
      });
    } catch (error) {
      const errno = errnoOf(error);
      if (!isBase && errno !== undefined && UNSEEN.has(errno)) return;
      throw watchError(error, folder.path);
    }
    await this.#read(folder);
  }

  async #read(folder: Folder): Promise<void> {
    if (this.#only !== undefined) return this.#look(folder, this.#only, false);
    const entries = await unlessUnseen(() =>
      readdir(nativeBytes(folder.path), { withFileTypes: true, encoding: 'buffer' }),
    );
    for (const entry of entries ?? []) {
      if (this.#closed || folder.gone) return;
      const name = entry.name.toString('latin1');
      if (folder.entries.has(name) || this.#isLeftOut(name)) continue;
      if (entry.isDirectory()) await this.#look(folder, name, false);
      else this.#add(folder, name, 'file');
    }
  }

  /** Whatever may have happened in the folder. */
  async #reread(folder: Folder): Promise<void> {
    this.#listener.lost();
    await this.#lookAtAll(folder, [...folder.entries.keys()], false);
    if (!folder.gone) await this.#read(folder);
  }

  async #lookAtAll(folder: Folder, names: readonly string[], sure: boolean): Promise<void> {
    for (let at = 0; at < names.length; at += STATS_AT_A_TIME) {
      if (this.#closed || folder.gone) return;
      const some = names.slice(at, at + STATS_AT_A_TIME);
      // What changes behind this look is touched again.
      const found = await Promise.all(some.map((name) => statsOf(joinPath(folder.path, name))));
      for (const [index, name] of some.entries()) await this.#compare(folder, name, found[index], sure);
    }
  }

  async #look(folder: Folder, name: string, sure: boolean): Promise<void> {
    if (this.#closed || folder.gone) return;
    await this.#compare(folder, name, await statsOf(joinPath(folder.path, name)), sure);
  }

  /** One entry with what is known of it. `sure`: it was changed if it is the same one. */
  async #compare(folder: Folder, name: string, found: Stats | 'hidden' | undefined, sure: boolean): Promise<void> {
    const path = joinPath(folder.path, name);
    if (this.#closed || folder.gone || found === 'hidden') return;
    const known = folder.entries.get(name);
    if (known !== undefined && found !== undefined && isSame(known, found)) {
      if (sure) this.#tell('modified', path, known);
      return;
    }
    if (known !== undefined) {
      folder.entries.delete(name);
      this.#giveRoom(known === 'file' ? 1 : this.#drop(known));
      this.#tell('removed', path, known);
    }
    if (found === undefined) return;
    if (!found.isDirectory()) {
      this.#add(folder, name, 'file');
      return;
    }
    const inner = folderOf(path, found);
    this.#add(folder, name, inner);
    if (this.#recursive) await this.#enter(inner);
  }

  #add(folder: Folder, name: string, entry: Folder | 'file'): void {
    this.#takeRoom();
    folder.entries.set(name, entry);
    this.#tell('created', joinPath(folder.path, name), entry);
  }

  #touch(folder: Folder, name: string | undefined): void {
    if (this.#closed || folder.gone || (name !== undefined && this.#isLeftOut(name))) return;
    const known = this.#touched.get(folder);
    if (name === undefined || known === 'all') {
      this.#touched.set(folder, 'all');
    } else if (this.#only === undefined || this.#only === name || nameOf(folder.path) === name) {
      const names = known ?? new Set<string>();
      // Its own name is that of the folder itself as well; `#ending` looks at it.
      if (this.#only === undefined || this.#only === name) names.add(name);
      this.#touched.set(folder, names.size > MAX_TOUCHED_NAMES ? 'all' : names);
    } else {
      return;
    }
    this.#listener.touched();
  }

  /** Temporary files of this server, or of another one, are no changes, unless one is watched itself. */
  #isLeftOut(name: string): boolean {
    return this.#only === undefined && isTempName(name);
  }

  /** Every folder has to be read. */
  #lostEvents(): void {
    const folders = this.#base === undefined ? [] : [this.#base];
    for (const folder of folders) {
      this.#touched.set(folder, 'all');
      for (const entry of folder.entries.values()) if (entry !== 'file') folders.push(entry);
    }
    this.#listener.touched();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#listener.touched();
  }

  /** Whether the root is gone, or another one has its place. */
  async #ending(): Promise<string | undefined> {
    const base = this.#base;
    if (base === undefined) return undefined;
    if (this.#only !== undefined) {
      await this.#look(base, this.#only, false);
      return base.entries.has(this.#only) ? undefined : GONE;
    }
    const found = await statsOf(base.path);
    if (found === 'hidden' || (found !== undefined && isSame(base, found))) return undefined;
    this.#tell('removed', base.path, base);
    return GONE;
  }

  #tell(kind: ChangeKind, path: BytePath, entry: Folder | 'file'): void {
    if (!this.#ready || this.#closed) return;
    this.#listener.changed({ kind, path: this.#shownPath(path), isDirectory: entry !== 'file' });
  }

  #shownPath(path: BytePath): BytePath {
    if (path === this.#real) return this.#shown;
    return joinPath(this.#shown, path.slice(this.#real === '/' ? 1 : this.#real.length + 1));
  }

  /** Ends the watches of a folder that is gone, and of those below it; how many paths that were. */
  #drop(root: Folder): number {
    const folders = [root];
    let paths = 1;
    for (const folder of folders) {
      folder.gone = true;
      folder.watch?.close();
      paths += folder.entries.size;
      for (const entry of folder.entries.values()) if (entry !== 'file') folders.push(entry);
    }
    return paths;
  }

  #takeRoom(): void {
    if (!this.#budget.take()) {
      const limit = limits.WATCHED_PATHS_PER_CONNECTION;
      throw new WireError('tooManyWatches', `at most ${limit} paths may be watched per connection`, {
        limit,
        path: pathText(this.#shown),
      });
    }
    this.#paths += 1;
  }

  #giveRoom(paths: number): void {
    this.#paths -= paths;
    this.#budget.give(paths);
  }
}

const GONE = 'the watched path was removed';

function folderOf(path: BytePath, { dev, ino }: Stats): Folder {
  return { path, device: dev, inode: ino, entries: new Map(), watch: undefined, gone: false };
}

function isSame(known: Folder | 'file', found: Stats): boolean {
  if (known === 'file') return !found.isDirectory();
  return found.isDirectory() && found.ino === known.inode && found.dev === known.device;
}

async function statsOf(path: BytePath): Promise<Stats | 'hidden' | undefined> {
  try {
    return await lstat(nativeBytes(path));
  } catch (error) {
    const errno = errnoOf(error);
    return errno === 'ENOENT' || errno === 'ENOTDIR' ? undefined : 'hidden';
  }
}

async function unlessUnseen<T>(action: () => Promise<T>): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    const errno = errnoOf(error);
    if (errno !== undefined && UNSEEN.has(errno)) return undefined;
    throw error;
  }
}

/** Of the host's refusal to watch one more folder. */
function watchError(error: unknown, path: BytePath): unknown {
  if (errnoOf(error) !== 'ENOSPC') return fileError(error, path);
  const message = 'the host lets its user watch no more folders (fs.inotify.max_user_watches)';
  return new WireError('tooManyWatches', message, { errno: 'ENOSPC', path: pathText(path) });
}
