/** Bytes into open files: all of them, and from one file to another with its holes. */
import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import type { BytePath } from '../paths.js';
import { errnoError, errnoOf, onPath } from './errno.js';

const BLOCK_BYTES = 256 * 1024;
/** What `blocks` counts in. */
const SECTOR_BYTES = 512;

/** `position` null: where the file is now, as for what has no positions. Throws the error of the host. */
export async function writeAll(file: FileHandle, bytes: Uint8Array, position: number | null = null): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(
      bytes,
      done,
      bytes.length - done,
      position === null ? null : position + done,
    );
    // Nothing was taken and no error said: it takes no more.
    if (bytesWritten === 0) throw errnoError('EIO');
    done += bytesWritten;
  }
}

export interface Content {
  readonly file: FileHandle;
  readonly stats: Stats;
  /** Named by errors of reading it. */
  readonly path: BytePath;
}

/**
 * All of one file into another, from the beginning of both. Blocks of zeros of a file with holes become holes.
 * `check` is called before each block, and stops the copy by throwing.
 */
export async function copyContent(source: Content, target: FileHandle, check: () => void = () => {}): Promise<void> {
  const holes = hasHoles(source.stats) && (await target.stat()).isFile();
  const block = Buffer.allocUnsafe(BLOCK_BYTES);
  let position = 0;
  for (;;) {
    check();
    const { bytesRead } = await onPath(source.path, () => source.file.read(block, 0, BLOCK_BYTES, position));
    if (bytesRead === 0) break;
    const bytes = block.subarray(0, bytesRead);
    if (!holes) await writeAll(target, bytes);
    else if (!isZero(bytes)) await writeAll(target, bytes, position);
    position += bytesRead;
  }
  if (holes) await target.truncate(position);
}

/** Brings what was written to the disk; what has none is fine. */
export async function syncFile(file: FileHandle): Promise<void> {
  try {
    await file.sync();
  } catch (error) {
    if (errnoOf(error) !== 'EINVAL') throw error;
  }
}

function hasHoles({ blocks, size }: Stats): boolean {
  return blocks * SECTOR_BYTES < size;
}

const zeros = Buffer.alloc(BLOCK_BYTES);

function isZero(bytes: Buffer): boolean {
  return bytes.equals(zeros.subarray(0, bytes.length));
}
