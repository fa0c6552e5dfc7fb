/** `fs/readFile`: a whole file, a range of one, or what a FIFO or device has at once. */
import type { BigIntStats } from 'node:fs';
import { limits, type ParamsOf, type ResultOf, WireError, withPayload } from '@exec-server/protocol';
import { type BytePath, pathText } from '../paths.js';
import { identityOf } from './detail.js';
import { errnoError } from './errno.js';
import { type BytesRead, readBytes, wholePieces } from './fileBytes.js';
import { type ReadAccess, withFile } from './openRead.js';
import type { ReadableFile } from './readableFile.js';

export interface Range {
  readonly offset: number;
  readonly maxBytes: number;
}

type Result = ResultOf<'fs/readFile'>;

/** Read of a FIFO or device at most, unless the caller says how much. */
const STREAM_BYTES = 1024 * 1024;

/** Undefined for a whole file. Throws WireError `invalidArgument`. */
export function rangeOf({ offset, maxBytes }: ParamsOf<'fs/readFile'>): Range | undefined {
  const [from, most] = [offset ?? undefined, maxBytes ?? undefined];
  if (from === undefined && most === undefined) return undefined;
  if (most !== undefined && most > limits.MAX_READ_FILE_BYTES) {
    throw new WireError('invalidArgument', `maxBytes must be at most ${limits.MAX_READ_FILE_BYTES}`, {
      field: 'maxBytes',
      limitBytes: limits.MAX_READ_FILE_BYTES,
    });
  }
  checkReadOffset(from ?? 0);
  return { offset: from ?? 0, maxBytes: most ?? limits.MAX_READ_FILE_BYTES };
}

/** Throws EINVAL for what no file has. */
export function checkReadOffset(offset: number): void {
  if (!Number.isSafeInteger(offset)) throw errnoError('EINVAL');
}

/** With `small`: undefined for an answer of more than SMALL_FILE_BYTES. */
export function readFileAt(
  path: BytePath,
  access: ReadAccess,
  range: Range | undefined,
  small: boolean,
): Promise<Result | undefined> {
  return withFile(path, access, async ({ file, stats }): Promise<Result | undefined> => {
    if (small && expectedBytes(stats, range) > limits.SMALL_FILE_BYTES) return undefined;
    if (!stats.isFile()) return readStream(file, stats, range);
    if (range === undefined) return readWhole(path, file, Number(stats.size), small);
    const read = await readRange(file, {
      offset: range.offset,
      most: range.maxBytes,
      size: Number(stats.size),
    });
    const { dataBase64, size, eof } = read;
    return withPayload({ dataBase64, size, eof, identity: identityOf(stats) }, 'dataBase64');
  });
}

function expectedBytes(stats: BigIntStats, range: Range | undefined): number {
  const size = Number(stats.size);
  if (!stats.isFile()) return range?.maxBytes ?? STREAM_BYTES;
  if (range === undefined) return size;
  // A file that says it is empty may have any number of bytes.
  return size === 0 ? range.maxBytes : Math.min(range.maxBytes, Math.max(size - range.offset, 0));
}

async function readWhole(
  path: BytePath,
  file: ReadableFile,
  size: number,
  small: boolean,
): Promise<Result | undefined> {
  if (size > limits.MAX_READ_FILE_BYTES) throw tooLarge(path, size);
  const most = small ? limits.SMALL_FILE_BYTES : limits.MAX_READ_FILE_BYTES;
  // One byte more at least tells a file that has more than it says.
  const { dataBase64, bytes, stop } = await readBytes(file, { from: 0, most: wholePieces(most + 1), size });
  if (bytes > most) {
    if (small) return undefined;
    throw tooLarge(path, bytes);
  }
  if (stop === 'empty') throw errnoError('EAGAIN', path);
  return withPayload({ dataBase64 }, 'dataBase64');
}

function tooLarge(path: BytePath, size: number): WireError {
  const limit = limits.MAX_READ_FILE_BYTES;
  return new WireError('fileTooLarge', `file is too large to read: limit is ${limit} bytes`, {
    path: pathText(path),
    limitBytes: limit,
    size,
  });
}

async function readStream(file: ReadableFile, stats: BigIntStats, range: Range | undefined): Promise<Result> {
  const offset = range?.offset ?? 0;
  const wanted = { from: offset === 0 ? null : offset, most: range?.maxBytes ?? STREAM_BYTES };
  const { dataBase64, stop } = await readBytes(file, wanted);
  return { dataBase64, eof: stop === 'end', ...(range === undefined ? {} : { identity: identityOf(stats) }) };
}

export interface RangeRead extends BytesRead {
  /** Of the file at this read. */
  readonly size: number;
  /** The range reached its end. */
  readonly eof: boolean;
}

/** A range of a regular file that may grow or shrink meanwhile. */
export async function readRange(
  file: ReadableFile,
  { offset, most, size: said }: { offset: number; most: number; size?: number },
): Promise<RangeRead> {
  const read = await readBytes(file, { from: offset, most, size: said });
  const end = offset + read.bytes;
  // It ended right there, whatever it is said to have.
  if (read.stop === 'end' && read.bytes > 0) return { ...read, size: end, eof: true };
  const { size } = await file.stat();
  if (read.stop === 'end') return { ...read, size: Math.min(Number(size), offset), eof: true };
  return { ...read, size: Math.max(Number(size), end), eof: size > 0n && end >= size };
}
