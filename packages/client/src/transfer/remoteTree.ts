/** Lists a tree of the server as it is to be carried. */
import { ClientError } from '../errors.js';
import { isFileError } from '../files/fileErrors.js';
import { joinBytes, shownBytes, textOf, uriOf } from './bytePath.js';
import type { Remote, RemoteEntry, RemoteStat } from './remote.js';
import { CARRIED_MODE, type SkippedEntry, type SkipReason, type Tree, type TreeItem } from './tree.js';

/** The tree below `root`, a folder. Throws FileError, and PROTOCOL_VIOLATION for a listing that cannot be one. */
export async function remoteTree(
  remote: Remote,
  root: string,
  self: RemoteStat,
  followSymlinks: boolean,
): Promise<Tree> {
  const lister = new Lister(remote, root, followSymlinks);
  return await lister.list(self);
}

class Lister {
  readonly #remote: Remote;
  readonly #root: string;
  readonly #followSymlinks: boolean;
  readonly #items: TreeItem[] = [];
  readonly #skipped: SkippedEntry[] = [];
  /** The folders that are being listed, root first, by identity. */
  readonly #inside: string[] = [];

  constructor(remote: Remote, root: string, followSymlinks: boolean) {
    this.#remote = remote;
    this.#root = root;
    this.#followSymlinks = followSymlinks;
  }

  async list(self: RemoteStat): Promise<Tree> {
    this.#items.push({
      name: '',
      kind: 'directory',
      size: 0,
      mode: carried(self.mode),
      modifiedAtMs: self.modifiedAtMs,
    });
    await this.#folder('', await this.#identity(this.#root, self));
    return { items: this.#items, skipped: this.#skipped };
  }

  async #folder(name: string, identity: string | undefined): Promise<void> {
    this.#remote.check();
    const folder = joinBytes(this.#root, name);
    if (identity !== undefined) this.#inside.push(identity);
    const seen = new Set<string>();
    for (const entry of await this.#remote.list(folder)) {
      // A second one could be a link in the place of a folder that is written into.
      if (seen.has(entry.name)) throw twice(joinBytes(folder, entry.name));
      seen.add(entry.name);
      await this.#entry(joinBytes(name, entry.name), entry);
    }
    if (identity !== undefined) this.#inside.pop();
  }

  async #entry(name: string, entry: RemoteEntry): Promise<void> {
    const path = joinBytes(this.#root, name);
    const isKnown = this.#remote.extended && !(entry.kind === 'symlink' && this.#followSymlinks);
    if (isKnown) {
      await this.#take(name, { ...entry, mode: carried(entry.mode) });
      return;
    }
    const stat = await this.#behind(path);
    if (stat === undefined) {
      this.#skip(path, entry.kind === 'symlink' ? 'danglingLink' : 'vanished');
    } else if (stat.isLink && !this.#followSymlinks) {
      this.#skip(path, 'linksNotSupported');
    } else {
      await this.#take(name, { ...stat, mode: carried(stat.mode) }, stat);
    }
  }

  /** What an entry is or leads to; undefined where that is nothing, and where links lead in a circle. */
  async #behind(path: string): Promise<RemoteStat | undefined> {
    try {
      return await this.#remote.stat(path);
    } catch (error) {
      if (isFileError(error) && error.code === 'ELOOP') return undefined;
      throw error;
    }
  }

  async #take(
    name: string,
    found: { readonly kind: string; readonly size: number; readonly mode: number | undefined } & {
      readonly modifiedAtMs: number;
      readonly target?: string | undefined;
    },
    known?: RemoteStat,
  ): Promise<void> {
    const path = joinBytes(this.#root, name);
    const { kind, size, mode, modifiedAtMs, target } = found;
    switch (kind) {
      case 'file':
        this.#items.push({ name, kind, size, mode, modifiedAtMs });
        break;
      case 'directory': {
        const identity = await this.#identity(path, known);
        if (identity !== undefined && this.#inside.includes(identity)) {
          this.#skip(path, 'linkLoop');
          return;
        }
        this.#items.push({ name, kind, size: 0, mode, modifiedAtMs });
        await this.#folder(name, identity);
        break;
      }
      case 'symlink':
        // The text of a link comes with replacement characters where it is no UTF-8.
        if (target === undefined || target.includes('\ufffd')) this.#skip(path, 'notUtf8');
        else this.#items.push({ name, kind, size: 0, mode, modifiedAtMs, target });
        break;
      default:
        this.#skip(path, kind === 'fifo' || kind === 'socket' ? kind : 'device');
    }
  }

  /** Which folder it is; without extensions by the path that has no links. Needed where links are followed. */
  async #identity(path: string, known?: RemoteStat): Promise<string | undefined> {
    if (!this.#followSymlinks) return undefined;
    const stat = known ?? (await this.#remote.stat(path));
    return stat?.identity ?? (await this.#remote.realpath(path));
  }

  #skip(path: string, reason: SkipReason): void {
    this.#skipped.push({ path: textOf(path) ?? uriOf(path), reason });
  }
}

const carried = (mode: number | undefined): number | undefined =>
  mode === undefined ? undefined : mode & CARRIED_MODE;

function twice(path: string): ClientError {
  return new ClientError('PROTOCOL_VIOLATION', `the server listed ${shownBytes(path)} twice; nothing was written`);
}
