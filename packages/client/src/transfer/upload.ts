/** Local files and folders to the server. */
import type { TarEntry } from 'modern-tar';
import { isFileError } from '../files/fileErrors.js';
import { type FilePath, wirePath } from '../files/wirePath.js';
import { sendArchive, tarEntry } from './archive.js';
import { type Job, jobsOf, SMALL_FILE_BYTES } from './batches.js';
import { type ByteSource, sendFile } from './blocks.js';
import { baseName, bytesOfWire, joinBytes, parentName, shownBytes, textOf, uriOf, withoutDots } from './bytePath.js';
import { landingOf } from './landing.js';
import type { LocalSource } from './localDisk.js';
import { JOBS_IN_FLIGHT, runTransfer, type Transfer, type TransferHost, type TransferOptions } from './options.js';
import { runPool } from './pool.js';
import type { TransferResult } from './tally.js';
import { localError, remoteError } from './transferErrors.js';
import { CARRIED_MODE, isFolder, type SkipReason, type Tree, type TreeItem } from './tree.js';

/** What is read at once of a file that says it is empty: files of `/proc` say so and are not. */
const UNSIZED_BYTES = 64 * 1024;

export async function upload(
  host: TransferHost,
  local: string,
  remote: FilePath,
  options: TransferOptions,
): Promise<TransferResult> {
  const destination = withoutDots(bytesOfWire(wirePath(remote, 'destination')) ?? '/');
  return await runTransfer('upload', host, options, async (transfer) => {
    const source = transfer.disk.absolutePath(local);
    const kind = await transfer.disk.kindOf(source);
    if (kind === 'missing') throw localError('ENOENT', local);
    if (kind === 'other') throw localError('NOT_REGULAR_FILE', local);
    await new Upload(transfer, source).run(kind, destination);
  });
}

class Upload {
  readonly #transfer: Transfer;
  readonly #source: string;

  constructor(transfer: Transfer, source: string) {
    this.#transfer = transfer;
    this.#source = source;
  }

