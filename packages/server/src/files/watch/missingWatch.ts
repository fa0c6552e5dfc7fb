/**
 * Waits for one of several paths that do not exist. For each the nearest folder above it that exists is watched; it is told once,
 * when a path or the next folder on the way to one is there.
 */
import { lstat, stat } from 'node:fs/promises';
import { type BytePath, nameOf, nativeBytes, parentOf } from '../../paths.js';
import { errnoOf } from '../errno.js';
import { FolderWatch } from './folderWatch.js';

interface Place {
  /** The nearest folder that exists, and the name that is missing in it. */
  readonly folder: BytePath;
  readonly missing: string;
}

export class MissingWatch {
  readonly #paths: readonly BytePath[];
  readonly #appeared: () => void;
  /** Where each path is waited for. */
  readonly #places = new Map<BytePath, Place>();
  readonly #watches = new Map<BytePath, FolderWatch>();
  #answered = false;
  #hasAppeared = false;
  #over = false;

  constructor(paths: readonly BytePath[], appeared: () => void) {
    this.#paths = paths;
    this.#appeared = appeared;
  }

  /** Whether they are watched: false if one exists, or the host lets nobody watch. */
  async open(): Promise<boolean> {
    const placed = await Promise.all(this.#paths.map((path) => this.#watch(path)));
    if (placed.every((isWatched) => isWatched)) return !this.#over;
    this.end();
    return false;
  }

  /** The client knows that it watches; what has appeared since `open` is told from now on. */
  start(): void {
    this.#answered = true;
    if (this.#hasAppeared) this.#tell();
  }

  end(): void {
    this.#over = true;
    for (const watch of this.#watches.values()) watch.close();
    this.#watches.clear();
  }

  /** False if the path exists, or cannot be watched. Looks again once the watch stands: it may have appeared in between. */
  async #watch(path: BytePath): Promise<boolean> {
    for (;;) {
      const place = await placeOf(path);
      if (place === undefined) return false;
      if (this.#over) return true;
      try {
        this.#open(place.folder);
      } catch {
        // The host lets nobody watch, or the folder is gone: the client hears that nothing is watched, and looks itself.
        return false;
      }
      this.#places.set(path, place);
      const again = await placeOf(path);
      if (again?.folder === place.folder) return true;
    }
  }

  #open(folder: BytePath): void {
    if (this.#watches.has(folder)) return;
    const watch = new FolderWatch(folder, {
      touched: (name) => this.#touched(folder, name),
      lost: () => this.#found(),
      failed: () => this.#found(),
    });
    this.#watches.set(folder, watch);
  }

  #touched(folder: BytePath, name: string | undefined): void {
    const isSelf = name === undefined || name === nameOf(folder);
    if (isSelf) {
      // A folder that was removed and made again has the same path; the watch is on the old one.
      this.#watches.get(folder)?.close();
      this.#watches.delete(folder);
    }
    for (const [path, place] of this.#places) {
      if (place.folder !== folder || !(isSelf || place.missing === name)) continue;
      void this.#lookAgain(path, place);
    }
  }

  /** Never rejects. */
  async #lookAgain(path: BytePath, { folder }: Place): Promise<void> {
    const isWatched = await this.#watch(path);
    // A folder nearer to the path than the one before: what was missing in that one is there.
    if (!isWatched || (this.#places.get(path)?.folder.length ?? 0) > folder.length) this.#found();
  }

  /** What may have appeared is told, too: the client looks. */
  #found(): void {
    if (this.#over) return;
    this.#hasAppeared = true;
    if (this.#answered) this.#tell();
  }

  #tell(): void {
    if (this.#over) return;
    this.end();
    this.#appeared();
  }
}

/**
 * Undefined if the path exists, or if its coming would not be told by a folder above it: one of these is a file, or a link
 * that leads nowhere, whose target lies elsewhere.
 */
async function placeOf(path: BytePath): Promise<Place | undefined> {
  if ((await look(path)) !== 'missing') return undefined;
  let missing = path;
  while (parentOf(missing) !== missing) {
    const folder = parentOf(missing);
    const found = await look(folder);
    if (found === 'folder') return { folder, missing: nameOf(missing) };
    if (found === 'other') return undefined;
    missing = folder;
  }
  return { folder: missing, missing: '' };
}

async function look(path: BytePath): Promise<'missing' | 'folder' | 'other'> {
  try {
    await lstat(nativeBytes(path));
  } catch (error) {
    return errnoOf(error) === 'ENOENT' ? 'missing' : 'other';
  }
  try {
    return (await stat(nativeBytes(path))).isDirectory() ? 'folder' : 'other';
  } catch {
    // Whatever the reason: nobody can use what is there.
    return 'other';
  }
}
