/** Method → function. Adding a method to the registry without one here does not compile. */
import {
  type EnvironmentInfo,
  type InitializeResult,
  limits,
  PACKAGE_VERSION,
  type ParamsOf,
  PROTOCOL_VERSION,
  type RequestMethod,
  type ResultOf,
} from '@exec-server/protocol';
import type { Parked } from './connection/parking.js';
import { packTree, unpackTree } from './files/archiveHandlers.js';
import { closeHandle, openFile, readBlock, writeBlock } from './files/handleHandlers.js';
import { canonicalize, getMetadata, readDirectory, readFile, walk } from './files/readHandlers.js';
import { copyPath, movePath } from './files/treeHandlers.js';
import { unwatchPath, watchMissing, watchPath } from './files/watchHandlers.js';
import { createDirectory, removePath, writeFile } from './files/writeHandlers.js';
import { httpRequest } from './http/httpHandler.js';
import type { HandlerContext } from './handlerContext.js';
import { listProcesses, releaseProcess, resizeProcess } from './processes/bookkeeping.js';
import { flushProcess, followProcess } from './processes/followHandler.js';
import { readProcess } from './processes/readHandler.js';
import { signalProcess } from './processes/signalHandler.js';
import { startProcess } from './processes/startHandler.js';
import { terminateProcess } from './processes/terminateHandler.js';
import { writeProcess } from './processes/writeHandler.js';
import type { ServerContext } from './serverContext.js';
import type { Session } from './sessions/session.js';

type Answer<M extends RequestMethod> = ResultOf<M> | Parked<ResultOf<M>>;
type Handler<M extends RequestMethod> = (context: HandlerContext, params: ParamsOf<M>) => Answer<M>;

export const handlers: { readonly [M in Exclude<RequestMethod, 'initialize'>]: Handler<M> } = {
  'environment/info': ({ server, http }) => environmentInfo(server, http !== undefined),
  'environment/status': () => ({ status: 'ready' }),
  'process/start': startProcess,
  'process/read': readProcess,
  'process/write': writeProcess,
  'process/signal': signalProcess,
  'process/terminate': terminateProcess,
  'process/resize': resizeProcess,
  'process/list': listProcesses,
  'process/release': releaseProcess,
  'process/follow': followProcess,
  'process/flush': flushProcess,
  'fs/readFile': readFile,
  'fs/writeFile': writeFile,
  'fs/open': openFile,
  'fs/readBlock': readBlock,
  'fs/writeBlock': writeBlock,
  'fs/close': closeHandle,
  'fs/createDirectory': createDirectory,
  'fs/remove': removePath,
  'fs/copy': copyPath,
  'fs/move': movePath,
  'fs/getMetadata': getMetadata,
  'fs/canonicalize': canonicalize,
  'fs/readDirectory': readDirectory,
  'fs/walk': walk,
  'fs/watchMissing': watchMissing,
  'fs/watch': watchPath,
  'fs/unwatch': unwatchPath,
  'fs/pack': packTree,
  'fs/unpack': unpackTree,
  'http/request': httpRequest,
  ping: () => ({}),
  'session/close': ({ server, session }) => {
    server.sessions.end(session, 'closed by its client');
    return {};
  },
};

/** `http`: whether the connection may make http requests. */
function environmentInfo({ environmentInfo: info }: ServerContext, http: boolean): EnvironmentInfo {
  return { ...info, capabilities: { ...info.capabilities, httpHeaderEnvVars: http } };
}

export async function initializeResult(
  server: ServerContext,
  session: Session,
  /** `id`: what the client knows the session by. `http`: whether it may make http requests. */
  { id, resumed, http }: { readonly id: string; readonly resumed: boolean; readonly http: boolean },
): Promise<InitializeResult> {
  return {
    sessionId: id,
    observeId: session.observeId,
    environmentInfo: environmentInfo(server, http),
    serverInfo: { name: 'exec-server', version: PACKAGE_VERSION },
    protocolVersion: PROTOCOL_VERSION,
    extensions: {
      flowControl: true,
      terminal: (await server.platform.terminals?.()) ?? false,
      files: true,
      http,
    },
    epoch: server.epoch,
    limits: {
      maxMessageBytes: limits.MAX_MESSAGE_BYTES,
      maxFrameBytes: limits.MAX_FRAME_BYTES,
      maxReadBytes: limits.MAX_READ_BYTES,
      retainedBytesPerProcess: server.retainedBytesPerProcess,
      creditBytesPerProcess: limits.CREDIT_BYTES_PER_PROCESS,
      stdinQueueBytes: limits.STDIN_QUEUE_BYTES,
      pendingRequests: limits.PENDING_REQUESTS_PER_CONNECTION,
    },
    resumed,
    leaseMs: session.leaseMs,
  };
}
