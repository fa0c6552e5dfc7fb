/** Shapes of the process methods and notifications. */
import { z } from 'zod';
import { base64, flag, text, u64 } from './scalars.js';

export const StreamName = z.enum(['stdout', 'stderr', 'pty']);

export const EnvPolicy = z.object({
  inherit: z.enum(['core', 'all', 'none']),
  /** False removes inherited names that match *KEY*, *SECRET*, *TOKEN*. */
  ignoreDefaultExcludes: flag,
  exclude: z.array(text),
  set: z.record(z.string(), text),
  includeOnly: z.array(text),
});

/** Accepted for its shape; anything but `permissions: disabled` is refused, since this server has no sandbox. */
export const Sandbox = z.looseObject({
  permissions: z.looseObject({ type: z.enum(['managed', 'disabled', 'external']) }),
});

/** Cells of a terminal, each from 1 to 65,535. */
export const TerminalSize = z.object({ cols: u64, rows: u64 });

/** How a process ended: by itself, because its `timeoutMs` ran out, or by `process/terminate`. */
export const ExitReason = z.enum(['exited', 'timedOut', 'terminated']);
/** Whether every stream ended, or `lingerMs` ran out while others held them open. */
export const CloseReason = z.enum(['ended', 'heldOpen']);

export const StartParams = z.object({
  /** Chosen by the client; unique in its session. */
  processId: text,
  /** Put into the environment as CODEX_THREAD_ID and CODEX_TOOL_CALL_ID. */
  metadata: z.object({ threadId: z.string().nullish(), toolCallId: z.string().nullish() }).nullish(),
  /** Program and arguments; not a shell line. */
  argv: z.array(text),
  /** `file:` URI or absolute path. */
  cwd: text,
  shellSnapshot: z.looseObject({}).nullish(),
  /** Absent: the environment is exactly `env`. */
  envPolicy: EnvPolicy.nullish(),
  env: z.record(z.string(), text),
  /** Run on a terminal. */
  tty: flag,
  /** Keep stdin writable without a terminal. Default false: stdin is empty. */
  pipeStdin: flag.optional(),
  /** `argv[0]` as the program sees it. */
  arg0: text.nullish(),
  sandbox: Sandbox.nullish(),
  enforceManagedNetwork: flag.optional(),
  managedNetwork: z.looseObject({}).nullish(),
  networkProxy: z.looseObject({}).nullish(),
  /** Size of the terminal at birth. Default 80 columns, 24 rows. Only with `tty`. */
  size: TerminalSize.nullish(),
  /** Kill its tree after this many ms. Default: never. */
  timeoutMs: u64.nullish(),
  /** How long streams may stay open after the exit, in ms. Default: no limit, as the reference. */
  lingerMs: u64.nullish(),
  /**
   * What happens to output while no client is attached and memory is full: it goes to a file (`spool`, the default), the
   * process is held (`pause`), or the oldest is dropped (`drop`).
   */
  detached: z.enum(['spool', 'pause', 'drop']).nullish(),
  /** What to do when the id is taken: `adopt` answers with the process that has it, if it was started by the same params. */
  ifExists: z.enum(['adopt']).nullish(),
});

/** How a process ended. */
export const ExitSummary = z.object({
  /** 128 + n for a death by signal n. */
  exitCode: z.number(),
  signal: z.string().nullable(),
  reason: ExitReason,
});

export const StartResult = z.object({
  processId: text,
  sandboxType: z.literal('none'),
  /** Absent for an adopted process that is no longer kept. */
  pid: u64.optional(),
  /** True for an adopted process. */
  existing: z.boolean().optional(),
  /** How an adopted process ended, if it has. */
  exit: ExitSummary.optional(),
});

export const ReadParams = z.object({
  processId: text,
  /** Cursor: events with a higher seq are returned. Default 0. */
  afterSeq: u64.nullish(),
  /** Budget for output bytes; chunks are never split and the first is always returned. Default: the server's limit. */
  maxBytes: u64.nullish(),
  /** How long to wait for something new. Default 0. */
  waitMs: u64.nullish(),
});

export const Chunk = z.object({ seq: u64, stream: StreamName, chunk: base64 });

/** Output that is no longer kept. */
export const Gap = z.object({
  fromSeq: u64,
  throughSeq: u64,
  /** Output bytes in the range; absent when the cursor is older than what the server remembers about positions. */
  bytes: u64.optional(),
});

export const ReadResult = z.object({
  chunks: z.array(Chunk),
  nextSeq: u64,
  exited: z.boolean(),
  exitCode: z.number().nullable(),
  closed: z.boolean(),
  failure: z.string().nullable(),
  sandboxDenied: z.boolean(),
  epoch: z.string(),
  firstRetainedSeq: u64,
  gap: Gap.optional(),
  /** The signal that ended the process; absent until `exited` and for a normal exit. */
  signal: z.string().optional(),
  /** Why it ended; absent until `exited`. */
  reason: ExitReason.optional(),
  /** Why its streams count as ended; absent until `closed`. */
  closeReason: CloseReason.optional(),
  /** Processes that held the streams, for `heldOpen`. */
  holders: u64.optional(),
  /** The seq of the exit event; absent until `exited`. */
  exitedSeq: u64.optional(),
  /** The seq of the close event; absent until `closed`. Not below `nextSeq`: this reply does not reach it. */
  closedSeq: u64.optional(),
});

