/** Method → params and result schema. Only the server imports this: it carries the schema library. */
import type { z } from 'zod';
import * as process from './methods/process.js';
import * as session from './methods/session.js';
import type { ClientNotificationMethod, RequestMethod, ServerNotificationMethod } from './registry.js';

export * from './methods/process.js';
export * from './methods/session.js';

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
  ping: { params: session.NoParams, result: session.PingResult },
  'session/close': { params: session.SessionCloseParams, result: session.SessionCloseResult },
} as const satisfies Record<RequestMethod, { params: z.ZodType; result: z.ZodType }>;

export const clientNotificationSchemas = {
  initialized: session.NoParams,
  'process/ack': process.AckParams,
} as const satisfies Record<ClientNotificationMethod, z.ZodType>;

export const serverNotificationSchemas = {
  'process/output': process.OutputParams,
  'process/exited': process.ExitedParams,
  'process/closed': process.ClosedParams,
  'process/gap': process.GapParams,
} as const satisfies Record<ServerNotificationMethod, z.ZodType>;
