/** A file of the local disk that is written beside its target and put in its place in the end. */
import { constants } from 'node:fs';
import { access, type FileHandle, link, lstat, open, rename, unlink } from 'node:fs/promises';
import { joinBytes, parentName, shownBytes } from '../transfer/bytePath.js';
import type { LocalTarget, PlacedFile } from '../transfer/localDisk.js';
import { localError } from '../transfer/transferErrors.js';
import { native, onDisk } from './localErrors.js';
import { secondsOf } from './times.js';

class TemporaryFile implements LocalTarget {
  readonly #path: string;
  readonly #temporary: string;
  readonly #handle: FileHandle;

  constructor(path: string, temporary: string, handle: FileHandle) {
    this.#path = path;
    this.#temporary = temporary;
    this.#handle = handle;
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const from = at;
      const written = await onDisk(this.#path, () =>
        this.#handle.write(bytes, from, bytes.length - from, offset + from),
      );
      at += written.bytesWritten;
    }
  }

  /** Puts it in the place of its target. Throws FileError, EEXIST among them; it is gone then. */
  async commit({ mode, modifiedAtMs, overwrite }: PlacedFile): Promise<void> {
    try {
      await onDisk(this.#path, async () => {
        await this.#handle.chmod(mode ?? 0o666 & ~process.umask());
        await this.#handle.utimes(secondsOf(modifiedAtMs), secondsOf(modifiedAtMs));
        await this.#handle.close();
      });
      if (overwrite) await onDisk(this.#path, () => rename(native(this.#temporary), native(this.#path)));
      else await this.#place();
    } catch (error) {
      await this.drop();
      throw error;
    }
  }

  /** Nothing of it stays. Never rejects. */
  async drop(): Promise<void> {
    // Closed before, or failing to: the file is removed either way.
    await this.#handle.close().catch(() => undefined);
    await unlink(native(this.#temporary)).catch(() => undefined);
  }

  /** A rename would replace what came there meanwhile; a second name of the file does not. */
  async #place(): Promise<void> {
    const done = await onDisk(this.#path, async () => {
      await link(native(this.#temporary), native(this.#path));
      return true;
    }, ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);
    if (done === true) {
      await onDisk(this.#path, () => unlink(native(this.#temporary)));
      return;
    }
    // A file system without second names: the look and the rename are two steps there.
    if ((await onDisk(this.#path, () => lstat(native(this.#path)), ['ENOENT'])) !== undefined) {
      throw localError('EEXIST', shownBytes(this.#path));
    }
    await onDisk(this.#path, () => rename(native(this.#temporary), native(this.#path)));
  }
}

/** Throws FileError with the path of the target, also where what is there may not be replaced by a file. */
export async function createTarget(path: string): Promise<LocalTarget> {
  await checkPlace(path);
  const temporary = joinBytes(parentName(path), `.exec-server-${crypto.randomUUID()}.tmp`);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await onDisk(path, () => open(native(temporary), flags, 0o600));
  return new TemporaryFile(path, temporary, handle);
}

/** A rename would replace devices and FIFOs, and files that this user may not write to. */
async function checkPlace(path: string): Promise<void> {
  const found = await onDisk(path, () => lstat(native(path)), ['ENOENT']);
  if (found === undefined || found.isSymbolicLink()) return;
  if (found.isDirectory()) throw localError('EISDIR', shownBytes(path));
  if (!found.isFile()) throw localError('NOT_REGULAR_FILE', shownBytes(path));
  await onDisk(path, () => access(native(path), constants.W_OK));
}
