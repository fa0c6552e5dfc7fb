/** Client of an exec server: processes and files that outlive the connection. */
export type { ProcessList, TerminateReply } from './callGuards.js';
export type { CallableMethod, CallOptions } from './calls.js';
export { Client } from './client.js';
export type { Clock } from './clock.js';
export { connect, type ConnectOptions, type TransportOptions } from './connect.js';
export { ClientError, type ClientErrorCode, clientErrorCodes, type ClientErrorData, isClientError } from './errors.js';
export type { ClosedEvent, Closing, Exit, ExitedEvent, GapEvent, OutputEvent, ProcessEvent } from './events.js';
export type { ClientGauges, RecordGauges, SessionGauges } from './gauges.js';
export { LazyClient, lazyClient } from './lazyClient.js';
export type { ClientState, CommonOptions, ServerInfo } from './options.js';
export { ping, type PingOptions } from './ping.js';
export type {
  CloseStatus,
  EventsOptions,
  ExitStatus,
  TerminateOptions,
  WriteOptions,
} from './process/handleOptions.js';
export { ProcessHandle } from './process/processHandle.js';
export type { RunInput, RunOptions, RunResult } from './process/run.js';
export { SpawnedProcess, type SpawnOptions } from './process/spawn.js';
export type { StartOptions } from './process/startParams.js';
export type { WaitOptions } from './process/waiting.js';
export type { StateListener } from './session.js';
export type { ChildOptions } from './transport/child.js';
export type { GivenTransport } from './transport/given.js';
export type { TokenContext, WebSocketOptions } from './transport/websocket.js';
