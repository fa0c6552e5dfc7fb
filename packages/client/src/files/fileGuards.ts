/** Checks of the answers of the file methods; see `guards.ts`. Pure. */
import { decodeBase64, type FileKind, type InPlaceReason } from '@exec-server/protocol';
import { absent, isCount, isObject, isText, type Members } from '../shapes.js';

export interface ReadFileReply {
  readonly bytes: Uint8Array;
  /** Of a range alone: size and identity of the file at this read, and whether its end was reached. */
  readonly size?: number;
  readonly eof?: boolean;
  readonly identity?: string;
}

/** How a write took place; empty for an atomic one, and on foreign servers. */
export interface WrittenReply {
  /** It was made in place although it was to be atomic, for this reason. */
  readonly inPlace?: InPlaceReason;
}

export interface OpenReply {
  readonly identity?: string;
  readonly version?: string;
  readonly size?: number;
  readonly mode?: number;
  readonly stagedBytes?: number;
  /** The stage was committed before; there is no handle. */
  readonly committed?: WrittenReply;
}

export interface BlockReply {
  readonly bytes: Uint8Array;
  readonly eof: boolean;
  readonly size?: number;
}

export interface CloseReply extends WrittenReply {
  /** Of an archive: entries made, and bytes of their files. */
  readonly entries?: number;
  readonly bytes?: number;
}

export interface MetadataReply {
  readonly isDirectory: boolean;
  readonly isFile: boolean;
  readonly isSymlink: boolean;
  readonly size: number;
  readonly createdAtMs: number;
  readonly modifiedAtMs: number;
  /** With `detail`. */
  readonly kind?: FileKind;
  readonly mode?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly links?: number;
  readonly allocatedBytes?: number;
  readonly identity?: string;
  readonly version?: string;
  readonly linkTarget?: string;
}

export interface DirectoryEntryReply {
  readonly fileName: string;
  readonly isDirectory: boolean;
  readonly isFile: boolean;
  readonly path?: string;
  /** With `detail`. */
  readonly kind?: FileKind;
  readonly size?: number;
  readonly mode?: number;
  readonly modifiedAtMs?: number;
  readonly linkTarget?: string;
}

export interface ReadDirectoryReply {
  readonly entries: readonly DirectoryEntryReply[];
  readonly nextCursor?: string;
}

export interface WalkEntryReply {
  readonly path: string;
  readonly kind: FileKind;
  readonly size?: number;
  readonly mode?: number;
  readonly modifiedAtMs?: number;
  readonly linkTarget?: string;
}

export interface WalkReply {
  readonly entries: readonly WalkEntryReply[];
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  readonly truncated: boolean;
}

/** How something differs from what was told of it before. */
export interface FileChange {
  /** `modified`: content, permissions or times; a file that was replaced as well. */
  readonly kind: 'created' | 'modified' | 'removed';
  /** Absolute, as text where it is UTF-8, else as `file:` URI. */
  readonly path: string;
  /** Whether it is, or was, a folder. */
  readonly isDirectory: boolean;
}

export interface ChangedNotice {
  readonly watchId: string;
  readonly changes: readonly FileChange[];
  readonly overflow: boolean;
  readonly ended?: string;
}

export function readFileReply(value: unknown): ReadFileReply | undefined {
  if (!isObject(value)) return undefined;
  const bytes = bytesOf(value['dataBase64']);
  if (bytes === undefined) return undefined;
  const { eof } = value;
  return {
    bytes,
    ...counts(value, 'size'),
    ...texts(value, 'identity'),
    ...(typeof eof === 'boolean' ? { eof } : {}),
  };
}

export function writtenReply(value: unknown): WrittenReply | undefined {
  return isObject(value) ? writtenOf(value) : undefined;
}

export function openReply(value: unknown): OpenReply | undefined {
  if (!isObject(value) || !isText(value['handleId'])) return undefined;
  const { committed } = value;
  const before = absent(committed) ? undefined : writtenReply(committed);
  if (!absent(committed) && before === undefined) return undefined;
  return {
    ...texts(value, 'identity', 'version'),
    ...counts(value, 'size', 'mode', 'stagedBytes'),
    ...(before === undefined ? {} : { committed: before }),
  };
}

export function blockReply(value: unknown): BlockReply | undefined {
  if (!isObject(value) || typeof value['eof'] !== 'boolean') return undefined;
  const bytes = bytesOf(value['chunk']);
  return bytes === undefined ? undefined : { bytes, eof: value['eof'], ...counts(value, 'size') };
}

export function closeReply(value: unknown): CloseReply | undefined {
  return isObject(value) ? { ...writtenOf(value), ...counts(value, 'entries', 'bytes') } : undefined;
}

export function copyReply(value: unknown): { readonly skipped?: number } | undefined {
  return isObject(value) ? counts(value, 'skipped') : undefined;
}

export function moveReply(value: unknown): { readonly copied: boolean } | undefined {
  return isObject(value) ? { copied: value['copied'] === true } : undefined;
}

