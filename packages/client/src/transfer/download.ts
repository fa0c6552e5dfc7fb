/** Files and folders of the server to the local disk. Nothing is written outside of the destination, whatever the server says. */
import { isFileError } from '../files/fileErrors.js';
import { type FilePath, wirePath } from '../files/wirePath.js';
import { receiveArchive } from './archive.js';
import { archiveBytes, BATCH_BYTES, type Job, jobsOf } from './batches.js';
import { receiveFile } from './blocks.js';
import {
  baseName,
  bytesOfWire,
  joinBytes,
  parentName,
  shownBytes,
  textOf,
  uriOf,
  withoutDots,
  withoutSlash,
} from './bytePath.js';
import { landingOf } from './landing.js';
import { JOBS_IN_FLIGHT, runTransfer, type Transfer, type TransferHost, type TransferOptions } from './options.js';
import { runPool } from './pool.js';
import type { RemoteStat } from './remote.js';
import { remoteTree } from './remoteTree.js';
import type { TransferResult } from './tally.js';
import { localError, remoteError } from './transferErrors.js';
import { CARRIED_MODE, isFile, isFolder, isLink, type Tree, type TreeItem } from './tree.js';

export async function download(
  host: TransferHost,
  remote: FilePath,
  local: string,
  options: TransferOptions,
): Promise<TransferResult> {
  const source = withoutSlash(withoutDots(bytesOfWire(wirePath(remote, 'source')) ?? '/'));
  return await runTransfer('download', host, options, async (transfer) => {
    const stat = await transfer.remote.stat(source);
    if (stat === undefined) throw remoteError('ENOENT', shownBytes(source));
    if (stat.kind === 'other') throw remoteError('NOT_REGULAR_FILE', shownBytes(source));
    await new Download(transfer, source).run(stat, transfer.disk.absolutePath(local));
  });
}

class Download {
  readonly #transfer: Transfer;
  readonly #source: string;

  constructor(transfer: Transfer, source: string) {
    this.#transfer = transfer;
    this.#source = source;
  }