export const WriteParams = z.object({
  processId: text,
  chunk: base64,
  /** Names the write: a repeat is answered and not written again. One of `writeId` and `offset` is needed. */
  writeId: z.string().nullish(),
  /** Byte position in stdin: what was accepted already is dropped, a hole is refused. */
  offset: u64.nullish(),
  /** Close stdin after this chunk. */
  eof: flag.nullish(),
});

export const WriteResult = z.object({
  status: z.enum(['accepted', 'unknownProcess', 'stdinClosed', 'starting']),
  /** Bytes of stdin accepted so far; absent for an unknown process. */
  acceptedOffset: u64.optional(),
});

export const SignalParams = z.object({
  processId: text,
  /** `interrupt`, or a signal's name such as `SIGTERM`. On a terminal it goes to the foreground group. */
  signal: text,
});
export const SignalResult = z.object({
  /** Whether a running process's group got it. */
  delivered: z.boolean(),
});

/** A process outside the table: what a tree left behind. */
export const Leftover = z.object({ pid: u64, argv: z.array(text) });

export const TerminateParams = z.object({
  processId: text,
  /** SIGTERM first, SIGKILL after this many ms. Default 0: SIGKILL at once. */
  graceMs: u64.nullish(),
  /** `kill` ends descendants that left the group as well, of an exited process too. Default `keep`. */
  leftovers: z.enum(['kill', 'keep']).nullish(),
  /** Answer when everything is dead. Default: true with `graceMs` or `leftovers`, else false. */
  wait: flag.nullish(),
});
export const TerminateResult = z.object({
  /** Whether the process was running, or starting, when the call came. */
  running: z.boolean(),
  /** How it ended; absent without `wait`, and when it still runs. */
  exit: ExitSummary.optional(),
  /** Whether the grace ran out and SIGKILL was sent. */
  escalated: z.boolean().optional(),
  /** What still lives of the tree. */
  left: z.array(Leftover).optional(),
  /** How the tree was looked for. */
  method: text.optional(),
  /** Whether that way finds everything; a child that cleared its environment and left the group is not found. */
  treeComplete: z.boolean().optional(),
});

export const ResizeParams = z.object({ processId: text, cols: u64, rows: u64 });
export const ResizeResult = z.object({});

export const ListParams = z
  .object({
    /** Look for what exited processes left behind; costs a scan of the host's processes for each. Default false. */
    leftovers: flag.nullish(),
  })
  .nullish();
export const ProcessSummary = z.object({
  processId: text,
  /** At most 4096 characters, fewer where there are many processes. */
  argv: z.array(text),
  /** True where `argv` is not whole. */
  argvCut: z.boolean().optional(),
  tty: z.boolean(),
  /** Absent while it is starting. */
  pid: u64.optional(),
  state: z.enum(['starting', 'running', 'exited', 'closed']),
  /** Milliseconds since 1970. */
  startedAtMs: z.number(),
  exitedAtMs: z.number().optional(),
  closedAtMs: z.number().optional(),
  exit: ExitSummary.optional(),
  /** Output bytes so far, and those that are kept. */
  outputBytes: u64,
  retainedBytes: u64,
  firstRetainedSeq: u64,
  nextSeq: u64,
  /** Bytes of stdin accepted so far. */
  stdinBytes: u64,
  leftovers: z.array(Leftover).optional(),
});
export const ListResult = z.object({ processes: z.array(ProcessSummary), epoch: text });

export const FollowParams = z.object({
  processId: text,
  /** Pushes go on behind this event. Default 0: from the first one that is kept. */
  afterSeq: u64.nullish(),
  /** The life of the server the cursor belongs to; another one is refused. */
  epoch: text.nullish(),
});
export const FollowResult = z.object({
  epoch: text,
  /** All events from this seq on are held; a higher one than `afterSeq + 1` means a gap, which is pushed first. */
  firstRetainedSeq: u64,
  /** The number the next event will get. */
  nextSeq: u64,
});

export const FlushParams = z.object({ processId: text });
export const FlushResult = z.object({
  /** Every event through this one was pushed on this connection before this answer. */
  throughSeq: u64,
});

export const ReleaseParams = z.object({ processId: text });
export const ReleaseResult = z.object({});

export const OutputParams = z.object({ processId: text, seq: u64, stream: StreamName, chunk: base64 });
export const ExitedParams = z.object({
  processId: text,
  seq: u64,
  /** 128 + n for a death by signal n. */
  exitCode: z.number(),
  sandboxDenied: z.boolean(),
  signal: z.string().optional(),
  reason: ExitReason.optional(),
});
export const ClosedParams = z.object({
  processId: text,
  seq: u64,
  reason: CloseReason.optional(),
  /** Processes that held the streams, for `heldOpen`. */
  holders: u64.optional(),
});
export const GapParams = z.object({ processId: text, fromSeq: u64, throughSeq: u64, bytes: u64.optional() });
export const AckParams = z.object({
  processId: text,
  /** Everything up to and including this seq has arrived. */
  seq: u64,
});
