/** The part of the table of wire errors that is about files and http; see `errors.ts`. Pure. */
import { ErrorCode, type ReasonEntry } from './errorCodes.js';

const { invalidRequest, invalidParams, internal } = ErrorCode;

export const fileReasons = {
  fileNotFound: {
    code: ErrorCode.notFound,
    retryable: false,
    meaning: 'A file, or a folder on the way to it, does not exist (ENOENT); `data.path` names it.',
    action: 'Check the path; a folder on the way to it may be missing.',
  },
  permissionDenied: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The host refuses the access to the server (EACCES, EPERM); `data.path` names the file.',
    action: 'Change its permissions, or run the server as another user.',
  },
  notRegularFile: {
    code: invalidRequest,
    retryable: false,
    meaning:
      'The path names a folder, a FIFO, a device or a socket, and a regular file was asked for; `data.kind` says which.',
    action: 'List the folder; ask with `anyKind` to read a device or a FIFO all the same.',
  },
  symlinkInPath: {
    code: invalidRequest,
    retryable: false,
    meaning: 'A part of the path is a symbolic link, and `followSymlinks` is false.',
    action: 'Resolve the path with `fs/canonicalize`, or allow links.',
  },
  foreignPath: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The `file:` URI names another host, or a path of another system.',
    action: 'Send `file:///…` or an absolute path of this host.',
  },
  invalidArgument: {
    code: invalidRequest,
    retryable: false,
    meaning:
      'A value has the right type and cannot be used; `data.field` names it, `data.limit` or `data.limitBytes` the bound.',
    action: 'Correct the named field.',
  },
  fileTooLarge: {
    code: invalidRequest,
    retryable: false,
    meaning:
      'The file is larger than one answer may be; nothing was read. `data.limitBytes` and `data.size` say how large.',
    action: 'Read it in ranges (`offset`, `maxBytes`) or in blocks (`fs/open`).',
  },
  fileExists: {
    code: internal,
    retryable: false,
    meaning: 'The path is taken (EEXIST); `data.path` names it.',
    action: 'Remove it first, or allow overwriting.',
  },
  isDirectory: {
    code: internal,
    retryable: false,
    meaning: 'The path names a folder where a file was expected (EISDIR).',
    action: 'Name a file in it.',
  },
  notDirectory: {
    code: internal,
    retryable: false,
    meaning: 'A part of the path that should be a folder is none (ENOTDIR).',
    action: 'Check the path.',
  },
  directoryNotEmpty: {
    code: internal,
    retryable: false,
    meaning: 'The folder is not empty (ENOTEMPTY).',
    action: 'Remove it with `recursive: true`, or empty it first.',
  },
  tooManyLinks: {
    code: internal,
    retryable: false,
    meaning: 'Symbolic links lead in a circle, or one stands where none is allowed (ELOOP).',
    action: 'Ask about the link itself with `ofLink`, or mend it.',
  },
  nameTooLong: {
    code: internal,
    retryable: false,
    meaning: 'A name or the whole path is longer than the host takes (ENAMETOOLONG).',
    action: 'Shorten it.',
  },
  noSpace: {
    code: internal,
    retryable: true,
    meaning:
      'The disk or the quota is full (ENOSPC, EDQUOT). After an atomic write the old file is whole; one in place may have written a part.',
    action: 'Make room and try again.',
  },
  fileFailed: {
    code: internal,
    retryable: false,
    meaning: 'The host refused a file operation for another reason; `data.errno` and the text name it.',
    action: 'See the text.',
  },
  fileChanged: {
    code: internal,
    retryable: true,
    meaning:
      'A file changed while it was being packed or carried, so that what was sent is of no use; `data.path` names it.',
    action: 'Begin again once the file is quiet.',
  },
  unknownHandle: {
    code: ErrorCode.notFound,
    retryable: false,
    meaning:
      'This connection has no such handle: it was never opened, was closed, or ended with an earlier connection.',
    action: 'Open the file again; a stage goes on where it was.',
  },
  tooManyHandles: {
    code: invalidRequest,
    retryable: true,
    meaning:
      'The connection has as many open files, or the session as many stages, as it may; `data.limit` says how many.',
    action: 'Close some.',
  },
  archiveIncomplete: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The archive ended before its end mark; what had arrived was unpacked, the last file may be missing.',
    action: 'Send the whole archive again.',
  },
  badArchive: {
    code: invalidRequest,
    retryable: false,
    meaning:
      'The archive is damaged, or an entry would lie outside the folder or is of a kind that is not unpacked; `data.path` names the entry.',
    action: 'See the text.',
  },
  tooManyWatches: {
    code: invalidRequest,
    retryable: true,
    meaning: 'The connection has as many watches, or watches as many paths, as it may; `data.limit` says how many.',
    action: 'End some, or watch less of the tree.',
  },
  httpDisabled: {
    code: invalidRequest,
    retryable: false,
    meaning: 'This server makes no http requests for its clients.',
    action: 'Start it with `--allow-http`, if that is wanted.',
  },
  httpInvalid: {
    code: invalidParams,
    retryable: false,
    meaning: 'Method, address, header or stream id of an `http/request` cannot be used; `data.field` names it.',
    action: 'Correct the named field.',
  },
  httpFailed: {
    code: internal,
    retryable: true,
    meaning: 'The http request had no answer, or its body was cut; `data.cause` names the cause.',
    action: 'See the cause; the request may have taken effect.',
  },
  httpTimedOut: {
    code: internal,
    retryable: true,
    meaning: 'The http request was not answered within its `timeoutMs`.',
    action: 'Allow more time; the request may have taken effect.',
  },
} as const satisfies Record<string, ReasonEntry>;
