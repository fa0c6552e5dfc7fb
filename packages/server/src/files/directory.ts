/** `fs/readDirectory`: the entries of one folder, whole or in pages. */
import { Buffer } from 'node:buffer';
import { lstat, stat } from 'node:fs/promises';
import { type DirectoryEntry, limits, type ParamsOf, type ResultOf, WireError } from '@exec-server/protocol';
import { type BytePath, isUtf8, joinPath, nativeBytes, pathText, pathUri } from '../paths.js';
import { inBatches } from './batches.js';
import { type EntryDetail, entryDetailOf, linkTextOf } from './detail.js';
import { errnoOf, onPath } from './errno.js';
import { type FolderName, type NamesPage, namesIn, sortedNames } from './names.js';
import { byName } from './smallest.js';

export interface Page {
  /** Bytes of the last name of the page before; empty for the first page. */
  readonly after: string;
  readonly limit: number;
}

export interface Listing {
  readonly detail: boolean;
  readonly page: Page | undefined;
  /** Give up, with undefined, when it is no small folder. */
  readonly small: boolean;
  /** Called between batches of entries; throws to give up. */
  readonly checkpoint: () => void;
}

type Result = ResultOf<'fs/readDirectory'>;

/** Entries of a folder that is listed side by side with others. */
const SMALL_ENTRIES = 1024;
/** Room for the ends of the answer. */
const RESULT_BYTES = limits.MAX_REPLY_BYTES - 4096;

/** The page asked for; undefined for the whole folder. Throws WireError `invalidArgument`. */
export function pageOf(params: Pick<ParamsOf<'fs/readDirectory'>, 'limit' | 'cursor'>): Page | undefined {
  const [limit, cursor] = [params.limit ?? undefined, params.cursor ?? undefined];
  if (limit === undefined && cursor === undefined) return undefined;
  if (limit !== undefined && (limit < 1 || limit > limits.MAX_DIRECTORY_ENTRIES)) {
    throw new WireError('invalidArgument', `limit must be between 1 and ${limits.MAX_DIRECTORY_ENTRIES}`, {
      field: 'limit',
      limit: limits.MAX_DIRECTORY_ENTRIES,
    });
  }
  return {
    after: cursor === undefined ? '' : decodeCursor(cursor),
    limit: limit ?? limits.MAX_DIRECTORY_ENTRIES,
  };
}

export function listDirectory(path: BytePath, listing: Listing): Promise<Result | undefined> {
  return onPath(path, async () => {
    const names = await namesOf(path, listing);
    if (names === undefined) return undefined;
    const { detail, checkpoint } = listing;
    const entries: DirectoryEntry[] = [];
    let bytes = 0;
    let done = 0;
    for await (const batch of inBatches(names.items, checkpoint, (name) => entryOf(path, name, detail))) {
      for (const entry of batch) {
        bytes += entry === undefined ? 0 : Buffer.byteLength(JSON.stringify(entry)) + 1;
        if (bytes > RESULT_BYTES) {
          if (listing.page === undefined) throw tooLarge(path);
          return { entries, nextCursor: cursorBehind(names.items, done) };
        }
        if (entry !== undefined) entries.push(entry);
        done += 1;
      }
    }
    return { entries, ...(names.more ? { nextCursor: cursorBehind(names.items, done) } : {}) };
  });
}

async function namesOf(path: BytePath, listing: Listing): Promise<NamesPage | undefined> {
  const { page, small, checkpoint } = listing;
  if (page !== undefined) {
    if (small && page.limit > SMALL_ENTRIES) return undefined;
    return sortedNames(path, { ...page, scanAtMost: small ? SMALL_ENTRIES : Number.POSITIVE_INFINITY, checkpoint });
  }
  const items: FolderName[] = [];
  for await (const batch of namesIn(path, checkpoint)) {
    items.push(...batch);
    if (small && items.length > SMALL_ENTRIES) return undefined;
    if (items.length > limits.MAX_DIRECTORY_ENTRIES) throw tooMany(path);
  }
  return { items: listing.detail ? items.sort(byName) : items, more: false };
}

function tooLarge(path: BytePath): WireError {
  return new WireError('replyTooLarge', 'the names in the folder do not fit one answer; ask for it in pages', {
    limitBytes: limits.MAX_REPLY_BYTES,
    path: pathText(path),
  });
}

function tooMany(path: BytePath): WireError {
  const limit = limits.MAX_DIRECTORY_ENTRIES;
  return new WireError('replyTooLarge', `the folder has more than ${limit} entries; ask for it in pages`, {
    limit,
    path: pathText(path),
  });
}

/** Undefined for what is left out: it has vanished, or is a link that leads nowhere, and no detail was asked for. */
function entryOf(
  folder: BytePath,
  { name, kind }: FolderName,
  detail: boolean,
): DirectoryEntry | undefined | Promise<DirectoryEntry | undefined> {
  const entry = (target: { isDirectory: boolean; isFile: boolean }, more?: EntryDetail): DirectoryEntry => ({
    fileName: pathText(name),
    ...target,
    ...(isUtf8(name) ? {} : { path: pathUri(joinPath(folder, name)) }),
    ...more,
  });
  const own = { isDirectory: kind === 'directory', isFile: kind === 'file' };
  const path = joinPath(folder, name);
  if (!detail) {
    if (kind !== 'symlink') return entry(own);
    return targetOf(path).then((target) => (target === undefined ? undefined : entry(target)));
  }
  return (async () => {
    const target = kind === 'symlink' ? await targetOf(path) : own;
    const more = await detailOfEntry(path, kind);
    return more === undefined ? undefined : entry(target ?? own, more);
  })();
}

/** What a link leads to; undefined when that cannot be said. */
async function targetOf(path: BytePath): Promise<{ isDirectory: boolean; isFile: boolean } | undefined> {
  try {
    const stats = await stat(nativeBytes(path));
    return { isDirectory: stats.isDirectory(), isFile: stats.isFile() };
  } catch (error) {
    // It dangles, loops, or leads where the server may not look.
    if (errnoOf(error) !== undefined) return undefined;
    throw error;
  }
}

/** Undefined when the entry has vanished. */
async function detailOfEntry(path: BytePath, kind: FolderName['kind']): Promise<EntryDetail | undefined> {
  try {
    const stats = await lstat(nativeBytes(path), { bigint: true });
    return entryDetailOf(stats, stats.isSymbolicLink() ? await linkTextOf(path) : undefined);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return undefined;
    // A folder whose names may be read and whose entries may not: the kind is what is known.
    if (errno === 'EACCES' || errno === 'EPERM') return { kind };
    throw error;
  }
}

/** Of the first `done` names, at least one. */
function cursorBehind(names: readonly FolderName[], done: number): string {
  return encodeCursor(names[done - 1]?.name ?? '');
}

function encodeCursor(name: string): string {
  return Buffer.from(name, 'latin1').toString('base64url');
}

function decodeCursor(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString('latin1');
  if (name !== '' && encodeCursor(name) === cursor) return name;
  throw new WireError('invalidArgument', 'cursor is not one this server gave', { field: 'cursor' });
}
