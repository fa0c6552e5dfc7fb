/**
 * What both sides of the wire share: types of every message, the tables of methods and errors, limits, framing, transports and
 * the JSON-RPC peer. For programs that speak the protocol themselves; what the messages mean is in `docs/protocol.md`.
 *
 * The schemas, with which messages are checked at run time, cost a library and are therefore under
 * `@exec-server/protocol/schemas`; the types here are inferred from them.
 *
 * @packageDocumentation
 */
export { type Base64Result, decodeBase64, encodeBase64 } from './base64.js';
export { decodeEnvelope, encodeRequestId, type Envelope, type RpcError } from './envelope.js';
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
/** Default limits. Names end in their unit; what a server really has is in `limits` of the answer to `initialize`. */
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
export { withPayload } from './rpc/answerText.js';
export { type ByteSink, type ByteSource, byteTransport, type ByteTransportOptions } from './rpc/byteTransport.js';
export { memoryTransportPair } from './rpc/memoryTransport.js';
export { Peer, type PeerHandlers, type PeerOptions } from './rpc/peer.js';
export { RemoteError, RequestTooLargeError, TransportClosedError } from './rpc/peerErrors.js';
export { type SocketLike, socketTransport, type SocketTransportOptions } from './rpc/socketTransport.js';
export { subprotocolsFor, tokenOffered, WEBSOCKET_SUBPROTOCOL } from './rpc/subprotocols.js';
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
