/** Everything the packages and their users share. Schemas with a run-time cost are under `@exec-server/protocol/schemas`. */
export { type Base64Result, decodeBase64, encodeBase64 } from './base64.js';
export { decodeEnvelope, encodeRequestId, type Envelope } from './envelope.js';
export {
  ErrorCode,
  isRetryable,
  knownReason,
  type Reason,
  type ReasonEntry,
  reasons,
  WireError,
  type WireErrorData,
} from './errors.js';
export { decodeUtf8, LineDecoder, type LineResult } from './framing.js';
export {
  type Epoch,
  epoch,
  type ProcessId,
  processId,
  type RequestId,
  type Seq,
  type SessionId,
  sessionId,
} from './ids.js';
export * as limits from './limits.js';
export { clampTimerMs } from './limits.js';
export {
  type ClientNotificationMethod,
  clientNotifications,
  type Family,
  isRequestMethod,
  type ReplayPolicy,
  type RequestEntry,
  type RequestMethod,
  requests,
  type ServerNotificationMethod,
  serverNotifications,
} from './registry.js';
export { type ByteSink, type ByteSource, byteTransport, type ByteTransportOptions } from './rpc/byteTransport.js';
export { memoryTransportPair } from './rpc/memoryTransport.js';
export { Peer, type PeerHandlers, type PeerOptions } from './rpc/peer.js';
export { RemoteError, RequestTooLargeError, TransportClosedError } from './rpc/peerErrors.js';
export { type SocketLike, socketTransport, type SocketTransportOptions } from './rpc/socketTransport.js';
export type { CloseReason, Transport, TransportListener } from './rpc/transport.js';
export { agreeOnVersion, PACKAGE_VERSION, type PeerKind, PROTOCOL_VERSION } from './version.js';
export type {
  AckParams,
  ClientNotificationParams,
  ClosedParams,
  CloseReasonName,
  DirectoryEntry,
  EnvironmentInfo,
  EnvPolicy,
  ExitedParams,
  ExitReason,
  ExitSummary,
  Extensions,
  FileDetail,
  FileKind,
  GapParams,
  InitializeParams,
  InitializeResult,
  InPlaceReason,
  Leftover,
  ListParams,
  ListResult,
  OutputParams,
  ParamsOf,
  ProcessSummary,
  ReadParams,
  ReadResult,
  FlushParams,
  FlushResult,
  FollowParams,
  FollowResult,
  ReleaseParams,
  ResizeParams,
  ResultOf,
  ServerLimits,
  ServerNotificationParams,
  SignalParams,
  SignalResult,
  StartParams,
  StartResult,
  StreamName,
  TerminalSize,
  TerminateParams,
  TerminateResult,
  WalkEntry,
  WatchChange,
  WireChunk,
  WireGap,
  WriteParams,
  WriteResult,
} from './wire.js';
