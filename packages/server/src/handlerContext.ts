/** What a handler gets besides its params. */
import type { Parking } from './connection/parking.js';
import type { Pushes } from './connection/pushes.js';
import type { ServerContext } from './serverContext.js';
import type { Session } from './sessions/session.js';

export interface HandlerContext {
  readonly server: ServerContext;
  readonly session: Session;
  readonly parking: Parking;
  readonly pushes: Pushes;
  /** Runs `action` when the answer with this result has been handed to the transport. */
  readonly afterReply: (reply: object, action: () => void) => void;
}
