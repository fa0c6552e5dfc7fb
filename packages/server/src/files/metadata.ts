/** `fs/getMetadata` and `fs/canonicalize`. */
import type { BigIntStats } from 'node:fs';
import { lstat, realpath, stat } from 'node:fs/promises';
import type { ParamsOf, ResultOf } from '@exec-server/protocol';
import { type BytePath, nativeBytes, pathOf, pathUri } from '../paths.js';
import { detailOf, linkTextOf, wholeMs } from './detail.js';
import { onPath } from './errno.js';
import { refuseLinks } from './noFollow.js';

type Wanted = Omit<ParamsOf<'fs/getMetadata'>, 'path' | 'sandbox'>;

export async function metadataOf(
  path: BytePath,
  { followSymlinks, ofLink, detail }: Wanted,
): Promise<ResultOf<'fs/getMetadata'>> {
  if (followSymlinks === false) await refuseLinks(path, 'symlinkInPath');
  return onPath(path, async () => {
    const own = await lstat(nativeBytes(path), { bigint: true });
    const isSymlink = own.isSymbolicLink();
    const described = isSymlink && ofLink !== true ? await stat(nativeBytes(path), { bigint: true }) : own;
    return {
      isDirectory: described.isDirectory(),
      isFile: described.isFile(),
      isSymlink,
      size: Number(described.size),
      // Zero where the file system does not keep it.
      createdAtMs: wholeMs(described.birthtimeNs),
      modifiedAtMs: wholeMs(described.mtimeNs),
      ...(detail === true ? await detailOfPath(path, described) : {}),
    };
  });
}

async function detailOfPath(path: BytePath, stats: BigIntStats): Promise<ReturnType<typeof detailOf>> {
  return detailOf(stats, stats.isSymbolicLink() ? await linkTextOf(path) : undefined);
}

export async function canonicalOf(path: BytePath): Promise<ResultOf<'fs/canonicalize'>> {
  const real = await onPath(path, () => realpath(nativeBytes(path), { encoding: 'buffer' }));
  return { path: pathUri(pathOf(real)) };
}