  async run(kind: 'file' | 'directory', destination: string): Promise<void> {
    const { remote, includeParent, overwrite } = this.#transfer;
    const there = await remote.stat(destination);
    const found = there === undefined ? 'missing' : there.kind === 'directory' ? 'directory' : 'other';
    const landing = landingOf({
      source: { kind, path: this.#source },
      destination: { path: destination, found },
      includeParent,
      overwrite,
    });
    if (!landing.ok) throw remoteError(landing.code, shownBytes(landing.path));
    if (landing.makeFolder !== undefined) await remote.makeFolders(landing.makeFolder);
    if (kind === 'directory') await this.#sendTree(landing.path);
    else await this.#sendOne(landing.path, landing.path !== destination);
  }

  /** `isOpen`: whether anything is at the path was not looked at yet. */
  async #sendOne(path: string, isOpen: boolean): Promise<void> {
    const { disk, remote, tally, overwrite } = this.#transfer;
    if (isOpen && !overwrite && (await remote.stat(path)) !== undefined) throw remoteError('EEXIST', shownBytes(path));
    const source = await disk.openSource(this.#source, true);
    if (source === undefined) throw localError('NOT_REGULAR_FILE', shownBytes(this.#source));
    const item = { ...itemOf(source), name: baseName(this.#source) };
    tally.listed({ items: [item], skipped: [] });
    await this.#sendOpen(source, item, path);
  }

  async #sendTree(root: string): Promise<void> {
    const { disk, remote, tally, followSymlinks, overwrite, stop } = this.#transfer;
    const tree = await disk.treeOf(this.#source, { followSymlinks, check: () => remote.check() });
    const { items } = tree;
    const there = await remote.stat(root);
    if (there !== undefined && there.kind !== 'directory') throw remoteError('ENOTDIR', shownBytes(root));
    if (!overwrite && there !== undefined) await refuseTaken(this.#transfer, root, tree);
    tally.listed(tree);
    if (there === undefined) await remote.makeFolders(root);
    const [self, ...folders] = items.filter(isFolder);
    const writable = folders.map((item) => ({ ...item, mode: (item.mode ?? 0o777) | 0o700 }));
    for (const job of jobsOf(remote.extended ? writable : [])) await this.#makeFolders(root, job);
    for (const folder of remote.extended ? [] : writable) await remote.makeFolders(joinBytes(root, folder.name));
    const rest = items.filter((item) => !isFolder(item));
    await runPool(this.#jobs(rest), JOBS_IN_FLIGHT, (job) => this.#send(root, job), stop);
    if (remote.extended) await this.#settleFolders(root, folders, there === undefined ? self : undefined);
    for (const folder of items.filter(isFolder)) tally.done(folder);
  }

  #jobs(items: readonly TreeItem[]): Iterable<Job> {
    if (this.#transfer.remote.extended) return jobsOf(items);
    return items.map((item) => ({ kind: 'alone', item }));
  }

  /** Folders come first, as others can write into them; what they are in the end is set when all is in them. */
  async #makeFolders(root: string, job: Job): Promise<void> {
    const { remote } = this.#transfer;
    if (job.kind === 'alone') await remote.makeFolders(joinBytes(root, job.item.name), job.item.mode);
    else await sendArchive(remote, root, entriesOf(job.items), true);
  }

  /** `self`: the root itself, where it was made. The deepest come first, since making an entry touches its folder. */
  async #settleFolders(root: string, folders: readonly TreeItem[], self: TreeItem | undefined): Promise<void> {
    const { remote } = this.#transfer;
    for (const job of jobsOf(folders.toReversed())) {
      if (job.kind === 'batch') await sendArchive(remote, root, entriesOf(job.items), true);
    }
    const name = baseName(root);
    if (self === undefined || name === '' || textOf(name) === undefined) return;
    await sendArchive(remote, parentName(root), [tarEntry({ ...self, name })], true);
  }

  async #send(root: string, job: Job): Promise<void> {
    const alone = job.kind === 'alone' ? [job.item] : await this.#sendBatch(root, job.items);
    for (const item of alone) await this.#sendAlone(root, item);
  }

  /** What did not fit after all, since it has grown. */
  async #sendBatch(root: string, items: readonly TreeItem[]): Promise<readonly TreeItem[]> {
    const { remote, tally, overwrite } = this.#transfer;
    const entries: TarEntry[] = [];
    const sent: { readonly item: TreeItem; readonly bytes: number }[] = [];
    const alone: TreeItem[] = [];
    for (const item of items) {
      remote.check();
      if (item.kind === 'symlink') {
        entries.push(tarEntry(item));
        sent.push({ item, bytes: 0 });
        continue;
      }
      const source = await this.#open(item);
      if (source === undefined) continue;
      try {
        if (source.size > SMALL_FILE_BYTES) {
          alone.push(item);
          continue;
        }
        const content = source.size === 0 ? await unsized(source) : source;
        if (content.size === undefined) {
          alone.push(item);
          continue;
        }
        const bytes = await content.read(0, content.size);
        entries.push(tarEntry({ ...itemOf(source), name: item.name }, bytes));
        sent.push({ item, bytes: bytes.length });
      } finally {
        await source.close();
      }
    }
    if (entries.length > 0) await sendArchive(remote, root, entries, overwrite);
    for (const { item, bytes } of sent) {
      if (bytes > 0) tally.moved(item.name, bytes);
      tally.done(item);
    }
    return alone;
  }

  async #sendAlone(root: string, item: TreeItem): Promise<void> {
    if (item.kind === 'symlink') {
      this.#skip(item.name, 'linksNotSupported');
      return;
    }
    const source = await this.#open(item);
    if (source !== undefined) await this.#sendOpen(source, item, joinBytes(root, item.name));
  }

  async #sendOpen(source: LocalSource, item: TreeItem, path: string): Promise<void> {
    const { remote, tally, overwrite } = this.#transfer;
    try {
      const { mode, modifiedAtMs } = itemOf(source);
      const content = source.size === 0 ? await unsized(source) : source;
      await sendFile(remote, content, { path, mode, modifiedAtMs, overwrite }, (bytes) =>
        tally.moved(item.name, bytes),
      );
      tally.done(item);
    } finally {
      await source.close();
    }
  }

  /** Undefined for what has gone since it was listed. */
  async #open(item: TreeItem): Promise<LocalSource | undefined> {
    const { disk, followSymlinks } = this.#transfer;
    try {
      const source = await disk.openSource(joinBytes(this.#source, item.name), followSymlinks);
      if (source !== undefined) return source;
    } catch (error) {
      if (!isFileError(error) || error.code !== 'ENOENT') throw error;
    }
    this.#skip(item.name, 'vanished');
    return undefined;
  }

  #skip(name: string, reason: SkipReason): void {
    const path = joinBytes(this.#source, name);
    this.#transfer.tally.skip(textOf(path) ?? uriOf(path), reason);
  }
}

/** Of folders and links, which have no content. */
const entriesOf = (items: readonly TreeItem[]): TarEntry[] => items.map((item) => tarEntry(item));

function itemOf(source: LocalSource): TreeItem {
  const { size, mode, modifiedAtMs } = source;
  return { name: '', kind: 'file', size, mode: mode & CARRIED_MODE, modifiedAtMs };
}

/** A file that says it is empty, as what it has; one that has much is read to its end. */
async function unsized(source: ByteSource): Promise<ByteSource> {
  // A copy: most have nothing, and the room for what they might have had is not kept for each of them.
  const bytes = new Uint8Array(await source.read(0, UNSIZED_BYTES));
  if (bytes.length === UNSIZED_BYTES) {
    return { size: undefined, read: (offset, length) => source.read(offset, length) };
  }
  return {
    size: bytes.length,
    read: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
  };
}

/** Looks at the folders that are there already, and refuses what has a name that is to be written. */
async function refuseTaken({ remote }: Transfer, root: string, { items }: Tree): Promise<void> {
  const wanted = new Map<string, TreeItem[]>();
  for (const item of items) {
    if (item.name === '') continue;
    const siblings = wanted.get(parentName(item.name)) ?? [];
    siblings.push(item);
    wanted.set(parentName(item.name), siblings);
  }
  const open = [''];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const siblings = wanted.get(folder);
    if (siblings === undefined) continue;
    const there = new Map((await remote.list(joinBytes(root, folder))).map((entry) => [entry.name, entry.kind]));
    for (const item of siblings) {
      const kind = there.get(baseName(item.name));
      if (kind === undefined) continue;
      if (kind !== 'directory' || !isFolder(item)) {
        throw remoteError('EEXIST', shownBytes(joinBytes(root, item.name)));
      }
      open.push(item.name);
    }
  }
}
