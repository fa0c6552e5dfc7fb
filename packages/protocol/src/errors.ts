/** The one table of wire errors: code, reason, whether a repeat can help, what it means, what to do. Pure. */

/** Codes of the base protocol; finer meaning is in `error.data.reason`. */
export const ErrorCode = {
  transportClosed: -32000,
  notFound: -32004,
  attachedElsewhere: -32010,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
} as const;

export interface ReasonEntry {
  readonly code: number;
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** `error.data.kind` of the base protocol, where it has one. */
  readonly kind?: 'spawnNotFound' | 'spawnPermissionDenied' | 'spawnFailed' | 'sandboxUnavailable';
  readonly meaning: string;
  readonly action: string;
}

const { invalidRequest, invalidParams, internal } = ErrorCode;

export const reasons = {
  malformedMessage: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The message is not one JSON-RPC object within the limits; it is answered with id -1.',
    action: 'Send one object per line or frame; see the text for the position.',
  },
  notInitialized: {
    code: invalidRequest,
    retryable: false,
    meaning: 'A method was called before `initialize` was answered.',
    action: 'Send `initialize` first and wait for its answer.',
  },
  notReady: {
    code: invalidRequest,
    retryable: false,
    meaning: 'A method was called before the notification `initialized`.',
    action: 'Send `initialized` after the answer to `initialize`.',
  },
  alreadyInitialized: {
    code: invalidRequest,
    retryable: false,
    meaning: 'This connection already has a session.',
    action: 'Open another connection for another session.',
  },
  unknownSession: {
    code: invalidRequest,
    retryable: false,
    meaning: 'This life of the server never had such a session, or forgot it long ago.',
    action: 'Initialize without `resumeSessionId`; processes of the old session are gone.',
  },
  expiredSession: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The session was detached longer than its lease, or was closed; its processes were killed.',
    action: 'Initialize without `resumeSessionId`; ask for a longer `leaseMs` where cuts last longer.',
  },
  attachedElsewhere: {
    code: ErrorCode.attachedElsewhere,
    retryable: true,
    meaning: 'Another connection controls the session.',
    action: 'Try again, as a dead connection is noticed after a while; or take over, or observe.',
  },
  takenOver: {
    code: ErrorCode.attachedElsewhere,
    retryable: false,
    meaning: 'Another client took the session over from this one; its processes run on there.',
    action: 'Leave it to that client, or take it back with `takeOver`.',
  },
  observeOnly: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The id admits observers, and the client asked for control.',
    action: 'Attach with `attach: "observe"`, or use the session id.',
  },
  readOnly: {
    code: invalidRequest,
    retryable: false,
    meaning: 'An observer called a method that is for the client in control; nothing was done.',
    action: 'Call it from the client that controls the session.',
  },
  sessionEnded: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The session of this connection was closed while the call was on its way.',
    action: 'Open a new connection.',
  },
  unknownMethod: {
    code: ErrorCode.methodNotFound,
    retryable: false,
    meaning: 'This server has no such method.',
    action: 'Read `extensions` and `capabilities` of the answer to `initialize` before calling.',
  },
  invalidParams: {
    code: invalidParams,
    retryable: false,
    meaning: 'A parameter is missing, has the wrong type or is out of range; `data.field` names it.',
    action: 'Correct the named field.',
  },
  invalidPath: {
    code: invalidParams,
    retryable: false,
    meaning: 'A path is neither a `file:` URI of this host nor an absolute path.',
    action: 'Send `file:///…` or an absolute path.',
  },
  otherEpoch: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The session or cursor belongs to another life of the server; `data.epoch` names the present one.',
    action: 'Begin without it; the processes it named and the events it counted are gone.',
  },
  unknownProcess: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The session never had a process of this id.',
    action: 'Check the id; ids belong to one session.',
  },
  expiredProcess: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The process ended and its output is no longer kept; `data` has how it ended.',
    action: 'Read sooner after the end, or keep the output yourself.',
  },
  duplicateProcess: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The id is taken by a process of this session that runs, is starting, or has ended.',
    action: 'Choose another id.',
  },
  startDiffers: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The id is taken by a process that was started with other params, so it cannot be adopted.',
    action: 'Choose another id, or `attach` to the process that has it.',
  },
  processRunning: {
    code: invalidRequest,
    retryable: true,
    meaning: 'The process has not closed yet, so it cannot be released.',
    action: 'Wait for its close, or terminate it first.',
  },
  alreadyReleased: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The process was released before.',
    action: 'Nothing is left to do.',
  },
  processEnded: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The process has exited, and its terminal with it.',
    action: 'Nothing is left to do.',
  },
  notTerminal: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The process does not run on a terminal.',
    action: 'Start it with `tty: true`.',
  },
  startCancelled: {
    code: invalidRequest,
    retryable: false,
    meaning: 'The process was terminated, or its session ended, before it had started.',
    action: 'Start again if it is still wanted.',
  },
  emptyArgv: {
    code: invalidParams,
    retryable: false,
    meaning: '`argv` has no program.',
    action: 'Put the program first in `argv`.',
  },
  emptyProgram: {
    code: internal,
    retryable: false,
    kind: 'spawnFailed',
    meaning: '`argv[0]` is empty.',
    action: 'Put the program first in `argv`.',
  },
  nulByte: {
    code: internal,
    retryable: false,
    kind: 'spawnFailed',
    meaning: 'An argument, a variable or a path holds a NUL; `data.field` names it.',
    action: 'Remove the NUL.',
  },
  argumentTooLong: {
    code: internal,
    retryable: false,
    kind: 'spawnFailed',
    meaning:
      'One argument or variable is longer than the host takes; `data.field` and `data.limitBytes` say which and how long.',
    action: 'Pass it by stdin or by a file.',
  },
  argumentsTooLong: {
    code: internal,
    retryable: false,
    kind: 'spawnFailed',
    meaning: 'Arguments and environment together are longer than the host takes; `data.limitBytes` says how long.',
    action: 'Pass them by stdin or by a file.',
  },
  programNotFound: {
    code: internal,
    retryable: false,
    kind: 'spawnNotFound',
    meaning:
      'The program does not exist, or is not in the `PATH` of the environment it would get; `data.path` names it.',
    action: 'Check the name and the `PATH` in `env` or `envPolicy`.',
  },
  notExecutable: {
    code: internal,
    retryable: false,
    kind: 'spawnPermissionDenied',
    meaning: 'The program is a folder or has no execute permission; `data.path` names it.',
    action: 'Set the execute permission, or name the interpreter in `argv`.',
  },
  interpreterNotFound: {
    code: internal,
    retryable: false,
    kind: 'spawnNotFound',
    meaning: 'The script exists, its `#!` line names an interpreter that does not; `data.path` names the interpreter.',
    action: 'Install the interpreter or mend the first line of the script.',
  },
  badExecutable: {
    code: internal,
    retryable: false,
    kind: 'spawnFailed',
    meaning: 'The host cannot execute a file of this format; `data.path` names it.',
    action: 'Name the interpreter in `argv`.',
  },
  cwdNotFound: {
    code: internal,
    retryable: false,
    kind: 'spawnNotFound',
    meaning: 'The working directory does not exist; `data.path` names it.',
    action: 'Create it or pass another `cwd`.',
  },
  cwdNotDirectory: {
    code: internal,
    retryable: false,
    kind: 'spawnFailed',
    meaning: 'The working directory is not a directory; `data.path` names it.',
    action: 'Pass another `cwd`.',
  },
  cwdDenied: {
    code: internal,
    retryable: false,
    kind: 'spawnPermissionDenied',
    meaning: 'The server may not enter the working directory; `data.path` names it.',
    action: 'Pass another `cwd` or change its permissions.',
  },
  tooManyOpenFiles: {
    code: internal,
    retryable: true,
    kind: 'spawnFailed',
    meaning: 'The server has no descriptors left for the streams of the process.',
    action: 'Wait for processes to end, or raise the limit of open files.',
  },
  resourcesExhausted: {
    code: internal,
    retryable: true,
    kind: 'spawnFailed',
    meaning: 'The host refused another process (memory or process limit).',
    action: 'Wait for processes to end, or raise the limit.',
  },
  spawnFailed: {
    code: internal,
    retryable: false,
    kind: 'spawnFailed',
    meaning: 'The host refused to start the program for a reason named in the text.',
    action: 'See the text.',
  },
  terminalUnavailable: {
    code: internal,
    retryable: false,
    kind: 'spawnFailed',
    meaning: 'This server cannot give a process a terminal.',
    action: 'Start it with `tty: false`.',
  },
  sandboxUnavailable: {
    code: internal,
    retryable: false,
    kind: 'sandboxUnavailable',
    meaning:
      'The call asked to be confined and this server has no sandbox; nothing was run. `data.field` names the request.',
    action: 'Leave the field out to run unconfined, or use a server that has a sandbox.',
  },
  signalUnsupported: {
    code: internal,
    retryable: false,
    meaning: 'The host of this server has no signals.',
    action: 'Use `process/terminate`.',
  },
  signalFailed: {
    code: internal,
    retryable: false,
    meaning: 'The host refused the signal; the text names the cause.',
    action: 'See the text.',
  },
  writeHole: {
    code: invalidParams,
    retryable: false,
    meaning:
      'The `offset` of a write lies beyond what was accepted; nothing was written. `data.acceptedOffset` says where to go on.',
    action: 'Write from `acceptedOffset`.',
  },
  stdinQueueFull: {
    code: internal,
    retryable: true,
    meaning: 'Too many writes of this process wait because it does not read its stdin; nothing was written.',
    action: 'Wait for earlier writes to be answered.',
  },
  tooManyRequests: {
    code: invalidRequest,
    retryable: true,
    meaning:
      'This connection has too many unanswered requests, or too many bytes of them; this one was not looked at. `data.limit` or `data.limitBytes` says how many.',
    action: 'Wait for answers.',
  },
  tooManySessions: {
    code: internal,
    retryable: true,
    meaning: 'The server holds as many sessions as it may; `data.limit` says how many.',
    action: 'Close sessions, or wait for detached ones to expire.',
  },
  tooManyProcesses: {
    code: internal,
    retryable: true,
    meaning: 'The session holds as many processes as it may; `data.limit` says how many.',
    action: 'Wait for processes to end.',
  },
  fileNotFound: {
    code: ErrorCode.notFound,
    retryable: false,
    meaning: 'A file, or a folder on the way to it, does not exist (ENOENT); `data.path` names it.',
    action: 'Check the path; create the folder first.',
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
  replyTooLarge: {
    code: internal,
    retryable: false,
    meaning: 'The answer would be larger than a client must take; `data.limitBytes` says how large it may be.',
    action: 'Ask for less at a time.',
  },
  serverStopping: {
    code: internal,
    retryable: true,
    meaning: 'The server is shutting down.',
    action: 'Connect again.',
  },
  internalError: {
    code: internal,
    retryable: false,
    meaning: 'A fault of the server.',
    action: 'Report it with the log of the server.',
  },
} as const satisfies Record<string, ReasonEntry>;

