/** `fs/walk`: a tree, breadth first and sorted, within bounds. */
import { lstat, stat } from 'node:fs/promises';
import { limits, type ParamsOf, type ResultOf, type WalkEntry, WireError } from '@exec-server/protocol';
import { type BytePath, joinPath, nativeBytes, pathUri } from '../paths.js';
import { inBatches } from './batches.js';
import { type EntryDetail, entryDetailOf, linkTextOf } from './detail.js';
import { errnoOf, fileError, onPath } from './errno.js';
import { type FolderName, sortedNames } from './names.js';

type Options = ParamsOf<'fs/walk'>['options'];
type Result = ResultOf<'fs/walk'>;

export interface WalkHow {
  /** Give up, with undefined, when it is no small tree. */
  readonly small: boolean;
  /** Called between batches of entries; throws to give up. */
  readonly checkpoint: () => void;
}

interface Folder {
  readonly path: BytePath;
  /** Of the entries in it; 0 for the root. */
  readonly depth: number;
}

/** What is found behind a name. */
type Found =
  | { readonly kind: 'entry'; readonly entry: WalkEntry; readonly enter: Folder | undefined }
  | { readonly kind: 'error'; readonly path: BytePath; readonly error: unknown }
  | { readonly kind: 'leftOut' };

/** A tree that is walked side by side with others. */
const SMALL_ENTRIES = 1024;
const SMALL_FOLDERS = 64;
/** Names of a folder sorted at a time. */
const PAGE_NAMES = limits.MAX_WALK_ENTRIES + 1;
/** Of one entry in JSON, beside its path and the text of a link. */
const ENTRY_OVERHEAD_BYTES = 160;
/** Room for the ends of the answer. */
const RESULT_BYTES = limits.MAX_REPLY_BYTES - 4096;
const leftOut: Found = { kind: 'leftOut' };

/** Throws WireError `invalidArgument`. */
export function checkWalkOptions({ maxDepth, maxDirectories, maxEntries }: Options): void {
  const { MAX_WALK_DEPTH: depth, MAX_WALK_DIRECTORIES: directories, MAX_WALK_ENTRIES: entries } = limits;
  if (maxDirectories === 0 || maxEntries === 0) {
    throw new WireError('invalidArgument', 'filesystem walk limits must be greater than zero', { field: 'options' });
  }
  if (maxDepth <= depth && maxDirectories <= directories && maxEntries <= entries) return;
  const maximums = `depth=${depth}, directories=${directories}, entries=${entries}`;
  throw new WireError('invalidArgument', `filesystem walk limits exceed maximums: ${maximums}`, { field: 'options' });
}

export async function walkTree(path: BytePath, options: Options, how: WalkHow): Promise<Result | undefined> {
  const link = await onPath(path, () => lstat(nativeBytes(path)));
  const root = link.isSymbolicLink() ? await onPath(path, () => stat(nativeBytes(path))) : link;
  const isEntered = root.isDirectory() && (root === link || options.followDirectorySymlinks);
  if (!isEntered) return { entries: [], errors: [], truncated: false };
  return new Walk(options, how).from(path);
}

class Walk {
  readonly #options: Options;
  readonly #how: WalkHow;
  readonly #entries: WalkEntry[] = [];
  readonly #errors: { path: string; message: string }[] = [];
  /** Device and inode of the folders entered: each is entered once, whichever ways lead there. */
  readonly #entered = new Set<string>();
  readonly #waiting: Folder[] = [];
  #bytes = 0;
  #truncated = false;

  constructor(options: Options, how: WalkHow) {
    this.#options = options;
    this.#how = how;
  }

