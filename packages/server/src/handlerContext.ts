/** What a handler gets besides its params. */
import type { Seq } from '@exec-server/protocol';
import type { Parking } from './connection/parking.js';
import type { Process } from './processes/process.js';
import type { ServerContext } from './serverContext.js';
import type { Session } from './sessions/session.js';

export interface HandlerContext {
  readonly server: ServerContext;
  readonly session: Session;
  readonly parking: Parking;
  /** The caller has everything through `afterSeq`, and this reply goes on through `throughSeq`. */
  readonly readThrough: (process: Process, afterSeq: Seq, throughSeq: Seq, reply: object) => void;
}
