/** Opens files for reading: never waits for the other side of a FIFO or a modem, and gives only what may be read. */
import { type BigIntStats, constants } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type ParamsOf, WireError } from '@exec-server/protocol';
import { type BytePath, nativeBytes, pathText } from '../paths.js';
import { kindOf } from './detail.js';
import { errnoOf, onPath } from './errno.js';
import { refuseLinks } from './noFollow.js';
import { ReadableFile } from './readableFile.js';

const { O_RDONLY, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants;

export interface ReadAccess {
  readonly followSymlinks: boolean;
  /** FIFOs and devices, too; folders never. */
  readonly anyKind: boolean;
}

export interface OpenedFile {
  readonly file: ReadableFile;
  /** Of the descriptor, right after it was opened. */
  readonly stats: BigIntStats;
}

export function readAccess(params: Pick<ParamsOf<'fs/readFile'>, 'followSymlinks' | 'anyKind'>): ReadAccess {
  return { followSymlinks: params.followSymlinks ?? true, anyKind: params.anyKind ?? false };
}

/** Whoever gets the file closes it. Throws WireError, `notRegularFile` among others. */
export async function openForReading(path: BytePath, access: ReadAccess): Promise<OpenedFile> {
  if (!access.followSymlinks) await refuseLinks(path);
  const file = await onPath(path, () => openUnblocked(path, access));
  try {
    const stats = await onPath(path, () => file.stat());
    refuseKind(path, stats, access);
    return { file, stats };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Opens, uses and closes. */
export async function withFile<T>(
  path: BytePath,
  access: ReadAccess,
  use: (opened: OpenedFile) => Promise<T>,
): Promise<T> {
  const opened = await openForReading(path, access);
  try {
    return await onPath(path, () => use(opened));
  } finally {
    await opened.file.close();
  }
}

async function openUnblocked(path: BytePath, access: ReadAccess): Promise<ReadableFile> {
  const flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (access.followSymlinks ? 0 : O_NOFOLLOW);
  try {
    return await ReadableFile.open(path, flags);
  } catch (error) {
    // A socket cannot be opened, nor a device nothing stands behind: what is said is what they are.
    const errno = errnoOf(error);
    if (errno === 'ENXIO' || errno === 'ENODEV') {
      refuseKind(path, await stat(nativeBytes(path), { bigint: true }), access);
    }
    throw error;
  }
}

function refuseKind(path: BytePath, stats: BigIntStats, { anyKind, followSymlinks }: ReadAccess): void {
  if (stats.isFile() || (anyKind && !stats.isDirectory())) return;
  const name = followSymlinks ? `path \`${pathText(path)}\` is not a file` : 'path is not a regular file';
  throw new WireError('notRegularFile', name, {
    path: pathText(path),
    kind: kindOf(stats),
  });
}