  async run(stat: RemoteStat, destination: string): Promise<void> {
    const { disk, includeParent, overwrite } = this.#transfer;
    const kind = stat.kind === 'directory' ? 'directory' : 'file';
    const there = await disk.kindOf(withoutSlash(destination));
    const landing = landingOf({
      source: { kind, path: this.#source },
      destination: { path: destination, found: there === 'file' ? 'other' : there },
      includeParent,
      overwrite,
    });
    if (!landing.ok) throw localError(landing.code, shownBytes(landing.path));
    if (landing.makeFolder !== undefined) await disk.makeFolders(landing.makeFolder);
    if (kind === 'directory') await this.#fetchTree(stat, landing.path);
    else await this.#fetchOne(stat, landing.path);
  }

  async #fetchOne({ size, mode, modifiedAtMs }: RemoteStat, landing: string): Promise<void> {
    const { disk, tally, overwrite } = this.#transfer;
    if (!overwrite && (await disk.isTaken(landing))) throw localError('EEXIST', shownBytes(landing));
    const there = await disk.kindOf(landing);
    if (there === 'directory') throw localError('EISDIR', shownBytes(landing));
    // A device or FIFO is not replaced, and has no place for a file beside it.
    if (there === 'other') throw localError('NOT_REGULAR_FILE', shownBytes(landing));
    const path = await disk.behindLink(landing);
    const item: TreeItem = { name: baseName(this.#source), kind: 'file', size, mode: carried(mode), modifiedAtMs };
    tally.listed({ items: [item], skipped: [] });
    await this.#fetchFile(this.#source, path, item);
  }

  async #fetchTree(stat: RemoteStat, root: string): Promise<void> {
    const { disk, remote, tally, followSymlinks, overwrite, stop } = this.#transfer;
    const tree = await remoteTree(remote, this.#source, stat, followSymlinks);
    const isNew = (await disk.kindOf(root)) === 'missing';
    if (!overwrite && !isNew) await this.#refuseTaken(root, tree);
    tally.listed(tree);
    const { items } = tree;
    const made = await this.#makeFolders(root, items.filter(isFolder), isNew);
    await runPool(this.#jobs(items.filter(isFile)), JOBS_IN_FLIGHT, (job) => this.#fetch(root, job), stop);
    // Last, so that nothing is ever written through one.
    for (const item of items.filter(isLink)) {
      await disk.makeLink(joinBytes(root, item.name), item, overwrite);
      tally.done(item);
    }
    // The deepest first: whatever is made in a folder changes its time.
    for (const item of made.toReversed()) await disk.settleFolder(joinBytes(root, item.name), item);
    for (const item of items.filter(isFolder)) tally.done(item);
  }

  #jobs(items: readonly TreeItem[]): Iterable<Job> {
    if (this.#transfer.remote.extended) return jobsOf(items);
    return items.map((item) => ({ kind: 'alone', item }));
  }

  /** Those whose mode and time are to be set: the root stays as it is where it was there before. */
  async #makeFolders(root: string, folders: readonly TreeItem[], isNew: boolean): Promise<TreeItem[]> {
    const { disk, remote } = this.#transfer;
    const made: TreeItem[] = [];
    for (const item of folders) {
      remote.check();
      if (item.name === '') {
        await disk.makeFolders(root);
        if (isNew) made.push(item);
        continue;
      }
      await disk.makeFolder(joinBytes(root, item.name));
      made.push(item);
    }
    return made;
  }

  async #fetch(root: string, job: Job): Promise<void> {
    const alone = job.kind === 'alone' ? [job.item] : await this.#fetchBatch(root, job.items);
    for (const item of alone) await this.#fetchAlone(root, item);
  }

  /** What has to be asked for by itself: it has grown, changed or gone since it was listed. */
  async #fetchBatch(root: string, items: readonly TreeItem[]): Promise<readonly TreeItem[]> {
    const { remote, followSymlinks } = this.#transfer;
    const byName = new Map(items.map((item) => [textOf(item.name) ?? '', item]));
    const mostBytes = BATCH_BYTES + items.reduce((sum, item) => sum + archiveBytes(item), 0);
    const alone: TreeItem[] = [];
    try {
      const archive = await receiveArchive(remote, this.#source, [...byName.keys()], { followSymlinks, mostBytes });
      if (archive === undefined) return items;
      for (const [name, item] of byName) {
        const { header, data } = archive.get(name) ?? {};
        if (header?.type === 'file' && data !== undefined) await this.#place(root, item, data);
        else alone.push(item);
      }
      return alone;
    } catch (error) {
      if (isFileError(error) && error.data['local'] !== true && MOVING.has(error.code)) return items;
      throw error;
    }
  }

  async #place(root: string, item: TreeItem, bytes: Uint8Array): Promise<void> {
    const { disk, remote, tally, overwrite } = this.#transfer;
    remote.check();
    const target = await disk.createTarget(joinBytes(root, item.name));
    try {
      await target.write(0, bytes);
    } catch (error) {
      await target.drop();
      throw error;
    }
    await target.commit({ ...item, overwrite });
    if (bytes.length > 0) tally.moved(item.name, bytes.length);
    tally.done(item);
  }

  async #fetchAlone(root: string, item: TreeItem): Promise<void> {
    const source = joinBytes(this.#source, item.name);
    try {
      await this.#fetchFile(source, joinBytes(root, item.name), item);
    } catch (error) {
      if (!isFileError(error) || error.data['local'] === true || !GONE.has(error.code)) throw error;
      this.#transfer.tally.skip(textOf(source) ?? uriOf(source), 'vanished');
    }
  }

  async #fetchFile(source: string, path: string, item: TreeItem): Promise<void> {
    const { disk, remote, tally, overwrite } = this.#transfer;
    const target = await disk.createTarget(path);
    try {
      await receiveFile(remote, source, target, (bytes) => tally.moved(item.name, bytes));
    } catch (error) {
      await target.drop();
      throw error;
    }
    await target.commit({ ...item, overwrite });
    tally.done(item);
  }

  async #refuseTaken(root: string, { items }: Tree): Promise<void> {
    const { disk, remote } = this.#transfer;
    const missing = new Set<string>();
    for (const item of items) {
      remote.check();
      if (item.name === '' || missing.has(parentName(item.name))) {
        if (item.name !== '' && isFolder(item)) missing.add(item.name);
        continue;
      }
      const path = joinBytes(root, item.name);
      if (!(await disk.isTaken(path))) {
        if (isFolder(item)) missing.add(item.name);
      } else if (!isFolder(item)) {
        throw localError('EEXIST', shownBytes(path));
      }
    }
  }
}

const carried = (mode: number | undefined): number | undefined =>
  mode === undefined ? undefined : mode & CARRIED_MODE;

/** What becomes of an archive whose files are being changed. */
const MOVING: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'FILE_CHANGED', 'NOT_REGULAR_FILE', 'EISDIR']);
/** What a file is that has gone since it was listed. */
const GONE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'NOT_REGULAR_FILE']);
