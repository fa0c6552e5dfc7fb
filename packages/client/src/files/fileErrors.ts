/** What servers say about files → errors one can switch on. Pure. */
import { ErrorCode, type Reason, RemoteError, reasons } from '@exec-server/protocol';
import {
  actionOf,
  bareText,
  ClientError,
  type ClientErrorData,
  type FileErrorCode,
  fileErrorCodes,
  isClientError,
} from '../errors.js';
import { isObject } from '../shapes.js';

/**
 * A refusal of the host or of the server that is about a file. `code` is the name of the errno (`ENOENT`) or a code of
 * {@link fileErrorCodes}; `data` has `path`, `reason`, `errno` and `wireCode` as far as the server told them.
 */
export class FileError extends ClientError {
  /** Always `FileError`. */
  override readonly name = 'FileError';
  /** What the host calls it, or a code of ours; see {@link fileErrorCodes}. */
  declare readonly code: FileErrorCode;

  /** @internal */
  constructor(code: FileErrorCode, message: string, data: ClientErrorData = {}, cause?: unknown) {
    super(code, message, data, cause);
  }

  /** @internal */
  override with(data: ClientErrorData): FileError {
    return new FileError(this.code, this.message, { ...this.data, ...data }, this.cause ?? this);
  }
}

/** Whether an error is about a file, of this copy of the package or of another one. */
export function isFileError(value: unknown): value is FileError {
  return isClientError(value) && isFileErrorCode(value.code);
}

const isFileErrorCode = (code: string): code is FileErrorCode => Object.hasOwn(fileErrorCodes, code);

/** Reasons that are no errno; a reason with one is told by `data.errno`. */
const codeOfReason: Partial<Record<Reason, FileErrorCode>> = {
  fileNotFound: 'ENOENT',
  permissionDenied: 'EACCES',
  notRegularFile: 'NOT_REGULAR_FILE',
  symlinkInPath: 'SYMLINK_IN_PATH',
  foreignPath: 'INVALID_PATH',
  invalidPath: 'INVALID_PATH',
  invalidArgument: 'EINVAL',
  fileTooLarge: 'FILE_TOO_LARGE',
  fileExists: 'EEXIST',
  isDirectory: 'EISDIR',
  notDirectory: 'ENOTDIR',
  directoryNotEmpty: 'ENOTEMPTY',
  tooManyLinks: 'ELOOP',
  nameTooLong: 'ENAMETOOLONG',
  noSpace: 'ENOSPC',
  fileFailed: 'FILE_FAILED',
  fileChanged: 'FILE_CHANGED',
  unknownHandle: 'UNKNOWN_HANDLE',
  tooManyHandles: 'TOO_MANY_HANDLES',
  archiveIncomplete: 'BAD_ARCHIVE',
  badArchive: 'BAD_ARCHIVE',
  tooManyWatches: 'TOO_MANY_WATCHES',
};

/** Numbers of Linux, where foreign servers run. */
const errnoOfNumber: Readonly<Record<number, FileErrorCode>> = {
  1: 'EPERM',
  2: 'ENOENT',
  5: 'EIO',
  6: 'ENXIO',
  9: 'EBADF',
  13: 'EACCES',
  16: 'EBUSY',
  17: 'EEXIST',
  18: 'EXDEV',
  19: 'ENODEV',
  20: 'ENOTDIR',
  21: 'EISDIR',
  22: 'EINVAL',
  23: 'ENFILE',
  24: 'EMFILE',
  26: 'ETXTBSY',
  27: 'EFBIG',
  28: 'ENOSPC',
  30: 'EROFS',
  36: 'ENAMETOOLONG',
  39: 'ENOTEMPTY',
  40: 'ELOOP',
  122: 'EDQUOT',
};

/** Refusals of foreign servers that come from no errno, by the words of the reference. */
const foreignTexts: readonly (readonly [RegExp, FileErrorCode])[] = [
  [/unknown file handle/, 'UNKNOWN_HANDLE'],
  [/` is not a file$/, 'NOT_REGULAR_FILE'],
  [/file is too large to read/, 'FILE_TOO_LARGE'],
  [/path contains a symbolic link/, 'SYMLINK_IN_PATH'],
  [/file handles may be open per connection/, 'TOO_MANY_HANDLES'],
  [/is invalid on '/, 'INVALID_PATH'],
];

/** The reason whose advice holds, where a code comes without one. */
const reasonOfCode: Partial<Record<FileErrorCode, Reason>> = {
  ENOENT: 'fileNotFound',
  EACCES: 'permissionDenied',
  EPERM: 'permissionDenied',
  EEXIST: 'fileExists',
  EISDIR: 'isDirectory',
  ENOTDIR: 'notDirectory',
  ENOTEMPTY: 'directoryNotEmpty',
  ENOSPC: 'noSpace',
  EDQUOT: 'noSpace',
  ENAMETOOLONG: 'nameTooLong',
  UNKNOWN_HANDLE: 'unknownHandle',
};

/** What to do about a code, for the end of a sentence. */
export function fileAction(code: FileErrorCode, reason?: string): string | undefined {
  const known = reason !== undefined && Object.hasOwn(reasons, reason) ? (reason as Reason) : reasonOfCode[code];
  return known === undefined ? undefined : actionOf(known);
}

/** A failed call as the error of its file where it is about one; anything else stays what it is. `path` is that of the caller. */
export function fileErrorOf(error: unknown, path: string | undefined): unknown {
  if (!(error instanceof ClientError) || error.code !== 'SERVER_ERROR') return error;
  const { reason, serverData } = error.data;
  const told = isObject(serverData) ? serverData : {};
  const errno = typeof told['errno'] === 'string' ? told['errno'] : undefined;
  const code = reason === undefined ? foreignCode(error) : ownCode(reason, errno);
  if (code === undefined) return error;
  const where = typeof told['path'] === 'string' ? told['path'] : path;
  const refusal = error.cause instanceof RemoteError ? bareText(error.cause.message) : error.message;
  const places = [where, told['field']].filter((place) => typeof place === 'string' && !refusal.includes(place));
  const named = places.length === 0 ? '' : ` (${places.join(', ')})`;
  const action = fileAction(code, reason);
  const verb = error.cause instanceof RemoteError ? `the server refused ${error.data.method ?? 'the call'}: ` : '';
  const message = `${verb}${refusal}${named}${action === undefined ? '' : `; ${action}`}`;
  return new FileError(
    code,
    message,
    { ...error.data, ...(where === undefined ? {} : { path: where }), ...(errno === undefined ? {} : { errno }) },
    error.cause ?? error,
  );
}

function ownCode(reason: string, errno: string | undefined): FileErrorCode | undefined {
  const byReason = Object.hasOwn(codeOfReason, reason) ? codeOfReason[reason as Reason] : undefined;
  if (byReason === undefined) return undefined;
  return errno !== undefined && isFileErrorCode(errno) ? errno : byReason;
}

function foreignCode({ message: shown, cause, data: { wireCode } }: ClientError): FileErrorCode | undefined {
  const message = cause instanceof RemoteError ? cause.message : shown;
  const [, number] = /\(os error (\d+)\)/.exec(message) ?? [];
  if (number !== undefined) return errnoOfNumber[Number(number)] ?? 'FILE_FAILED';
  const [, byText] = foreignTexts.find(([text]) => text.test(message)) ?? [];
  return byText ?? (wireCode === ErrorCode.notFound ? 'ENOENT' : undefined);
}
