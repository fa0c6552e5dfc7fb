/**
 * The exec server, to be run inside another program: {@link createExecServer} makes one, {@link serveStdio} serves one client on
 * stdin and stdout, {@link ExecServer.listen} any number over WebSocket, {@link ExecServer.accept} one over a transport of your
 * own. The command `exec-server` is made of these.
 *
 * A connected client can run anything as the user of the program; there is no sandbox.
 *
 * @packageDocumentation
 */
export { type Authenticate, type AuthResult, bearerToken, unauthorized } from './auth/bearer.js';
export { capabilityToken } from './auth/capabilityToken.js';
export { type Clock, hostClock } from './clock.js';
export { serveStdio } from './listen/stdio.js';
export type { WebSocketListener, WebSocketListenOptions } from './listen/websocket.js';
export type {
  ChildExit,
  OutputSource,
  Platform,
  SpawnedChild,
  SpawnRequest,
  StdinSink,
  TerminalControl,
} from './host/child.js';
export { createHostPlatform, type HostPlatform, type HostPlatformOptions } from './host/spawn.js';
export type { SpoolLimits } from './processes/spool/spoolStore.js';
export {
  type AcceptOptions,
  createExecServer,
  type ExecServer,
  type ExecServerOptions,
  type Gauges,
} from './server.js';
export type { Log, LogLevel } from './serverContext.js';
