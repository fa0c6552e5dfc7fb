/** How a client gets its connections; the transports behind it are the only files that know Node. */
import type { Transport } from '@exec-server/protocol';
import type { ClientErrorData } from '../errors.js';
import type { CarrierCounts } from '../liveness.js';

/** Ping frames, which pass whatever waits to be handled on either side, and what the carrier has moved. */
export interface Pulse {
  ping(): void;
  /** Calls `listener` at each frame of this kind that comes. */
  onSign(listener: () => void): void;
  counts(): CarrierCounts;
}

/** A dialed connection. */
export interface Carrier {
  readonly transport: Transport;
  /** Resolves when nothing of the connection is left: socket closed, child and its group ended. Never rejects. */
  readonly gone: Promise<void>;
  /** Absent where the carrier has no ping frames. */
  readonly pulse?: Pulse;
  /** What is known about the end of the server, for errors: exit code, tail of stderr. */
  report?(): ClientErrorData;
}

export interface Dialer {
  /** What stands in errors: the URL, or the program. */
  readonly label: string;
  /** Whether a lost connection can be dialed again. */
  readonly redials: boolean;
  /** Whether the server ends with the transport, so that a session cannot outlive it. */
  readonly ownsServer: boolean;
  /**
   * Opens a connection. Rejects with a ClientError: CONNECT_FAILED may be tried again, any other code is final. Gives up
   * and cleans up when `signal` aborts.
   */
  dial(signal: AbortSignal): Promise<Carrier>;
}
