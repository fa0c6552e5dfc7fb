/** Types of the wire, inferred from the schemas; importing them costs nothing at run time. */
import type { z } from 'zod';
import type * as fs from './methods/fs.js';
import type * as process from './methods/process.js';
import type * as session from './methods/session.js';
import type { clientNotificationSchemas, requestSchemas, serverNotificationSchemas } from './schemas.js';
import type { ClientNotificationMethod, RequestMethod, ServerNotificationMethod } from './registry.js';

export type ParamsOf<M extends RequestMethod> = z.infer<(typeof requestSchemas)[M]['params']>;
export type ResultOf<M extends RequestMethod> = z.infer<(typeof requestSchemas)[M]['result']>;
export type ClientNotificationParams<M extends ClientNotificationMethod> = z.infer<
  (typeof clientNotificationSchemas)[M]
>;
export type ServerNotificationParams<M extends ServerNotificationMethod> = z.infer<
  (typeof serverNotificationSchemas)[M]
>;

export type Extensions = z.infer<typeof session.Extensions>;
export type InitializeParams = z.infer<typeof session.InitializeParams>;
export type InitializeResult = z.infer<typeof session.InitializeResult>;
export type EnvironmentInfo = z.infer<typeof session.EnvironmentInfo>;
export type ServerLimits = z.infer<typeof session.ServerLimits>;
export type StreamName = z.infer<typeof process.StreamName>;
export type EnvPolicy = z.infer<typeof process.EnvPolicy>;
export type StartParams = z.infer<typeof process.StartParams>;
export type StartResult = z.infer<typeof process.StartResult>;
export type ReadParams = z.infer<typeof process.ReadParams>;
export type ReadResult = z.infer<typeof process.ReadResult>;
export type WireChunk = z.infer<typeof process.Chunk>;
export type WireGap = z.infer<typeof process.Gap>;
export type WriteParams = z.infer<typeof process.WriteParams>;
export type WriteResult = z.infer<typeof process.WriteResult>;
export type SignalParams = z.infer<typeof process.SignalParams>;
export type SignalResult = z.infer<typeof process.SignalResult>;
export type TerminateParams = z.infer<typeof process.TerminateParams>;
export type TerminateResult = z.infer<typeof process.TerminateResult>;
export type ExitSummary = z.infer<typeof process.ExitSummary>;
export type ExitReason = z.infer<typeof process.ExitReason>;
export type CloseReasonName = z.infer<typeof process.CloseReason>;
export type ProcessSummary = z.infer<typeof process.ProcessSummary>;
export type Leftover = z.infer<typeof process.Leftover>;
export type TerminalSize = z.infer<typeof process.TerminalSize>;
export type ResizeParams = z.infer<typeof process.ResizeParams>;
export type ListParams = z.infer<typeof process.ListParams>;
export type ListResult = z.infer<typeof process.ListResult>;
export type FollowParams = z.infer<typeof process.FollowParams>;
export type FollowResult = z.infer<typeof process.FollowResult>;
export type FlushParams = z.infer<typeof process.FlushParams>;
export type FlushResult = z.infer<typeof process.FlushResult>;
export type ReleaseParams = z.infer<typeof process.ReleaseParams>;
export type OutputParams = z.infer<typeof process.OutputParams>;
export type ExitedParams = z.infer<typeof process.ExitedParams>;
export type ClosedParams = z.infer<typeof process.ClosedParams>;
export type GapParams = z.infer<typeof process.GapParams>;
export type AckParams = z.infer<typeof process.AckParams>;
export type FileKind = z.infer<typeof fs.FileKind>;
export type FileDetail = z.infer<typeof fs.FileDetail>;
export type InPlaceReason = z.infer<typeof fs.InPlaceReason>;
export type DirectoryEntry = z.infer<typeof fs.DirectoryEntry>;
export type WalkEntry = z.infer<typeof fs.WalkEntry>;
export type WatchChange = z.infer<typeof fs.WatchChange>;
