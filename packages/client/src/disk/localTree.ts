/** Lists a tree of the local disk by the bytes of its names, as it is to be carried. */
import { Buffer } from 'node:buffer';
import type { BigIntStats } from 'node:fs';
import { lstat, readdir, readlink, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { bytesOf, joinBytes, textOf, uriOf } from '../transfer/bytePath.js';
import type { LocalKind, LocalTreeOptions } from '../transfer/localDisk.js';
import { CARRIED_MODE, type SkippedEntry, type SkipReason, type Tree, type TreeItem } from '../transfer/tree.js';
import { native, onDisk } from './localErrors.js';

/** Of what a link leads to. */
export async function kindOf(path: string): Promise<LocalKind> {
  const found = await onDisk(path, () => stat(native(path)), ['ENOENT', 'ENOTDIR']);
  if (found === undefined) return 'missing';
  return found.isFile() ? 'file' : found.isDirectory() ? 'directory' : 'other';
}

/** The tree below `root`, a folder. A link that is the root itself is followed. Throws FileError. */
export async function treeOf(root: string, options: LocalTreeOptions): Promise<Tree> {
  return await new Lister(root, options).list();
}

class Lister {
  readonly #root: string;
  readonly #options: LocalTreeOptions;
  readonly #items: TreeItem[] = [];
  readonly #skipped: SkippedEntry[] = [];
  /** The folders that are being listed, root first, by device and number. */
  readonly #inside: string[] = [];

  constructor(root: string, options: LocalTreeOptions) {
    this.#root = root;
    this.#options = options;
  }

  async list(): Promise<Tree> {
    const stats = await onDisk(this.#root, () => stat(native(this.#root), { bigint: true }));
    this.#items.push(itemOf('', 'directory', stats));
    await this.#folder('', stats);
    return { items: this.#items, skipped: this.#skipped };
  }

  async #folder(name: string, stats: BigIntStats): Promise<void> {
    this.#options.check();
    const path = joinBytes(this.#root, name);
    this.#inside.push(identityOf(stats));
    const entries = await onDisk(path, () => readdir(native(path), { encoding: 'buffer' }));
    for (const entry of entries.sort((one, other) => Buffer.compare(one, other)))
      await this.#entry(joinBytes(name, entry.toString('latin1')));
    this.#inside.pop();
  }

  async #entry(name: string): Promise<void> {
    const path = joinBytes(this.#root, name);
    const look = this.#options.followSymlinks ? stat : lstat;
    const stats = await onDisk(path, () => look(native(path), { bigint: true }), ['ENOENT', 'ELOOP']);
    if (stats === undefined) {
      this.#skip(path, this.#options.followSymlinks ? 'danglingLink' : 'vanished');
    } else if (stats.isDirectory()) {
      if (this.#inside.includes(identityOf(stats))) {
        this.#skip(path, 'linkLoop');
        return;
      }
      this.#items.push(itemOf(name, 'directory', stats));
      await this.#folder(name, stats);
    } else if (stats.isSymbolicLink()) {
      await this.#link(name, path, stats);
    } else if (stats.isFile()) {
      this.#items.push(itemOf(name, 'file', stats));
    } else {
      this.#skip(path, stats.isFIFO() ? 'fifo' : stats.isSocket() ? 'socket' : 'device');
    }
  }

  async #link(name: string, path: string, stats: BigIntStats): Promise<void> {
    const bytes = await onDisk(path, () => readlink(native(path), { encoding: 'buffer' }));
    const target = textOf(bytes.toString('latin1'));
    if (target === undefined || textOf(name) === undefined) this.#skip(path, 'notUtf8');
    else this.#items.push({ ...itemOf(name, 'symlink', stats), target });
  }

  #skip(path: string, reason: SkipReason): void {
    this.#skipped.push({ path: textOf(path) ?? uriOf(path), reason });
  }
}

function itemOf(name: string, kind: TreeItem['kind'], stats: BigIntStats): TreeItem {
  return {
    name,
    kind,
    size: kind === 'file' ? Number(stats.size) : 0,
    mode: Number(stats.mode) & CARRIED_MODE,
    modifiedAtMs: Number(stats.mtimeNs / 1_000_000n),
  };
}

const identityOf = ({ dev, ino }: BigIntStats): string => `${dev}:${ino}`;

/** The bytes of a local path in absolute form; a slash at its end stays, since it says that a folder is meant. */
export function absolutePath(path: string): string {
  const absolute = resolve(path);
  return bytesOf(path.endsWith('/') && absolute !== '/' ? `${absolute}/` : absolute);
}
