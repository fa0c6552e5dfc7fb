/** Types of the wire, inferred from the schemas; importing them costs nothing at run time. */
import type { z } from 'zod';
import type * as fs from './methods/fs.js';
import type * as process from './methods/process.js';
import type * as session from './methods/session.js';
import type { clientNotificationSchemas, requestSchemas, serverNotificationSchemas } from './schemas.js';
import type { ClientNotificationMethod, RequestMethod, ServerNotificationMethod } from './registry.js';

/** Params of a request, by its method. */
export type ParamsOf<M extends RequestMethod> = z.infer<(typeof requestSchemas)[M]['params']>;
/** Result of a request, by its method, as this server gives it; foreign servers lack members of ours. */
export type ResultOf<M extends RequestMethod> = z.infer<(typeof requestSchemas)[M]['result']>;
/** Params of a notification to the server, by its method. */
export type ClientNotificationParams<M extends ClientNotificationMethod> = z.infer<
  (typeof clientNotificationSchemas)[M]
>;
/** Params of a notification to the client, by its method. */
export type ServerNotificationParams<M extends ServerNotificationMethod> = z.infer<
  (typeof serverNotificationSchemas)[M]
>;

/**
 * What a side can do beyond the base protocol; absent members mean false.
 *
 * @interface
 */
export type Extensions = z.infer<typeof session.Extensions>;
/**
 * Params of `initialize`: who the client is, and which session it wants.
 *
 * @interface
 */
export type InitializeParams = z.infer<typeof session.InitializeParams>;
/**
 * Result of `initialize`: the session, and what the server is and takes.
 *
 * @interface
 */
export type InitializeResult = z.infer<typeof session.InitializeResult>;
/**
 * Result of `environment/info`: the host of the server. Folders are `file:` URIs.
 *
 * @interface
 */
export type EnvironmentInfo = z.infer<typeof session.EnvironmentInfo>;
/**
 * Limits a client can plan with; sizes in bytes.
 *
 * @interface
 */
export type ServerLimits = z.infer<typeof session.ServerLimits>;
/**
 * Where output comes from: `pty` is the one stream of a process on a terminal.
 *
 * @useDeclaredType
 */
export type StreamName = z.infer<typeof process.StreamName>;
/**
 * What a process inherits from the environment of the server. Patterns know `*` and `?` and ignore case.
 *
 * @interface
 */
export type EnvPolicy = z.infer<typeof process.EnvPolicy>;
/**
 * Params of `process/start`.
 *
 * @interface
 */
export type StartParams = z.infer<typeof process.StartParams>;
/**
 * Result of `process/start`.
 *
 * @interface
 */
export type StartResult = z.infer<typeof process.StartResult>;
/**
 * Params of `process/read`: what is kept behind a cursor. Nothing is consumed by it.
 *
 * @interface
 */
export type ReadParams = z.infer<typeof process.ReadParams>;
/**
 * Result of `process/read`. Without `maxBytes` it says of exit and close whether it covers them, with `maxBytes` whether
 * they happened.
 *
 * @interface
 */
export type ReadResult = z.infer<typeof process.ReadResult>;
/**
 * One piece of output, in base64; at most 64 KiB of bytes.
 *
 * @interface
 */
export type WireChunk = z.infer<typeof process.Chunk>;
/**
 * Output that is no longer kept: the events from `fromSeq` through `throughSeq`.
 *
 * @interface
 */
export type WireGap = z.infer<typeof process.Gap>;
/**
 * Params of `process/write`: the next bytes of stdin.
 *
 * @interface
 */
export type WriteParams = z.infer<typeof process.WriteParams>;
/**
 * Result of `process/write`. Only `accepted` took the bytes.
 *
 * @interface
 */
export type WriteResult = z.infer<typeof process.WriteResult>;
/**
 * Params of `process/signal`.
 *
 * @interface
 */
export type SignalParams = z.infer<typeof process.SignalParams>;
/**
 * Result of `process/signal`.
 *
 * @interface
 */
export type SignalResult = z.infer<typeof process.SignalResult>;
/**
 * Params of `process/terminate`.
 *
 * @interface
 */
export type TerminateParams = z.infer<typeof process.TerminateParams>;
/**
 * Result of `process/terminate`.
 *
 * @interface
 */
