/** What a handler gets besides its params. */
import type { BulkReplies } from './connection/bulkReplies.js';
import type { Parking } from './connection/parking.js';
import type { Pushes } from './connection/pushes.js';
import type { ConnectionFiles } from './files/connectionFiles.js';
import type { ConnectionHttp } from './http/connectionHttp.js';
import type { ServerContext } from './serverContext.js';
import type { Session } from './sessions/session.js';

export interface HandlerContext {
  readonly server: ServerContext;
  readonly session: Session;
  readonly parking: Parking;
  readonly pushes: Pushes;
  /** For answers that may be large. */
  readonly bulk: BulkReplies;
  /** Open files, watches and the order of file requests of this connection; what outlives it is `session.files`. */
  readonly files: ConnectionFiles;
  /** Undefined where this connection may make no http requests. */
  readonly http: ConnectionHttp | undefined;
  /** Runs `action` when the answer has been handed to the transport, with this result or an error in its place. */
  readonly afterReply: (reply: object, action: (sent: boolean) => void) => void;
}
