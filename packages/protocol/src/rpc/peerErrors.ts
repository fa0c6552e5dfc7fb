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

/** A request is larger than the other side takes; it was not sent. */
export class RequestTooLargeError extends Error {
  override readonly name = 'RequestTooLargeError';
  /** What there is too much of, and how much of it may be. */
  readonly limit: { readonly bytes: number } | { readonly values: number };
  constructor(method: string, limit: RequestTooLargeError['limit']) {
    const most = 'bytes' in limit ? `${limit.bytes} bytes` : `${limit.values} JSON values`;
    super(`${method} is larger than the other side takes, which is ${most}; nothing was sent`);
    this.limit = limit;
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