export type TerminateResult = z.infer<typeof process.TerminateResult>;
/**
 * How a process ended.
 *
 * @interface
 */
export type ExitSummary = z.infer<typeof process.ExitSummary>;
/**
 * Why a process ended: by itself, because its `timeoutMs` ran out, or by `process/terminate`.
 *
 * @useDeclaredType
 */
export type ExitReason = z.infer<typeof process.ExitReason>;
/**
 * Why the streams of a process count as ended: all did, or `lingerMs` ran out while others held them open.
 *
 * @useDeclaredType
 */
export type CloseReasonName = z.infer<typeof process.CloseReason>;
/**
 * What a server says about one of its processes. Sizes in bytes, times in ms since 1970.
 *
 * @interface
 */
export type ProcessSummary = z.infer<typeof process.ProcessSummary>;
/**
 * A process outside the table: what a tree left behind.
 *
 * @interface
 */
export type Leftover = z.infer<typeof process.Leftover>;
/**
 * Cells of a terminal, each from 1 to 65,535.
 *
 * @interface
 */
export type TerminalSize = z.infer<typeof process.TerminalSize>;
/**
 * Params of `process/resize`: cells of the terminal, each from 1 to 65,535.
 *
 * @interface
 */
export type ResizeParams = z.infer<typeof process.ResizeParams>;
/**
 * Params of `process/list`; may be left out.
 *
 * @useDeclaredType
 */
export type ListParams = z.infer<typeof process.ListParams>;
/**
 * Result of `process/list`: the processes of the session that are kept.
 *
 * @interface
 */
export type ListResult = z.infer<typeof process.ListResult>;
/**
 * Params of `process/follow`: pushes on this connection start, or start again, behind a cursor.
 *
 * @interface
 */
export type FollowParams = z.infer<typeof process.FollowParams>;
/**
 * Result of `process/follow`.
 *
 * @interface
 */
export type FollowResult = z.infer<typeof process.FollowResult>;
/**
 * Params of `process/flush`.
 *
 * @interface
 */
export type FlushParams = z.infer<typeof process.FlushParams>;
/**
 * Result of `process/flush`; it comes behind the pushes it speaks of.
 *
 * @interface
 */
export type FlushResult = z.infer<typeof process.FlushResult>;
/**
 * Params of `process/release`: forgets a closed process before its time.
 *
 * @interface
 */
export type ReleaseParams = z.infer<typeof process.ReleaseParams>;
/**
 * Params of `process/output`: one chunk of output, in base64.
 *
 * @interface
 */
export type OutputParams = z.infer<typeof process.OutputParams>;
/**
 * Params of `process/exited`. Output may come behind it.
 *
 * @interface
 */
export type ExitedParams = z.infer<typeof process.ExitedParams>;
/**
 * Params of `process/closed`: the last event of a process.
 *
 * @interface
 */
export type ClosedParams = z.infer<typeof process.ClosedParams>;
/**
 * Params of `process/gap`: events that are no longer kept. It takes no seq itself.
 *
 * @interface
 */
export type GapParams = z.infer<typeof process.GapParams>;
/**
 * Params of `process/ack`.
 *
 * @interface
 */
export type AckParams = z.infer<typeof process.AckParams>;
/**
 * What an entry of a folder is.
 *
 * @useDeclaredType
 */
export type FileKind = z.infer<typeof fs.FileKind>;
/**
 * What more there is to say about a file, where `detail` asks for it.
 *
 * @interface
 */
export type FileDetail = z.infer<typeof fs.FileDetail>;
/**
 * Why a write was made in place although it was to be atomic: a rename would have changed what the file is. `asked`: the
 * caller wanted it so.
 *
 * @useDeclaredType
 */
export type InPlaceReason = z.infer<typeof fs.InPlaceReason>;
/**
 * One entry of `fs/readDirectory`.
 *
 * @interface
 */
export type DirectoryEntry = z.infer<typeof fs.DirectoryEntry>;
/**
 * One entry of `fs/walk`; `path` is a `file:` URI.
 *
 * @interface
 */
export type WalkEntry = z.infer<typeof fs.WalkEntry>;
/**
 * One change of `fs/changed`; `path` is a `file:` URI.
 *
 * @interface
 */
export type WatchChange = z.infer<typeof fs.WatchChange>;
