/**
 * Temporary files and folders of this server: beside what they are for, under names of our own. Each is listed with the guard
 * before it exists, so that none outlives a server that is killed; what is listed is the folder, since a line for each file
 * would cost as much as a small write.
 */
import { constants } from 'node:fs';
import { type FileHandle, link, open, rename } from 'node:fs/promises';
import type { Clock } from '../clock.js';
import { type BytePath, joinPath, nativeBytes } from '../paths.js';
import { removePath } from './remove.js';

/** Folders without a temporary file that stay listed: the next write is likely to be in one of them. */
const IDLE_FOLDERS = 64;

const PREFIX = '.exec-server-';
const SUFFIX = '.tmp';

/** Whether a name is one of a temporary file, of this server or of another one. */
export function isTempName(name: string): boolean {
  return name.startsWith(PREFIX) && name.endsWith(SUFFIX);
}

export interface TempFilesOptions {
  /** Random, unlike that of any other server; letters, digits, `_` and `-`. */
  readonly life: string;
  /** What begins so and ends in `.tmp` has to go when this server is killed. */
  readonly list: (key: number, begins: BytePath) => void;
  readonly unlist: (key: number) => void;
}

interface Folder {
  readonly path: BytePath;
  readonly key: number;
  /** Temporary files in it. */
  live: number;
}

/** A name that nobody else has, for a file or a folder. */
export interface TempPath {
  readonly path: BytePath;
  /** Puts it in the place of the target. Rejects with the error of the host, and it is still there. */
  moveTo(target: BytePath): Promise<void>;
  /** Gives it the name of the target, too, which is to be free. */
  linkTo(target: BytePath): Promise<void>;
  /** Removes what has the name. Nothing to do once it was moved. Never rejects. */
  remove(): Promise<void>;
}

export interface TempFile extends TempPath {
  /** Open for reading and writing. */
  readonly file: FileHandle;
}

export class TempFiles {
  readonly #options: TempFilesOptions;
  readonly #folders = new Map<BytePath, Folder>();
  /** Those without a temporary file; the one that was used last is last. */
  readonly #idle = new Map<BytePath, Folder>();
  readonly #live = new Set<TempPath>();
  #keys = 0;
  #names = 0;
  #whenEmpty: (() => void)[] = [];

  constructor(options: TempFilesOptions) {
    this.#options = options;
  }

  /** Temporary files and folders that exist now. */
  get size(): number {
    return this.#live.size;
  }

  /** An empty file that is its owner's alone. Rejects with the error of the host. */
  async create(folder: BytePath): Promise<TempFile> {
    const name = this.reserve(folder);
    const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    try {
      const file = await open(nativeBytes(name.path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      return {
        path: name.path,
        file,
        moveTo: (target) => name.moveTo(target),
        linkTo: (target) => name.linkTo(target),
        remove: async () => {
          // Whoever needs what was written has closed it, and has seen the error.
          await file.close().catch(() => undefined);
          await name.remove();
        },
      };
    } catch (error) {
      await name.remove();
      throw error;
    }
  }

  /** A name under which the caller makes what it needs. */
  reserve(folder: BytePath): TempPath {
    const begins = joinPath(folder, `${PREFIX}${this.#options.life}-`);
    const listed = this.#enter(folder, begins);
    const path = `${begins}${(this.#names += 1)}${SUFFIX}` as BytePath;
    let there = true;
    const gone = (): void => {
      if (!there) return;
      there = false;
      this.#leave(listed);
      this.#live.delete(temp);
      if (this.#live.size === 0) for (const tell of this.#whenEmpty.splice(0)) tell();
    };
    const temp: TempPath = {
      path,
      moveTo: async (target) => {
        await rename(nativeBytes(path), nativeBytes(target));
        gone();
      },
      linkTo: (target) => link(nativeBytes(path), nativeBytes(target)),
      remove: async () => {
        if (!there) return;
        try {
          await removePath(path, { recursive: true, force: true, unlock: true });
        } catch {
          // The host refuses it: the folder it is in became read-only, a disk is gone. Nobody can do better.
        }
        gone();
      },
    };
    this.#live.add(temp);
    return temp;
  }

  /** Resolves when no temporary file is left; what others still have after `patienceMs` is removed under their hands. */
  async close(clock: Clock, patienceMs: number): Promise<void> {
    if (this.#live.size > 0) {
      await new Promise<void>((resolve) => {
        const cancel = clock.after(patienceMs, resolve);
        this.#whenEmpty.push(() => {
          cancel();
          resolve();
        });
      });
    }
    await Promise.all([...this.#live].map((temp) => temp.remove()));
  }

  #enter(path: BytePath, begins: BytePath): Folder {
    let folder = this.#folders.get(path);
    if (folder === undefined) {
      folder = { path, key: (this.#keys += 1), live: 0 };
      this.#folders.set(path, folder);
      this.#options.list(folder.key, begins);
    }
    folder.live += 1;
    this.#idle.delete(path);
    return folder;
  }

  #leave(folder: Folder): void {
    folder.live -= 1;
    if (folder.live > 0) return;
    this.#idle.set(folder.path, folder);
    for (const oldest of this.#idle.values()) {
      if (this.#idle.size <= IDLE_FOLDERS) break;
      this.#idle.delete(oldest.path);
      this.#folders.delete(oldest.path);
      this.#options.unlist(oldest.key);
    }
  }
}
