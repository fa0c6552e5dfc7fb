/** Shapes of the process methods and notifications. */
import { z } from 'zod';
import { base64, flag, text, u64 } from './scalars.js';

/** Where output comes from: `pty` is the one stream of a process on a terminal. */
export const StreamName = z.enum(['stdout', 'stderr', 'pty']);

/**
 * What a process inherits from the environment of the server; all members are required. Patterns know `*` and `?` and
 * ignore case.
 */
export const EnvPolicy = z.object({
  /** Begin with the whole environment of the server, with what a shell needs (`core`), or with nothing. */
  inherit: z.enum(['core', 'all', 'none']),
  /** False removes inherited names that match *KEY*, *SECRET*, *TOKEN*. */
  ignoreDefaultExcludes: flag,
  /** Patterns of names that are removed. */
  exclude: z.array(text),
  /** Variables that are set after that. */
  set: z.record(z.string(), text),
  /** Patterns of names that stay, of all of them; empty: all stay. */
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

/** Params of `process/start`. */
export const StartParams = z.object({
  /** Chosen by the client; unique in its session. */
  processId: text,
  /** Put into the environment as CODEX_THREAD_ID and CODEX_TOOL_CALL_ID. */
  metadata: z.object({ threadId: z.string().nullish(), toolCallId: z.string().nullish() }).nullish(),
  /** Program and arguments; not a shell line. */
  argv: z.array(text),
  /** `file:` URI or absolute path. */
  cwd: text,
  /** Refused unless absent or null, for the same reason as `sandbox`. */
  shellSnapshot: z.looseObject({}).nullish(),
  /** Absent: the environment is exactly `env`. */
  envPolicy: EnvPolicy.nullish(),
  /** The environment, or what is laid over `envPolicy`. */
  env: z.record(z.string(), text),
  /** Run on a terminal. */
  tty: flag,
  /** Keep stdin writable without a terminal. Default false: stdin is empty. */
  pipeStdin: flag.optional(),
  /** `argv[0]` as the program sees it. */
  arg0: text.nullish(),
  /** Refused unless it is disabled: nothing runs unconfined that asked to be confined. */
  sandbox: Sandbox.nullish(),
  /** Refused when true, for the same reason. */
  enforceManagedNetwork: flag.optional(),
  /** Refused unless absent or null, for the same reason. */
  managedNetwork: z.looseObject({}).nullish(),
  /** Refused unless absent or null, for the same reason. */
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
  /** Name of the signal it died of; null for an exit of its own. */
  signal: z.string().nullable(),
  /** By itself, by its timeout, or by `process/terminate`. */
  reason: ExitReason,
});

/** Result of `process/start`. */
export const StartResult = z.object({
  processId: text,
  /** Nothing is confined here. */
  sandboxType: z.literal('none'),
  /** Absent for an adopted process that is no longer kept. */
  pid: u64.optional(),
  /** True for an adopted process. */
  existing: z.boolean().optional(),
  /** How an adopted process ended, if it has. */
  exit: ExitSummary.optional(),
});

/** Params of `process/read`. */
export const ReadParams = z.object({
  processId: text,
  /** Cursor: events with a higher seq are returned. Default 0. */
  afterSeq: u64.nullish(),
  /** Budget for output bytes; chunks are never split and the first is always returned. Default: the server's limit. */
  maxBytes: u64.nullish(),
  /** How long to wait for something new. Default 0. */
  waitMs: u64.nullish(),
});

/** One piece of output. */
export const Chunk = z.object({ seq: u64, stream: StreamName, chunk: base64 });

/** Output that is no longer kept. */
export const Gap = z.object({
  /** The first event that is gone. */
  fromSeq: u64,
  /** The last one. */
  throughSeq: u64,
  /** Output bytes in the range; absent when the cursor is older than what the server remembers about positions. */
  bytes: u64.optional(),
});

/**
 * Result of `process/read`. Without `maxBytes` it says of exit and close whether it covers them, with `maxBytes` whether
 * they happened.
 */
export const ReadResult = z.object({
  /** Whole chunks, in order. */
  chunks: z.array(Chunk),
  /**
   * Without `maxBytes`: everything below it is covered. With `maxBytes` and at least one chunk: one past the last chunk.
   */
  nextSeq: u64,
  /** Whether the process has exited; without `maxBytes`: within what is covered. */
  exited: z.boolean(),
  /** 128 + n for a death by signal n; null until `exited`. */
  exitCode: z.number().nullable(),
  /** Whether it has closed; without `maxBytes`: within what is covered. */
  closed: z.boolean(),
  /** Of the base protocol; null here. */
  failure: z.string().nullable(),
  /** Of the base protocol; false here. */
  sandboxDenied: z.boolean(),
  /** The life of the server these seqs belong to. */
  epoch: z.string(),
  /** All events from this one on are held. */
  firstRetainedSeq: u64,
  /** What lies between the cursor and the window; absent when nothing does. */
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

/** Params of `process/write`. */
export const WriteParams = z.object({
  processId: text,
  /** The bytes, in base64; may be empty with `eof`. */
  chunk: base64,
  /** Names the write: a repeat is answered and not written again. One of `writeId` and `offset` is needed. */
  writeId: z.string().nullish(),
  /** Byte position in stdin: what was accepted already is dropped, a hole is refused. */
  offset: u64.nullish(),
  /** Close stdin after this chunk. */
  eof: flag.nullish(),
});

/** Result of `process/write`; only `accepted` took the bytes. */
export const WriteResult = z.object({
  /** `stdinClosed`: there is no stdin, or it takes nothing more. `starting`: of foreign servers alone. */
  status: z.enum(['accepted', 'unknownProcess', 'stdinClosed', 'starting']),
  /** Bytes of stdin accepted so far; absent for an unknown process. */
  acceptedOffset: u64.optional(),
});

/** Params of `process/signal`. */
export const SignalParams = z.object({
  processId: text,
  /** `interrupt`, or a signal's name such as `SIGTERM`. On a terminal it goes to the foreground group. */
  signal: text,
});
/** Result of `process/signal`; empty in the base protocol. */
export const SignalResult = z.object({
  /** Whether a running process's group got it. */
  delivered: z.boolean(),
});

/** A process outside the table: what a tree left behind. */
export const Leftover = z.object({ pid: u64, argv: z.array(text) });

/** Params of `process/terminate`. */
export const TerminateParams = z.object({
  processId: text,
  /** SIGTERM first, SIGKILL after this many ms. Default 0: SIGKILL at once. */
  graceMs: u64.nullish(),
  /** `kill` ends descendants that left the group as well, of an exited process too. Default `keep`. */
  leftovers: z.enum(['kill', 'keep']).nullish(),
  /** Answer when everything is dead. Default: true with `graceMs` or `leftovers`, else false. */
  wait: flag.nullish(),
});
/** Result of `process/terminate`; `running` alone without `graceMs`, `leftovers` and `wait`. */
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

/** Params of `process/resize`: cells, each from 1 to 65,535. */
export const ResizeParams = z.object({ processId: text, cols: u64, rows: u64 });
/** Result of `process/resize`: an empty object. */
export const ResizeResult = z.object({});

/** Params of `process/list`; may be left out. */
export const ListParams = z
  .object({
    /** Look for what exited processes left behind; costs a scan of the host's processes for each. Default false. */
    leftovers: flag.nullish(),
  })
  .nullish();
/** What `process/list` says about one process. */
export const ProcessSummary = z.object({
  processId: text,
  /** At most 4096 characters, fewer where there are many processes. */
  argv: z.array(text),
  /** True where `argv` is not whole. */
  argvCut: z.boolean().optional(),
  /** Whether it runs on a terminal. */
  tty: z.boolean(),
  /** Absent while it is starting. */
  pid: u64.optional(),
  /** `exited`: streams are still open; `closed`: all is over. */
  state: z.enum(['starting', 'running', 'exited', 'closed']),
  /** Milliseconds since 1970. */
  startedAtMs: z.number(),
  /** Absent until the exit. */
  exitedAtMs: z.number().optional(),
  /** Absent until the close. */
  closedAtMs: z.number().optional(),
  /** How it ended; absent until the exit. */
  exit: ExitSummary.optional(),
  /** Output bytes so far. */
  outputBytes: u64,
  /** Output bytes that are kept. */
  retainedBytes: u64,
  /** All events from this one on are held. */
  firstRetainedSeq: u64,
  /** The number the next event will get. */
  nextSeq: u64,
  /** Bytes of stdin accepted so far. */
  stdinBytes: u64,
  /** What it left running; with `leftovers: true`, and of exited processes alone. */
  leftovers: z.array(Leftover).optional(),
});
/** Result of `process/list`. */
export const ListResult = z.object({ processes: z.array(ProcessSummary), epoch: text });

/** Params of `process/follow`. */
export const FollowParams = z.object({
  processId: text,
  /** Pushes go on behind this event. Default 0: from the first one that is kept. */
  afterSeq: u64.nullish(),
  /** The life of the server the cursor belongs to; another one is refused. */
  epoch: text.nullish(),
});
/** Result of `process/follow`. */
export const FollowResult = z.object({
  epoch: text,
  /** All events from this seq on are held; a higher one than `afterSeq + 1` means a gap, which is pushed first. */
  firstRetainedSeq: u64,
  /** The number the next event will get. */
  nextSeq: u64,
});

/** Params of `process/flush`. */
export const FlushParams = z.object({ processId: text });
/** Result of `process/flush`. */
export const FlushResult = z.object({
  /** Every event through this one was pushed on this connection before this answer. */
  throughSeq: u64,
});

/** Params of `process/release`. */
export const ReleaseParams = z.object({ processId: text });
/** Result of `process/release`: an empty object. */
export const ReleaseResult = z.object({});

/** Params of `process/output`. */
export const OutputParams = z.object({ processId: text, seq: u64, stream: StreamName, chunk: base64 });
/** Params of `process/exited`. */
export const ExitedParams = z.object({
  processId: text,
  seq: u64,
  /** 128 + n for a death by signal n. */
  exitCode: z.number(),
  /** Of the base protocol; false here. */
  sandboxDenied: z.boolean(),
  /** Name of the signal it died of; absent for an exit of its own. */
  signal: z.string().optional(),
  /** Why it ended; absent from foreign servers. */
  reason: ExitReason.optional(),
});
/** Params of `process/closed`: the last event of a process. */
export const ClosedParams = z.object({
  processId: text,
  seq: u64,
  /** Why its streams count as ended; absent from foreign servers. */
  reason: CloseReason.optional(),
  /** Processes that held the streams, for `heldOpen`. */
  holders: u64.optional(),
});
/** Params of `process/gap`; it takes no seq itself. */
export const GapParams = z.object({ processId: text, fromSeq: u64, throughSeq: u64, bytes: u64.optional() });
/** Params of `process/ack`. */
export const AckParams = z.object({
  processId: text,
  /** Everything up to and including this seq has arrived. */
  seq: u64,
});
