/** Errors a caller of the client can meet. String codes, never on the wire. Pure. */
import { ErrorCode, isRetryable, knownReason, type Reason, reasons, type RemoteError } from '@exec-server/protocol';

/** How a file operation can fail: errno names of the host, and what has none. Errors with these codes are `FileError`s. */
export const fileErrorCodes = {
  ENOENT: 'The file, or a folder on the way to it, does not exist.',
  EACCES: 'The host refuses the access to the server.',
  EPERM: 'The host does not allow the operation to the server.',
  EEXIST: 'The path is taken.',
  EISDIR: 'The path names a folder where a file was expected.',
  ENOTDIR: 'A part of the path that should be a folder is none.',
  ENOTEMPTY: 'The folder is not empty.',
  ELOOP: 'Symbolic links lead in a circle, or one stands where none is allowed.',
  ENAMETOOLONG: 'A name or the whole path is longer than the host takes.',
  EINVAL: 'The host cannot use a value.',
  ENOSPC: 'The disk is full.',
  EDQUOT: 'The quota is used up.',
  EFBIG: 'The file would be larger than the host allows.',
  EROFS: 'The file system is read-only.',
  EBUSY: 'The file is in use.',
  ETXTBSY: 'The program is running and cannot be written.',
  EXDEV: 'The paths lie on different file systems.',
  EMFILE: 'The server has no file descriptors left.',
  ENFILE: 'The host has no file descriptors left.',
  ENXIO: 'Nobody is at the other end of a FIFO, or the device is missing.',
  ENODEV: 'The device is missing.',
  EIO: 'The disk reported an error.',
  EBADF: 'A handle was used against its mode.',
  NOT_REGULAR_FILE: 'The path names a folder, a FIFO, a device or a socket, and a regular file was asked for.',
  SYMLINK_IN_PATH: 'A part of the path is a symbolic link, and `followSymlinks` is false.',
  INVALID_PATH: 'The server cannot use the path: it belongs to another host or system.',
  FILE_TOO_LARGE: 'The file is larger than was to be read at once; nothing was taken.',
  FILE_CHANGED: 'The file became another one, or changed, while it was carried.',
  UNKNOWN_HANDLE: 'The server does not know the handle, or a stage is gone.',
  TOO_MANY_HANDLES: 'The connection has as many open files, or the session as many stages, as it may.',
  TOO_MANY_WATCHES: 'The connection has as many watches, or watches as many paths, as it may.',
  BAD_ARCHIVE: 'The archive is damaged, incomplete, or has an entry that lies outside of the folder.',
  FILE_FAILED: 'The host refused a file operation for a reason without a code here; `data.errno` and the text name it.',
} as const;

/** A key of {@link fileErrorCodes}. */
export type FileErrorCode = keyof typeof fileErrorCodes;

/** What each code means; the message of an error says what happened, what still runs and what to do next. */
export const clientErrorCodes = {
  CONNECT_FAILED: 'No connection came about: refused, unreachable, too slow, or the server program did not start.',
  REFUSED:
    'The address is none of an exec server, or the server refused the connection in a way that a repeat does not change.',
  INITIALIZE_TIMEOUT: 'The connection stood, the answer to `initialize` did not come in time.',
  REQUEST_TIMEOUT: 'The answer to a call did not come in time; the call may still take effect.',
  WAIT_TIMEOUT: 'The process had not ended in the time given to `wait`; it was not touched and runs on.',
  OUTCOME_UNKNOWN: 'The connection was lost before the answer came, and nothing tells whether the call took effect.',
  OUTPUT_LOST:
    'Output is no longer kept by the server and cannot be delivered, or a cursor lies behind the last event there is.',
  RECOVERY_FAILED: 'The connection was lost and could not be restored in time.',
  SESSION_EXPIRED:
    'The server does not have the session: it ended, and its processes were killed, or it never was there.',
  TAKEN_OVER: 'Another client took the session over; its processes run on there.',
  SERVER_GONE: 'The server that held the processes has ended or was restarted; they were killed.',
  NOT_SUPPORTED: 'This server cannot do what was asked, or options of the call do not go together.',
  PROTOCOL_VIOLATION: 'The server sent something that is not this protocol.',
  DUPLICATE_PROCESS: 'The process id is taken.',
  REQUEST_TOO_LARGE: 'The call is larger than the server takes; nothing was sent, and nothing else is affected.',
  HTTP_FAILED:
    'The http request had no answer, or the body of its answer is not whole; `data.reason` says why. It may have taken effect.',
  STDIN_CLOSED: 'The standard input of the process takes nothing more; `data.acceptedBytes` of this write were taken.',
  STDIN_FULL: 'Writes that were not awaited wait for the process to read; nothing of this write was taken.',
  SERVER_ERROR: 'The server refused the call; `data` has its code and reason.',
  ABORTED: 'The caller aborted the call.',
  CLOSED: 'The client was closed.',
  INVALID_ARGUMENT: 'An argument of the call cannot be used; `data.argument` names it, and nothing was sent.',
  TRANSFER_LOST:
    'The connection was lost in the middle of a transfer that cannot be taken up again; `data.retryable`: begin again.',
  ...fileErrorCodes,
} as const;

/** A key of {@link clientErrorCodes}. */
export type ClientErrorCode = keyof typeof clientErrorCodes;

