/**
 * What `@exec-server/protocol/schemas` exports: a zod schema for each shape of the wire, and tables of them by method. Of the
 * packages only the server imports it, since it carries the schema library.
 *
 * @packageDocumentation
 */
import type { z } from 'zod';
import * as fs from './methods/fs.js';
import * as http from './methods/http.js';
import * as process from './methods/process.js';
import * as session from './methods/session.js';
import type { ClientNotificationMethod, RequestMethod, ServerNotificationMethod } from './registry.js';

export * from './methods/fs.js';
export * from './methods/http.js';
export * from './methods/process.js';
export * from './methods/session.js';

/** Params and result of each request, by method. */
export const requestSchemas = {
  initialize: { params: session.InitializeParams, result: session.InitializeResult },
  'environment/info': { params: session.NoParams, result: session.EnvironmentInfo },
  'environment/status': { params: session.NoParams, result: session.EnvironmentStatusResult },
  'process/start': { params: process.StartParams, result: process.StartResult },
  'process/read': { params: process.ReadParams, result: process.ReadResult },
  'process/write': { params: process.WriteParams, result: process.WriteResult },
  'process/signal': { params: process.SignalParams, result: process.SignalResult },
  'process/terminate': { params: process.TerminateParams, result: process.TerminateResult },
  'process/resize': { params: process.ResizeParams, result: process.ResizeResult },
  'process/list': { params: process.ListParams, result: process.ListResult },
  'process/release': { params: process.ReleaseParams, result: process.ReleaseResult },
  'process/follow': { params: process.FollowParams, result: process.FollowResult },
  'process/flush': { params: process.FlushParams, result: process.FlushResult },
  'fs/readFile': { params: fs.ReadFileParams, result: fs.ReadFileResult },
  'fs/writeFile': { params: fs.WriteFileParams, result: fs.WriteFileResult },
  'fs/open': { params: fs.OpenParams, result: fs.OpenResult },
  'fs/readBlock': { params: fs.ReadBlockParams, result: fs.ReadBlockResult },
  'fs/writeBlock': { params: fs.WriteBlockParams, result: fs.WriteBlockResult },
  'fs/close': { params: fs.CloseParams, result: fs.CloseResult },
  'fs/createDirectory': { params: fs.CreateDirectoryParams, result: fs.CreateDirectoryResult },
  'fs/remove': { params: fs.RemoveParams, result: fs.RemoveResult },
  'fs/copy': { params: fs.CopyParams, result: fs.CopyResult },
  'fs/move': { params: fs.MoveParams, result: fs.MoveResult },
  'fs/getMetadata': { params: fs.GetMetadataParams, result: fs.GetMetadataResult },
  'fs/canonicalize': { params: fs.CanonicalizeParams, result: fs.CanonicalizeResult },
  'fs/readDirectory': { params: fs.ReadDirectoryParams, result: fs.ReadDirectoryResult },
  'fs/walk': { params: fs.WalkParams, result: fs.WalkResult },
  'fs/watchMissing': { params: fs.WatchMissingParams, result: fs.WatchMissingResult },
  'fs/watch': { params: fs.WatchParams, result: fs.WatchResult },
  'fs/unwatch': { params: fs.UnwatchParams, result: fs.UnwatchResult },
  'fs/pack': { params: fs.PackParams, result: fs.PackResult },
  'fs/unpack': { params: fs.UnpackParams, result: fs.UnpackResult },
  'http/request': { params: http.HttpRequestParams, result: http.HttpRequestResult },
  ping: { params: session.NoParams, result: session.PingResult },
  'session/close': { params: session.SessionCloseParams, result: session.SessionCloseResult },
} as const satisfies Record<RequestMethod, { params: z.ZodType; result: z.ZodType }>;

/** Params of each notification to the server, by method. */
export const clientNotificationSchemas = {
  initialized: session.NoParams,
  'process/ack': process.AckParams,
} as const satisfies Record<ClientNotificationMethod, z.ZodType>;

/** Params of each notification to the client, by method. */
export const serverNotificationSchemas = {
  'process/output': process.OutputParams,
  'process/exited': process.ExitedParams,
  'process/closed': process.ClosedParams,
  'process/gap': process.GapParams,
  'fs/missingChanged': fs.MissingChangedParams,
  'fs/changed': fs.ChangedParams,
  'http/request/bodyDelta': http.BodyDeltaParams,
} as const satisfies Record<ServerNotificationMethod, z.ZodType>;
