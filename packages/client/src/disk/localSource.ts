/** A file of the local disk that is read. */
import { Buffer } from 'node:buffer';
import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import type { LocalSource } from '../transfer/localDisk.js';
import { native, onDisk } from './localErrors.js';

class OpenFile implements LocalSource {
  readonly path: string;
  readonly size: number;
  readonly mode: number;
  readonly modifiedAtMs: number;
  readonly #handle: FileHandle;
  /** Taken again for each read: a large file leaves no garbage of its size. */
  #buffer = Buffer.alloc(0);

  constructor(path: string, handle: FileHandle, stats: { size: number; mode: number; mtimeMs: number }) {
    this.path = path;
    this.size = stats.size;
    this.mode = stats.mode;
    this.modifiedAtMs = Math.floor(stats.mtimeMs);
    this.#handle = handle;
  }

  /** Fewer than `length` bytes only at the end of the file. */
  async read(offset: number, length: number): Promise<Uint8Array> {
    if (this.#buffer.length < length) this.#buffer = Buffer.allocUnsafeSlow(length);
    const bytes = this.#buffer;
    let filled = 0;
    while (filled < length) {
      const at = filled;
      const { bytesRead } = await onDisk(this.path, () => this.#handle.read(bytes, at, length - at, offset + at));
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  }

  /** Never rejects. */
  async close(): Promise<void> {
    // It was only read: nothing is lost where closing fails.
    await this.#handle.close().catch(() => undefined);
  }
}

/** Throws FileError, ENOENT among them; undefined for what is no regular file. */
export async function openSource(path: string, followSymlinks: boolean): Promise<LocalSource | undefined> {
  // Without O_NONBLOCK the opening of a FIFO that took the place of the file would wait for a writer.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (followSymlinks ? 0 : constants.O_NOFOLLOW);
  const handle = await onDisk(path, () => open(native(path), flags), ['ELOOP', 'ENXIO']);
  if (handle === undefined) return undefined;
  const stats = await onDisk(path, () => handle.stat());
  if (stats.isFile()) return new OpenFile(path, handle, stats);
  await handle.close();
  return undefined;
}

/** The file a link leads to, so that the link stays when the file is replaced; the path itself where it leads to none. */
export async function behindLink(path: string): Promise<string> {
  const real = await onDisk(path, () => realpath(native(path), { encoding: 'buffer' }), ['ENOENT', 'ENOTDIR']);
  return real === undefined ? path : real.toString('latin1');
}