/** Details of an error, each where it applies. An error may carry more than is listed here. */
export interface ClientErrorData {
  /** Last seq handed to the consumer: where to go on from. */
  readonly cursor?: number;
  /** The process it is about. */
  readonly processId?: string;
  /** The method of the protocol that was called. */
  readonly method?: string;
  /** The server, without credentials and query; the command line of one that was started here. */
  readonly url?: string;
  /** HTTP status of a refused upgrade. */
  readonly status?: number;
  /** The start of the body of that refusal, up to 1 KiB. */
  readonly body?: string;
  /** `error.code` of an error answer. */
  readonly wireCode?: number;
  /**
   * What precisely went wrong, for a program: `data.reason` of an error answer (the table is in `docs/errors.md`), or a
   * word of this client.
   */
  readonly reason?: string;
  /** Whether the same call may succeed later without a change. */
  readonly retryable?: boolean;
  /** `error.data` as the server sent it. */
  readonly serverData?: unknown;
  /** Bytes of this write that the server took. */
  readonly acceptedBytes?: number;
  /** The file it is about. */
  readonly path?: string;
  /** The name the host has for what went wrong, as `ENOSPC`. */
  readonly errno?: string;
  /** The argument that cannot be used. */
  readonly argument?: string;
  /** Exit code of a stdio server that ended; null for a death by signal. */
  readonly exitCode?: number | null;
  /** The last 4 KiB of its stderr. */
  readonly stderr?: string;
  readonly [member: string]: unknown;
}

const BRAND = Symbol.for('exec-server.ClientError');

/**
 * Every failure of the client. Tell the cases apart by `code`, see {@link clientErrorCodes}; the message says what
 * happened, what still runs and what to do next.
 *
 * @example
 * ```ts
 * try {
 *   await client.fs.readText('/etc/hosts');
 * } catch (error) {
 *   if (isClientError(error) && error.code === 'ENOENT') console.log('no such file', error.data.path);
 *   else throw error;
 * }
 * ```
 */
export class ClientError extends Error {
  /** `ClientError`, or `FileError`. */
  override readonly name: string = 'ClientError';
  /** What kind of failure it is; see {@link clientErrorCodes}. */
  readonly code: ClientErrorCode;
  /** Details for a program; the message has them in words. */
  readonly data: ClientErrorData;
  /** @internal */
  readonly [BRAND] = true;

  /** @internal */
  constructor(code: ClientErrorCode, message: string, data: ClientErrorData = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.data = data;
  }

  /** @internal The same error with more data, as a new object: one failure reaches many callers. */
  with(data: ClientErrorData): ClientError {
    return new ClientError(this.code, this.message, { ...this.data, ...data }, this.cause ?? this);
  }
}

/** Whether a value is a ClientError, of this copy of the package or of another one: use it in place of `instanceof`. */
export function isClientError(value: unknown): value is ClientError {
  return (
    typeof value === 'object' && value !== null && BRAND in value && 'code' in value && typeof value.code === 'string'
  );
}

/** Any thrown value as a ClientError; what is none becomes the cause of one. */
export function toClientError(error: unknown, code: ClientErrorCode, context: string): ClientError {
  if (isClientError(error)) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new ClientError(code, `${context}: ${text}`, {}, error);
}

const codeOfReason: Partial<Record<Reason, ClientErrorCode>> = {
  duplicateProcess: 'DUPLICATE_PROCESS',
  unknownMethod: 'NOT_SUPPORTED',
  unknownSession: 'SESSION_EXPIRED',
  expiredSession: 'SESSION_EXPIRED',
  sessionEnded: 'SESSION_EXPIRED',
  takenOver: 'TAKEN_OVER',
  httpDisabled: 'NOT_SUPPORTED',
  httpFailed: 'HTTP_FAILED',
  httpTimedOut: 'REQUEST_TIMEOUT',
};

/** What an error of the server is about: its text, which is that of the host, often does not say. */
function placeOf(data: unknown): string {
  const { path, field } = typeof data === 'object' && data !== null ? (data as Record<string, unknown>) : {};
  const places = [path, field].filter((place) => typeof place === 'string');
  return places.length === 0 ? '' : ` (${places.join(', ')})`;
}

/** What the table of the protocol advises, as the end of a sentence; undefined where it has no more than the message. */
export function actionOf(reason: Reason): string | undefined {
  const { action } = reasons[reason];
  // What points at the text says nothing in it.
  if (action.startsWith('See the text')) return undefined;
  return action.charAt(0).toLowerCase() + action.slice(1).replace(/\.$/, '');
}

/** The text of a server without the number the host has for it, which is of one system. */
export function bareText(message: string): string {
  return message.replace(/ \(os error \d+\)/, '');
}

/** An error answer of the server to a call. */
export function fromRemote(error: RemoteError, method: string, data: ClientErrorData = {}): ClientError {
  const reason = knownReason(error.data);
  const byReason = reason === undefined ? undefined : codeOfReason[reason];
  const code = byReason ?? (error.code === ErrorCode.methodNotFound ? 'NOT_SUPPORTED' : 'SERVER_ERROR');
  const action = reason === undefined ? undefined : actionOf(reason);
  const verb = reason === 'internalError' ? 'failed at' : 'refused';
  const next = action === undefined ? '' : `; ${action}`;
  return new ClientError(
    code,
    `the server ${verb} ${method}: ${bareText(error.message)}${placeOf(error.data)}${next}`,
    {
      ...data,
      method,
      wireCode: error.code,
      ...(reason === undefined ? {} : { reason }),
      retryable: isRetryable(error.code, error.data),
      ...(error.data === undefined ? {} : { serverData: error.data }),
    },
    error,
  );
}
