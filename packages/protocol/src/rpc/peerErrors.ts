/** How a request of ours can fail. Pure. */
import type { CloseReason } from './transport.js';

/** An error answer of the other side. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError';
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The transport closed before the answer came. */
export class TransportClosedError extends Error {
  override readonly name = 'TransportClosedError';
  readonly reason: CloseReason;
  constructor(reason: CloseReason) {
    super(`the connection was lost before the answer came: ${reason.detail}`);
    this.reason = reason;
  }
}
