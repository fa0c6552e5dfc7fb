/** What is wrong with a path, for the commands that work with files. Pure. */
import { type ClientError, type FileErrorCode, isFileError } from '@exec-server/client';
import { wordsOf } from './clientFailures.js';
import { type Operand, shownName } from './operands.js';

/** What is at fault, and what to do, for who may not touch it. */
const denied = (isLocal: boolean): string =>
  isLocal
    ? 'this user may not access it; change its permissions, or run the command as another user'
    : 'the user of the server may not access it; change its permissions, or run the server as another user';

const meanings: Partial<Record<FileErrorCode, string>> = {
  ENOENT: 'it does not exist; check the path',
  EEXIST: 'it exists, and --no-clobber leaves it as it is; leave that option out to replace it',
  EISDIR: 'it is a folder, and a file was expected; name a file in it',
  ENOTDIR: 'it is no folder, or a part of its path is none; check the path',
  ELOOP: 'symbolic links lead in a circle there',
  ENAMETOOLONG: 'the name is longer than the host takes; shorten it',
  ENOSPC: 'its disk is full; make room and run the command again',
  EDQUOT: 'the quota is used up; make room and run the command again',
  EROFS: 'its file system is read-only; choose another place',
  EFBIG: 'it would be larger than its file system takes',
  EBUSY: 'it is in use; try again later',
  ETXTBSY: 'it is a program that runs; end that, or copy to another name',
  EIO: 'its disk reported an error',
};

/** Of the destination, which need not exist itself. */
const NO_WAY = 'a folder on the way to it does not exist; create that first';

const kinds: Readonly<Record<string, string>> = {
  directory: 'it is a folder; `exec-server ls` shows what is in it, `exec-server cp -r` copies it',
  fifo: 'it is a FIFO, and no file',
  socket: 'it is a socket, and no file',
  characterDevice: 'it is a device, and no file',
  blockDevice: 'it is a device, and no file',
};

/** A sentence that names the operand, as it was given, and the path at fault where that is another one. */
export function faultOfOperand(error: ClientError, { text, path: given, side }: Operand): string {
  const shown = shownName(text);
  if (!isFileError(error)) return `${shown}: ${wordsOf(error)}`;
  const { path } = error.data;
  const isLocal = error.data['local'] === true;
  const where = isLocal ? 'here' : 'on the server';
  // What is relative was completed at the server.
  const isOperand =
    path === undefined || (isLocal === (side === 'local') && (path === given || path.endsWith(`/${given}`)));
  const what = isOperand || error.code !== 'ENOENT' ? wordsOfFile(error, isLocal) : NO_WAY;
  return path === undefined || path === given
    ? `${shown} ${where}: ${what}`
    : `${shown}: ${shownName(path)} ${where}: ${what}`;
}

function wordsOfFile(error: ClientError, isLocal: boolean): string {
  // The codes of files are keys of the table; others have none there.
  const known = meanings[error.code as FileErrorCode];
  if (error.code === 'EACCES' || error.code === 'EPERM') return denied(isLocal);
  if (known !== undefined) return known;
  if (error.code !== 'NOT_REGULAR_FILE') return wordsOf(error);
  const kind = kindOf(error.data.serverData);
  if (isLocal) return 'it is a FIFO, a device or a socket, and these are not copied';
  return kinds[kind] ?? 'it is a folder, a FIFO, a device or a socket, and no file';
}

function kindOf(told: unknown): string {
  const hasKind = typeof told === 'object' && told !== null && 'kind' in told;
  return hasKind && typeof told.kind === 'string' ? told.kind : '';
}
