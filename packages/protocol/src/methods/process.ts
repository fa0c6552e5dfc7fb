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
});

export const StartResult = z.object({
  processId: text,
  sandboxType: z.literal('none'),
  pid: u64,
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
  /** `interrupt`, or a signal's name such as `SIGTERM`. */
  signal: text,
});
export const SignalResult = z.object({
  /** Whether a running process's group got it. */
  delivered: z.boolean(),
});

export const TerminateParams = z.object({ processId: text });
export const TerminateResult = z.object({
  /** Whether the process was running, or starting, when the call came. */
  running: z.boolean(),
});

export const OutputParams = z.object({ processId: text, seq: u64, stream: StreamName, chunk: base64 });
export const ExitedParams = z.object({
  processId: text,
  seq: u64,
  /** 128 + n for a death by signal n. */
  exitCode: z.number(),
  sandboxDenied: z.boolean(),
  signal: z.string().optional(),
});
export const ClosedParams = z.object({ processId: text, seq: u64 });
export const GapParams = z.object({ processId: text, fromSeq: u64, throughSeq: u64, bytes: u64.optional() });
export const AckParams = z.object({
  processId: text,
  /** Everything up to and including this seq has arrived. */
  seq: u64,
});
