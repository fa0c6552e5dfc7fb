/** Failures of the local side of a transfer, as the errors of the client. Pure. */
import { type FileErrorCode, fileErrorCodes } from '../errors.js';
import { fileAction, FileError } from '../files/fileErrors.js';

/** For an errno of the local host, with the local path. */
export function localError(errno: string, path: string, cause?: unknown): FileError {
  const known = Object.hasOwn(fileErrorCodes, errno);
  // Checked by the line before.
  const code = known ? (errno as FileErrorCode) : 'FILE_FAILED';
  const text = cause instanceof Error ? bare(cause.message) : meanings[errno];
  const action = cause === undefined ? undefined : (actions[errno] ?? fileAction(code));
  const message = `local file ${path}: ${text ?? errno}${action === undefined ? '' : `; ${action}`}`;
  return new FileError(code, message, { path, errno, local: true }, cause);
}

/** Of `ENOSPC: no space left on device, write '/a'` what it says. */
function bare(message: string): string {
  return /^[A-Z0-9]+: (.+?), \w+(?: '.*)?$/s.exec(message)?.[1] ?? message;
}

/** What to do here; what is not here is the same on any host. */
const actions: Readonly<Record<string, string>> = {
  EACCES: 'change its permissions, or do this as another user',
  EPERM: 'change its permissions, or do this as another user',
};

/** For what is found out without the host. */
const meanings: Readonly<Record<string, string>> = {
  EEXIST: 'it exists, and nothing was to be overwritten',
  ENOTDIR: 'a folder was expected, and it is none',
  EISDIR: 'a file was expected, and it is a folder',
  ENOENT: 'it does not exist',
  NOT_REGULAR_FILE: 'it is no file and no folder, but a FIFO, a device or a socket, and these are not copied',
};

/** The same for a path of the server that the transfer looked at itself. */
export function remoteError(code: FileErrorCode, path: string): FileError {
  return new FileError(code, `${path} on the server: ${meanings[code] ?? fileErrorCodes[code]}`, { path });
}