  async from(root: BytePath): Promise<Result | undefined> {
    this.#waiting.push({ path: root, depth: 0 });
    // Folders found on the way are appended.
    for (const folder of this.#waiting) {
      this.#how.checkpoint();
      if (this.#truncated) break;
      try {
        if (!(await this.#visit(folder))) return undefined;
      } catch (error) {
        this.#fail(folder.path, error);
      }
    }
    return { entries: this.#entries, errors: this.#errors, truncated: this.#truncated };
  }

  /** False to give up: the tree is not small. */
  async #visit(folder: Folder): Promise<boolean> {
    const { dev, ino } = await stat(nativeBytes(folder.path), { bigint: true });
    const identity = `${dev}:${ino}`;
    if (this.#entered.has(identity)) return true;
    if (this.#entered.size >= this.#options.maxDirectories) {
      this.#truncated = true;
      return true;
    }
    this.#entered.add(identity);
    const { small, checkpoint } = this.#how;
    if (small && this.#entered.size > SMALL_FOLDERS) return false;
    const scanAtMost = small ? SMALL_ENTRIES : Number.POSITIVE_INFINITY;
    let after = '';
    for (;;) {
      const page = await sortedNames(folder.path, { after, limit: PAGE_NAMES, scanAtMost, checkpoint });
      if (page === undefined) return false;
      for await (const batch of inBatches(page.items, checkpoint, (name) => this.#look(folder, name))) {
        for (const found of batch) this.#take(found);
        if (this.#truncated) return true;
        if (small && this.#entries.length > SMALL_ENTRIES) return false;
      }
      const last = page.items.at(-1);
      if (!page.more || last === undefined) return true;
      after = last.name;
    }
  }

  #look(folder: Folder, { name, kind }: FolderName): Found | Promise<Found> {
    const path = joinPath(folder.path, name);
    const { detail, followDirectorySymlinks, pruneHiddenDirectories } = this.#options;
    const isPruned = pruneHiddenDirectories === true && name.startsWith('.');
    const below = folder.depth < this.#options.maxDepth && !isPruned ? { path, depth: folder.depth + 1 } : undefined;
    if (detail === true) return this.#lookClosely(path, below);
    if (kind === 'directory') return { kind: 'entry', entry: { path: pathUri(path), kind }, enter: below };
    if (kind === 'file') return { kind: 'entry', entry: { path: pathUri(path), kind }, enter: undefined };
    if (kind !== 'symlink' || !followDirectorySymlinks) return leftOut;
    return this.#leadsToFolder(path).then(
      (leads): Found =>
        leads ? { kind: 'entry', entry: { path: pathUri(path), kind: 'directory' }, enter: below } : leftOut,
      (error: unknown): Found => ({ kind: 'error', path, error }),
    );
  }

  async #lookClosely(path: BytePath, below: Folder | undefined): Promise<Found> {
    try {
      const stats = await lstat(nativeBytes(path), { bigint: true });
      const isLink = stats.isSymbolicLink();
      const detail: EntryDetail = entryDetailOf(stats, isLink ? await linkTextOf(path) : undefined);
      const isEntered =
        stats.isDirectory() || (isLink && this.#options.followDirectorySymlinks && (await this.#leadsToFolder(path)));
      return { kind: 'entry', entry: { path: pathUri(path), ...detail }, enter: isEntered ? below : undefined };
    } catch (error) {
      // It has vanished since the folder was read.
      if (errnoOf(error) === 'ENOENT') return leftOut;
      return { kind: 'error', path, error };
    }
  }

  async #leadsToFolder(path: BytePath): Promise<boolean> {
    try {
      return (await stat(nativeBytes(path))).isDirectory();
    } catch (error) {
      const errno = errnoOf(error);
      // It leads nowhere.
      if (errno === 'ENOENT' || errno === 'ELOOP' || errno === 'ENOTDIR') return false;
      throw error;
    }
  }

  #take(found: Found): void {
    if (this.#truncated || found.kind === 'leftOut') return;
    if (found.kind === 'error') {
      this.#fail(found.path, found.error);
      return;
    }
    const { entry, enter } = found;
    const text = entry.linkTarget === undefined ? 0 : JSON.stringify(entry.linkTarget).length;
    if (!this.#hasRoom(this.#entries, entry.path.length + text)) return;
    this.#entries.push(entry);
    if (enter !== undefined) this.#waiting.push(enter);
  }

  /** What the host says is part of the answer; anything else ends the walk. */
  #fail(path: BytePath, error: unknown): void {
    const told = fileError(error);
    if (errnoOf(error) === undefined || !(told instanceof WireError)) throw error;
    const uri = pathUri(path);
    if (this.#hasRoom(this.#errors, uri.length + told.message.length))
      this.#errors.push({ path: uri, message: told.message });
  }

  #hasRoom(list: readonly unknown[], bytes: number): boolean {
    this.#bytes += bytes + ENTRY_OVERHEAD_BYTES;
    if (list.length >= this.#options.maxEntries || this.#bytes > RESULT_BYTES) this.#truncated = true;
    return !this.#truncated;
  }
}