export type Reason = keyof typeof reasons;

/** `error.data` as this server sends it. */
export interface WireErrorData {
  readonly reason: Reason;
  readonly kind?: string;
  readonly field?: string;
  readonly path?: string;
  readonly [member: string]: unknown;
}

/** An error that goes over the wire as it is. Thrown by handlers; everything else becomes `internalError`. */
export class WireError extends Error {
  override readonly name = 'WireError';
  readonly code: number;
  readonly reason: Reason;
  readonly data: WireErrorData;

  constructor(reason: Reason, message: string, data: Omit<WireErrorData, 'reason' | 'kind'> = {}) {
    super(message);
    const entry: ReasonEntry = reasons[reason];
    this.code = entry.code;
    this.reason = reason;
    this.data = { ...data, ...(entry.kind === undefined ? {} : { kind: entry.kind }), reason };
  }
}

/** The table's entry for what a peer sent as `error.data.reason`; undefined for a foreign peer or a reason of a later version. */
export function knownReason(data: unknown): Reason | undefined {
  if (typeof data !== 'object' || data === null || !('reason' in data)) return undefined;
  const { reason } = data;
  return typeof reason === 'string' && Object.hasOwn(reasons, reason) ? (reason as Reason) : undefined;
}

/** Whether a repeat of the call can help, by reason where there is one, else by code. */
export function isRetryable(code: number, data: unknown): boolean {
  const reason = knownReason(data);
  return reason === undefined ? code === ErrorCode.attachedElsewhere : reasons[reason].retryable;
}