export function metadataReply(value: unknown): MetadataReply | undefined {
  if (!isObject(value)) return undefined;
  const { isDirectory, isFile, isSymlink, size, createdAtMs, modifiedAtMs } = value;
  if (typeof isDirectory !== 'boolean' || typeof isFile !== 'boolean' || typeof isSymlink !== 'boolean') {
    return undefined;
  }
  if (!isCount(size) || typeof createdAtMs !== 'number' || typeof modifiedAtMs !== 'number') return undefined;
  return {
    isDirectory,
    isFile,
    isSymlink,
    size,
    createdAtMs,
    modifiedAtMs,
    ...kindOf(value),
    ...counts(value, 'mode', 'uid', 'gid', 'links', 'allocatedBytes'),
    ...texts(value, 'identity', 'version', 'linkTarget'),
  };
}

export function pathReply(value: unknown): string | undefined {
  return isObject(value) && isText(value['path']) ? value['path'] : undefined;
}

export function readDirectoryReply(value: unknown): ReadDirectoryReply | undefined {
  if (!isObject(value)) return undefined;
  const entries = all(value['entries'], directoryEntry);
  return entries === undefined ? undefined : { entries, ...texts(value, 'nextCursor') };
}

export function walkReply(value: unknown): WalkReply | undefined {
  if (!isObject(value) || typeof value['truncated'] !== 'boolean') return undefined;
  const entries = all(value['entries'], walkEntry);
  const errors = all(value['errors'], walkError);
  return entries === undefined || errors === undefined ? undefined : { entries, errors, truncated: value['truncated'] };
}

export function changedNotice(value: unknown): ChangedNotice | undefined {
  if (!isObject(value) || !isText(value['watchId'])) return undefined;
  const changes = all(value['changes'], fileChange);
  if (changes === undefined) return undefined;
  return { watchId: value['watchId'], changes, overflow: value['overflow'] === true, ...texts(value, 'ended') };
}

function directoryEntry(value: unknown): DirectoryEntryReply | undefined {
  if (!isObject(value)) return undefined;
  const { fileName, isDirectory, isFile } = value;
  if (!isText(fileName) || typeof isDirectory !== 'boolean' || typeof isFile !== 'boolean') return undefined;
  return { fileName, isDirectory, isFile, ...texts(value, 'path'), ...details(value) };
}

function walkEntry(value: unknown): WalkEntryReply | undefined {
  if (!isObject(value) || !isText(value['path']) || !isKind(value['kind'])) return undefined;
  return { path: value['path'], ...details(value), kind: value['kind'] };
}

function walkError(value: unknown): WalkReply['errors'][number] | undefined {
  if (!isObject(value) || !isText(value['path']) || !isText(value['message'])) return undefined;
  return { path: value['path'], message: value['message'] };
}

function fileChange(value: unknown): FileChange | undefined {
  if (!isObject(value)) return undefined;
  const { kind, path, isDirectory } = value;
  if (kind !== 'created' && kind !== 'modified' && kind !== 'removed') return undefined;
  return isText(path) && typeof isDirectory === 'boolean' ? { kind, path, isDirectory } : undefined;
}

function bytesOf(value: unknown): Uint8Array | undefined {
  const decoded = isText(value) ? decodeBase64(value) : undefined;
  return decoded?.ok === true ? decoded.bytes : undefined;
}

const details = (
  value: Members,
): Pick<DirectoryEntryReply, 'kind' | 'size' | 'mode' | 'modifiedAtMs' | 'linkTarget'> => ({
  ...kindOf(value),
  ...counts(value, 'size', 'mode'),
  ...texts(value, 'linkTarget'),
  ...(typeof value['modifiedAtMs'] === 'number' ? { modifiedAtMs: value['modifiedAtMs'] } : {}),
});

const kinds: Readonly<Record<FileKind, true>> = {
  file: true,
  directory: true,
  symlink: true,
  fifo: true,
  socket: true,
  characterDevice: true,
  blockDevice: true,
};

const isKind = (value: unknown): value is FileKind => isText(value) && Object.hasOwn(kinds, value);

/** A kind of a later version is left out. */
const kindOf = ({ kind }: Members): { readonly kind?: FileKind } => (isKind(kind) ? { kind } : {});

const inPlaceReasons: Readonly<Record<InPlaceReason, true>> = {
  hardLinks: true,
  mount: true,
  directoryNotWritable: true,
  owner: true,
  notRegularFile: true,
  asked: true,
};

const writtenOf = ({ inPlace }: Members): WrittenReply =>
  isText(inPlace) && Object.hasOwn(inPlaceReasons, inPlace) ? { inPlace: inPlace as InPlaceReason } : {};

/** Those of the named members that are counts. */
function counts<K extends string>(value: Members, ...names: readonly K[]): { readonly [N in K]?: number } {
  return picked(value, names, isCount);
}

function texts<K extends string>(value: Members, ...names: readonly K[]): { readonly [N in K]?: string } {
  return picked(value, names, isText);
}

function picked<K extends string, T>(
  value: Members,
  names: readonly K[],
  is: (member: unknown) => member is T,
): { readonly [N in K]?: T } {
  const found: { [N in K]?: T } = {};
  for (const name of names) {
    const member = value[name];
    if (is(member)) found[name] = member;
  }
  return found;
}

/** Every element converted; undefined when it is no array, or one is not what it should be. */
function all<T>(values: unknown, convert: (value: unknown) => T | undefined): T[] | undefined {
  if (!Array.isArray(values)) return undefined;
  const converted: T[] = [];
  for (const value of values as readonly unknown[]) {
    const result = convert(value);
    if (result === undefined) return undefined;
    converted.push(result);
  }
  return converted;
}
