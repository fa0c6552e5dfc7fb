/** What the host says about a file operation → the error of the wire. Texts and codes are those of the base protocol. Pure. */
import { type Reason, WireError } from '@exec-server/protocol';
import { type BytePath, pathText } from '../paths.js';

interface Errno {
  readonly number: number;
  readonly text: string;
  readonly reason: Reason;
}

const errno = (number: number, text: string, reason: Reason = 'fileFailed'): Errno => ({ number, text, reason });

/** Numbers of Linux, texts of the C library the reference is built with. */
const table: Readonly<Record<string, Errno>> = {
  EPERM: errno(1, 'Operation not permitted', 'permissionDenied'),
  ENOENT: errno(2, 'No such file or directory', 'fileNotFound'),
  EIO: errno(5, 'I/O error'),
  ENXIO: errno(6, 'No such device or address'),
  EBADF: errno(9, 'Bad file descriptor'),
  EAGAIN: errno(11, 'Resource temporarily unavailable'),
  ENOMEM: errno(12, 'Out of memory'),
  EACCES: errno(13, 'Permission denied', 'permissionDenied'),
  EBUSY: errno(16, 'Resource busy'),
  EEXIST: errno(17, 'File exists', 'fileExists'),
  EXDEV: errno(18, 'Cross-device link'),
  ENODEV: errno(19, 'No such device'),
  ENOTDIR: errno(20, 'Not a directory', 'notDirectory'),
  EISDIR: errno(21, 'Is a directory', 'isDirectory'),
  EINVAL: errno(22, 'Invalid argument', 'invalidArgument'),
  ENFILE: errno(23, 'Too many open files in system'),
  EMFILE: errno(24, 'No file descriptors available'),
  ETXTBSY: errno(26, 'Text file busy'),
  EFBIG: errno(27, 'File too large'),
  ENOSPC: errno(28, 'No space left on device', 'noSpace'),
  ESPIPE: errno(29, 'Invalid seek'),
  EROFS: errno(30, 'Read-only file system'),
  EMLINK: errno(31, 'Too many links'),
  ENAMETOOLONG: errno(36, 'Filename too long', 'nameTooLong'),
  ENOTEMPTY: errno(39, 'Directory not empty', 'directoryNotEmpty'),
  ELOOP: errno(40, 'Symbolic link loop', 'tooManyLinks'),
  EOPNOTSUPP: errno(95, 'Not supported'),
  ESTALE: errno(116, 'Stale file handle'),
  EDQUOT: errno(122, 'Quota exceeded', 'noSpace'),
};

/** The name of the host's error; undefined for anything else that was thrown. */
export function errnoOf(error: unknown): string | undefined {
  // Not `instanceof`: under Jest the errors of the host are those of another realm.
  if (typeof error !== 'object' || error === null || !('code' in error) || !('errno' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** The error of the wire for one of the host; what is no error of the host is returned as it is. */
export function fileError(error: unknown, path?: BytePath): unknown {
  const name = errnoOf(error);
  if (name === undefined) return error;
  const text = typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined;
  return errnoError(name, path, typeof text === 'string' ? text : undefined);
}

/** The error of the wire for an errno by name; `detail` is the text for one that is not in the table. */
export function errnoError(name: string, path?: BytePath, detail?: string): WireError {
  const entry = table[name];
  const text = entry === undefined ? (detail ?? name) : `${entry.text} (os error ${entry.number})`;
  return new WireError(entry?.reason ?? 'fileFailed', text, {
    errno: name,
    ...(path === undefined ? {} : { path: pathText(path) }),
  });
}

/** Runs an operation on a path; its errors become errors of the wire that name the path. */
export async function onPath<T>(path: BytePath, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    throw fileError(error, path);
  }
}
