/** `followSymlinks: false`: no part of a path may be a symbolic link. */
import { lstat } from 'node:fs/promises';
import { WireError } from '@exec-server/protocol';
import { type BytePath, joinPath, nativeBytes, pathText } from '../paths.js';
import { errnoError, errnoOf, fileError } from './errno.js';

type LinkPlace = 'inner' | 'last';

/** Where a path has its first symbolic link. Parts that do not exist are none; who uses the path is told about them. */
async function findLink(path: BytePath): Promise<LinkPlace | undefined> {
  const names = path.split('/').filter((name) => name !== '');
  // The root, as text and as a path.
  let part = '/' as BytePath;
  for (const [at, name] of names.entries()) {
    part = joinPath(part, name);
    try {
      const stats = await lstat(nativeBytes(part));
      if (stats.isSymbolicLink()) return at === names.length - 1 ? 'last' : 'inner';
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === 'ENOENT' || errno === 'ENOTDIR') return undefined;
      throw fileError(error, part);
    }
  }
  return undefined;
}

/** What is said of a link in the last place: an errno, `symlinkInPath`, or nothing, as whoever uses the path refuses it. */
export type LastLink = 'ELOOP' | 'ENOTDIR' | 'symlinkInPath' | 'pass';

/**
 * Throws ENOTDIR when an inner part is a link, and what `last` says when the last one is. Whoever opens the path afterwards
 * does so with O_NOFOLLOW: the last part may have become a link meanwhile.
 */
export async function refuseLinks(path: BytePath, last: LastLink = 'ELOOP'): Promise<void> {
  const place = await findLink(path);
  if (place === undefined || (place === 'last' && last === 'pass')) return;
  if (place === 'last' && last === 'symlinkInPath') {
    throw new WireError('symlinkInPath', 'path contains a symbolic link', { path: pathText(path) });
  }
  throw errnoError(place === 'last' && last === 'ELOOP' ? 'ELOOP' : 'ENOTDIR', path);
}
