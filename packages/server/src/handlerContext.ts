/** What a handler gets besides its params. */
import type { BulkReplies } from './connection/bulkReplies.js';
import type { Parking } from './connection/parking.js';
import type { Pushes } from './connection/pushes.js';
import type { ServerContext } from './serverContext.js';
import type { Session } from './sessions/session.js';

export interface HandlerContext {
  readonly server: ServerContext;
  readonly session: Session;
  readonly parking: Parking;
  readonly pushes: Pushes;
  /** For answers that may be large. */
  readonly bulk: BulkReplies;
  /** Runs `action` when the answer has been handed to the transport, with this result or an error in its place. */
  readonly afterReply: (reply: object, action: (sent: boolean) => void) => void;
}
