/** The embeddable exec server. */
export { type Authenticate, type AuthResult, bearerToken, unauthorized } from './auth/bearer.js';
export { capabilityToken } from './auth/capabilityToken.js';
export { type Clock, hostClock } from './clock.js';
export { serveStdio } from './listen/stdio.js';
export type { WebSocketListener, WebSocketListenOptions } from './listen/websocket.js';
export type { ChildExit, OutputSource, Platform, SpawnedChild, SpawnRequest, StdinSink } from './host/child.js';
export { createHostPlatform } from './host/spawn.js';
export {
  type AcceptOptions,
  createExecServer,
  type ExecServer,
  type ExecServerOptions,
  type Gauges,
} from './server.js';
export type { Log, LogLevel } from './serverContext.js';
