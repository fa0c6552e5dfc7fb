/** Folders and trees. */
import { checkCount } from '../checkCount.js';
import { limits } from '@exec-server/protocol';
import type { CallOptions } from '../calls.js';
import type { ClientError } from '../errors.js';
import type { FileCalls } from './fileCalls.js';
import { FileError, isFileError } from './fileErrors.js';
import type { DirectoryEntryReply, WalkEntryReply } from './fileGuards.js';
import { type FileEntry, type WalkedEntry, type WalkOptions } from './fileOptions.js';
import { childPath, type FilePath, shownPath, wirePath } from './wirePath.js';

/** Entries of one answer: their JSON stays small beside the bounds of a message. */
const PAGE_ENTRIES = 5_000;

/** All pages of a folder, one behind the other; `path` is a URI. */
export async function* pagesOf(
  calls: FileCalls,
  path: string,
  options: CallOptions,
): AsyncGenerator<FileEntry[], void, undefined> {
  const folder = shownPath(path);
  const params = calls.extended ? { path, detail: true, limit: PAGE_ENTRIES } : { path };
  let cursor: string | undefined;
  do {
    const page = await calls.readDirectory(cursor === undefined ? params : { ...params, cursor }, options);
    yield page.entries.map((entry) => entryOf(folder, entry));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

function entryOf(folder: string, { fileName, path, isDirectory, isFile, ...detail }: DirectoryEntryReply): FileEntry {
  return {
    name: fileName,
    path: path === undefined ? childPath(folder, fileName) : shownPath(path),
    ...detail,
    kind: detail.kind ?? (isDirectory ? 'directory' : isFile ? 'file' : 'other'),
  };
}

interface Folder {
  readonly path: FilePath;
  readonly depth: number;
}

/** Everything below a folder, each folder before what is in it; `root` is a URI. */
export function walkTree(
  calls: FileCalls,
  root: string,
  options: WalkOptions,
): AsyncGenerator<WalkedEntry, void, undefined> {
  const { maxDepth } = options;
  if (maxDepth !== Number.POSITIVE_INFINITY) checkCount('maxDepth', maxDepth);
  return calls.extended ? walkFolders(calls, root, options) : walkForeign(calls, root, options);
}

async function* walkFolders(
  calls: FileCalls,
  root: string,
  options: WalkOptions,
): AsyncGenerator<WalkedEntry, void, undefined> {
  const entered = new Set<string>();
  const waiting: Folder[] = [{ path: root, depth: 0 }];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const below: Folder[] = [];
    try {
      yield* walkFolder(calls, folder, options, entered, below);
    } catch (error) {
      if (folder.depth === 0 || !isFileError(error)) throw error;
      // One that does not exist was removed since it was listed.
      if (error.code !== 'ENOENT') report(error, options.onError);
    }
    for (const next of below.toReversed()) waiting.push(next);
  }
}

/** One folder; puts the folders in it into `below`. */
async function* walkFolder(
  calls: FileCalls,
  { path, depth }: Folder,
  { maxDepth = Number.POSITIVE_INFINITY, followSymlinks = false, timeoutMs, signal }: WalkOptions,
  entered: Set<string>,
  below: Folder[],
): AsyncGenerator<WalkedEntry, void, undefined> {
  const call = { timeoutMs, signal };
  // Links alone make circles.
  if (followSymlinks && !(await isNew(calls, path, entered, call))) return;
  for await (const page of pagesOf(calls, wirePath(path), call)) {
    for (const entry of page) {
      yield { ...entry, depth };
      if (depth >= maxDepth) continue;
      const isLink = followSymlinks && entry.kind === 'symlink';
      const isFolder = entry.kind === 'directory' || (isLink && (await leadsToFolder(calls, entry, call)));
      if (isFolder) below.push({ path: entry.path, depth: depth + 1 });
    }
  }
}

/** Whether a folder is entered for the first time, by whichever path. */
async function isNew(calls: FileCalls, path: FilePath, entered: Set<string>, call: CallOptions): Promise<boolean> {
  const wire = wirePath(path);
  const { identity = wire } = await calls.getMetadata({ path: wire, detail: true }, call);
  if (entered.has(identity)) return false;
  entered.add(identity);
  return true;
}

/** False for a link that dangles or leads in a circle. */
async function leadsToFolder(calls: FileCalls, link: FileEntry, call: CallOptions): Promise<boolean> {
  try {
    return (await calls.getMetadata({ path: wirePath(link.path) }, call)).isDirectory;
  } catch (error) {
    if (isFileError(error)) return false;
    throw error;
  }
}

async function* walkForeign(
  calls: FileCalls,
  root: string,
  { maxDepth = limits.MAX_WALK_DEPTH, followSymlinks = false, onError, ...call }: WalkOptions,
): AsyncGenerator<WalkedEntry, void, undefined> {
  const params = {
    path: root,
    options: {
      maxDepth: Math.min(maxDepth, limits.MAX_WALK_DEPTH),
      maxDirectories: limits.MAX_WALK_DIRECTORIES,
      maxEntries: limits.MAX_WALK_ENTRIES,
      followDirectorySymlinks: followSymlinks,
    },
  };
  const { entries, errors, truncated } = await calls.walk(params, call);
  for (const entry of entries) yield walkedOf(shownPath(root), entry);
  for (const { path, message } of errors)
    report(new FileError('FILE_FAILED', message, { path: shownPath(path) }), onError);
  if (truncated)
    throw calls.notSupported(
      `a walk over more than ${limits.MAX_WALK_ENTRIES} entries or ${limits.MAX_WALK_DIRECTORIES} folders`,
    );
}

function report(error: ClientError, onError: ((error: ClientError) => void) | undefined): void {
  if (onError === undefined) throw error;
  onError(error);
}

function walkedOf(root: string, { path, ...detail }: WalkEntryReply): WalkedEntry {
  const shown = shownPath(path);
  const inside = shown.slice(root === '/' ? 1 : root.length + 1);
  return { ...detail, name: shown.slice(shown.lastIndexOf('/') + 1), path: shown, depth: inside.split('/').length - 1 };
}
