/**
 * Client of an exec server: processes and files that outlive the connection.
 *
 * {@link connect} gives a {@link Client}, which runs commands ({@link Client.run}), starts processes whose events come in order
 * and each once ({@link Client.start}, {@link ProcessHandle}), and works with files ({@link Client.fs}). When the connection is
 * lost it comes back by itself, calls wait meanwhile, and nothing is lost, doubled or reordered; what is done in each case is
 * in `docs/recovery.md`. Every failure is a {@link ClientError} with a `code`.
 *
 * @example
 * ```ts
 * const client = await connect({ command: ['exec-server', '--listen', 'stdio'] });
 * const result = await client.run(['sort'], { input: 'pear\napple\n' });
 * console.log(result.exitCode, result.text());
 * await client.close();
 * ```
 *
 * @packageDocumentation
 */
export type { ProcessList, TerminateReply } from './callGuards.js';
export type { CallableMethod, CallOptions } from './calls.js';
export { Client } from './client.js';
export type { Clock } from './clock.js';
export { connect, type ConnectOptions, type TransportOptions } from './connect.js';
export {
  ClientError,
  type ClientErrorCode,
  clientErrorCodes,
  type ClientErrorData,
  type FileErrorCode,
  fileErrorCodes,
  isClientError,
} from './errors.js';
export type { ClosedEvent, Closing, Exit, ExitedEvent, GapEvent, OutputEvent, ProcessEvent } from './events.js';
export { type Unpacked, UnpackStream } from './files/archives.js';
export { FileError, isFileError } from './files/fileErrors.js';
export type { FileChange, WrittenReply } from './files/fileGuards.js';
export type {
  CopyOptions,
  FileEntry,
  FileStat,
  LinkOptions,
  MkdirOptions,
  MoveOptions,
  PackOptions,
  RangeOptions,
  ReadFileOptions,
  ReadStreamOptions,
  ReadTextOptions,
  RemoveOptions,
  StatOptions,
  UnpackOptions,
  WalkedEntry,
  WalkOptions,
  WriteFileOptions,
  WriteOptions as FileWriteOptions,
  WriteStreamOptions,
} from './files/fileOptions.js';
export { FileSystem } from './files/fileSystem.js';
export { FileWatch, type WatchBatch, type WatchOptions } from './files/watching.js';
export type { FilePath } from './files/wirePath.js';
export type { ClientGauges, RecordGauges, SessionGauges } from './gauges.js';
export { type HttpHeaderInput, type HttpOptions, HttpResponse } from './http/httpRequest.js';
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
export { type CollectOptions, type LookOptions, type OutputLook, OutputLooks } from './process/outputLooks.js';
export { ProcessHandle } from './process/processHandle.js';
export type { OutputName } from './process/streams.js';
export type { RunInput, RunOptions, RunResult } from './process/run.js';
export { SpawnedProcess, type SpawnOptions } from './process/spawn.js';
export type { StartOptions } from './process/startParams.js';
export type { WaitOptions } from './process/waiting.js';
export type { StateListener } from './session.js';
export type { ChildOptions } from './transport/childOptions.js';
export type { GivenTransport } from './transport/given.js';
export type { TokenContext, WebSocketOptions } from './transport/websocket.js';
export type { TransferOptions } from './transfer/options.js';
export type { ProgressListener, TransferProgress, TransferResult } from './transfer/tally.js';
export type { SkippedEntry, SkipReason } from './transfer/tree.js';
