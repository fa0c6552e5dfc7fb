/** Bytes of open files as base64, read piece by piece through buffers that are used again. */
import { Buffer } from 'node:buffer';
import { encodeBase64, limits } from '@exec-server/protocol';
import { errnoOf } from './errno.js';
import type { ReadableFile } from './readableFile.js';

/** Bytes encoded at a time: a multiple of 3, as every piece but the last must be, so that their texts join. A whole block fits. */
const PIECE_BYTES = 3 * 352 * 1024;
/** The same for files that do not say how much they have: those of `/proc` are short. */
const UNSIZED_PIECE_BYTES = 3 * 16 * 1024;

/** At least so many bytes, in pieces of a length that suits tables of `/proc`, which are read in whole entries. */
export function wholePieces(bytes: number): number {
  return Math.ceil(bytes / UNSIZED_PIECE_BYTES) * UNSIZED_PIECE_BYTES;
}

/** Large buffers kept for the next read: as many as threads of the host read at a time. */
const KEPT_BUFFERS = 4;
const kept: Buffer[] = [];

/** Why reading stopped: there was as much as was asked for, the data ended, or nothing is there now. */
type Stop = 'full' | 'end' | 'empty';

export interface BytesRead {
  readonly dataBase64: string;
  readonly bytes: number;
  readonly stop: Stop;
}

export interface BytesWanted {
  /** Byte position; null reads on where the descriptor is. */
  readonly from: number | null;
  readonly most: number;
  /** What the file is said to have: the read that finds nothing more is saved where that is true. */
  readonly size?: number | undefined;
}

/** Reads until the data ends or `most` is reached: some files give less at a time than they have. */
export async function readBytes(file: ReadableFile, { from, most, size }: BytesWanted): Promise<BytesRead> {
  // With one byte more than there is the end shows without another read.
  const expected = size === undefined ? most : size === 0 ? UNSIZED_PIECE_BYTES : Math.max(size - (from ?? 0), 0) + 1;
  const piece = Math.min(Math.ceil(Math.min(most, expected) / 3) * 3, PIECE_BYTES);
  return withBuffer(piece, async (buffer) => {
    let dataBase64 = '';
    let bytes = 0;
    for (;;) {
      const wanted = Math.min(buffer.length, most - bytes);
      const start = from === null ? null : from + bytes;
      const { filled, stop } = await fill(file, buffer.subarray(0, wanted), start, size ?? 0);
      dataBase64 += encodeBase64(buffer.subarray(0, filled));
      bytes += filled;
      if (stop !== 'full' || bytes >= most) return { dataBase64, bytes, stop };
    }
  });
}

async function fill(
  file: ReadableFile,
  buffer: Buffer,
  start: number | null,
  size: number,
): Promise<{ filled: number; stop: Stop }> {
  let filled = 0;
  while (filled < buffer.length) {
    const got = await readSome(file, buffer.subarray(filled), start === null ? null : start + filled);
    if (got === undefined) return { filled, stop: 'empty' };
    filled += got;
    const isAtSize = size > 0 && start !== null && filled < buffer.length && start + filled >= size;
    if (got === 0 || isAtSize) return { filled, stop: 'end' };
  }
  return { filled, stop: 'full' };
}

/** One read at the place of the descriptor, for pipes and the like: what is there at once. */
export async function readOnce(file: ReadableFile, most: number): Promise<BytesRead> {
  return withBuffer(Math.min(most, PIECE_BYTES), async (buffer) => {
    const got = await readSome(file, buffer, null);
    const stop = got === undefined ? 'empty' : got === 0 ? 'end' : 'full';
    return { dataBase64: encodeBase64(buffer.subarray(0, got ?? 0)), bytes: got ?? 0, stop };
  });
}

/** Undefined when nothing is there now. */
async function readSome(file: ReadableFile, buffer: Buffer, position: number | null): Promise<number | undefined> {
  try {
    return await file.read(buffer, position);
  } catch (error) {
    if (errnoOf(error) === 'EAGAIN') return undefined;
    throw error;
  }
}

async function withBuffer<T>(bytes: number, use: (buffer: Buffer) => Promise<T>): Promise<T> {
  if (bytes <= limits.SMALL_FILE_BYTES + 3) return use(Buffer.allocUnsafe(bytes));
  const whole = kept.pop() ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
  try {
    return await use(whole.subarray(0, bytes));
  } finally {
    if (kept.length < KEPT_BUFFERS) kept.push(whole);
  }
}
