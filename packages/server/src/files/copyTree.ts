/** Copies a file, a link or a folder with all that is in it. Takes no more memory than the tree is deep. */
import type { BigIntStats } from 'node:fs';
import { chmod, chown, lstat, mkdir, stat, utimes } from 'node:fs/promises';
import { WireError } from '@exec-server/protocol';
import { type BytePath, isWithin, joinPath, nameOf, nativeBytes, parentOf, pathText } from '../paths.js';
import { copyFile, type CopyFileOptions, copyLink } from './copyFile.js';
import { createDirectory } from './createDirectory.js';
import { kindOf, permissionsOf } from './detail.js';
import { entriesOf } from './entries.js';
import { errnoError, errnoOf, fileError, onPath } from './errno.js';
import { isSameFile, realPath } from './target.js';

export interface CopyOptions extends CopyFileOptions {
  /** Copy folders. */
  readonly recursive: boolean;
}

export interface Copied {
  /** Entries that are no file, folder or link. */
  readonly skipped: number;
}

/** Throws WireError; what was copied until then stays. */
export async function copyPath(source: BytePath, destination: BytePath, options: CopyOptions): Promise<Copied> {
  const stats = await statsFor(source, options.followSymlinks);
  if (stats.isDirectory()) {
    if (!options.recursive) {
      const message = 'fs/copy requires recursive: true when sourcePath is a directory';
      throw new WireError('invalidArgument', message, { field: 'recursive', path: pathText(source) });
    }
    return copyFolder(source, stats, destination, options);
  }
  if (stats.isSymbolicLink()) await copyLink(source, destination);
  else if (!stats.isFile() || !(await copyFile(source, destination, options))) {
    throw new WireError('notRegularFile', 'fs/copy only supports regular files, directories, and symlinks', {
      path: pathText(source),
      kind: kindOf(stats),
    });
  }
  return { skipped: 0 };
}

/** Whether a path is a folder or lies below it, whatever links lead there. The path need not exist, the folder has to. */
export async function liesWithin(folder: BytePath, path: BytePath): Promise<boolean> {
  const real = await onPath(folder, () => realPath(folder));
  let rest = '';
  for (let there = path; ; there = parentOf(there)) {
    try {
      const above = await realPath(there);
      return isWithin(real, rest === '' ? above : joinPath(above, rest));
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || there === '/') throw fileError(error, path);
      rest = rest === '' ? nameOf(there) : `${nameOf(there)}/${rest}`;
    }
  }
}

async function copyFolder(
  source: BytePath,
  stats: BigIntStats,
  destination: BytePath,
  options: CopyOptions,
): Promise<Copied> {
  if (await liesWithin(source, destination)) throw intoItself(destination);
  await createDirectory(parentOf(destination), { recursive: true });
  const tree = new TreeCopy(options);
  await tree.copy(source, stats, destination);
  return { skipped: tree.skipped };
}

class TreeCopy {
  readonly #options: CopyOptions;
  /** The folders that are being copied, from the outermost on. */
  readonly #sources: BigIntStats[] = [];
  /** The folder that everything is copied to. */
  #root: BigIntStats | undefined;
  skipped = 0;

  constructor(options: CopyOptions) {
    this.#options = options;
  }

  /** A folder onto a folder merges. */
  async copy(source: BytePath, stats: BigIntStats, destination: BytePath): Promise<void> {
    // Only links that are followed lead in a circle, or to where the copy grows.
    if (this.#sources.some((outer) => isSameFile(outer, stats))) throw errnoError('ELOOP', source);
    if (this.#root !== undefined && isSameFile(this.#root, stats)) throw intoItself(source);
    const made = await this.#make(destination);
    this.#root ??= await onPath(destination, () => stat(nativeBytes(destination), { bigint: true }));
    this.#sources.push(stats);
    try {
      await onPath(source, () => this.#entries(source, destination));
    } finally {
      // A folder that others may not write to is filled before it gets its mode; a copy that failed leaves it so as well.
      if (made) await onPath(destination, () => this.#dress(destination, stats));
    }
    this.#sources.pop();
  }

  async #entries(source: BytePath, destination: BytePath): Promise<void> {
    for await (const { name } of entriesOf(source)) {
      this.#options.check();
      await this.#entry(joinPath(source, name), joinPath(destination, name));
    }
  }

  async #entry(source: BytePath, destination: BytePath): Promise<void> {
    const stats = await statsFor(source, this.#options.followSymlinks);
    if (stats.isDirectory()) await this.copy(source, stats, destination);
    else if (stats.isSymbolicLink()) await copyLink(source, destination);
    else if (!stats.isFile() || !(await copyFile(source, destination, this.#options))) this.skipped += 1;
  }

  /** False when the folder was there. */
  async #make(folder: BytePath): Promise<boolean> {
    return onPath(folder, async () => {
      try {
        await mkdir(nativeBytes(folder), 0o700);
        return true;
      } catch (error) {
        if (errnoOf(error) !== 'EEXIST' || !this.#options.overwrite) throw error;
        // A link to a folder is taken for the folder where the caller named it, and never inside of the tree.
        const isRoot = this.#root === undefined;
        const there = await (isRoot ? stat(nativeBytes(folder)) : lstat(nativeBytes(folder)));
        if (!there.isDirectory()) throw error;
        return false;
      }
    });
  }

  async #dress(folder: BytePath, stats: BigIntStats): Promise<void> {
    const native = nativeBytes(folder);
    if (this.#options.alike) {
      await chown(native, Number(stats.uid), Number(stats.gid)).catch((error: unknown) => {
        // The host keeps the owner to itself.
        if (errnoOf(error) !== 'EPERM') throw error;
      });
    }
    await chmod(native, permissionsOf(stats));
    if (this.#options.alike) await utimes(native, stats.atime, stats.mtime);
  }
}

function statsFor(path: BytePath, follow: boolean): Promise<BigIntStats> {
  const native = nativeBytes(path);
  return onPath(path, () => (follow ? stat(native, { bigint: true }) : lstat(native, { bigint: true })));
}

function intoItself(path: BytePath): WireError {
  const message = 'fs/copy cannot copy a directory to itself or one of its descendants';
  return new WireError('invalidArgument', message, { field: 'destinationPath', path: pathText(path) });
}
