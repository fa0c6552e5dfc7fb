/** The one table of wire errors: code, reason, whether a repeat can help, what it means, what to do. Pure. */
import { ErrorCode, type ReasonEntry } from './errorCodes.js';
import { fileReasons } from './fileReasons.js';

export { ErrorCode, type ReasonEntry };

const { invalidRequest, invalidParams, internal } = ErrorCode;

/**
 * The one table of errors on the wire: reason → code, whether a repeat helps, meaning and action. It is printed in
 * `docs/errors.md`.
 */
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
  ...fileReasons,
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

/** Value of `error.data.reason`. */
export type Reason = keyof typeof reasons;

/** `error.data` as this server sends it. */
export interface WireErrorData {
  /** Decide by it; the codes are shared by many reasons. */
  readonly reason: Reason;
  /**
   * What the base protocol calls a failed start: `spawnNotFound`, `spawnPermissionDenied`, `spawnFailed`,
   * `sandboxUnavailable`.
   */
  readonly kind?: string;
  /** The parameter at fault, as `argv[1]`. */
  readonly field?: string;
  /** The file or folder it is about. */
  readonly path?: string;
  readonly [member: string]: unknown;
}

/** An error that goes over the wire as it is. Thrown by handlers; everything else becomes `internalError`. */
export class WireError extends Error {
  /** Always `WireError`. */
  override readonly name = 'WireError';
  /** The number of its reason. */
  readonly code: number;
  /** Its entry in {@link reasons}. */
  readonly reason: Reason;
  /** What is sent as `error.data`. */
  readonly data: WireErrorData;

  /** `data` is sent along with the reason; code and `kind` come from the table. */
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
