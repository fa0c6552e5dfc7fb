/** How a request of ours can fail. Pure. */
import type { CloseReason } from './transport.js';

/** An error answer of the other side. */
export class RemoteError extends Error {
  /** Always `RemoteError`. */
  override readonly name = 'RemoteError';
  /** `error.code` as it came. */
  readonly code: number;
  /** `error.data` as it came; see {@link knownReason}. */
  readonly data: unknown;
  /** Members of the error answer. */
  constructor(code: number, message: string, data: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** A request is larger than the other side takes; it was not sent. */
export class RequestTooLargeError extends Error {
  /** Always `RequestTooLargeError`. */
  override readonly name = 'RequestTooLargeError';
  /** What there is too much of, and how much of it may be. */
  readonly limit:
    | {
        /** Most bytes of a message. */
        readonly bytes: number;
      }
    | {
        /** Most JSON values in a message. */
        readonly values: number;
      };
  /** `method` is named in the message. */
  constructor(method: string, limit: RequestTooLargeError['limit']) {
    const most = 'bytes' in limit ? `${limit.bytes} bytes` : `${limit.values} JSON values`;
    super(`${method} is larger than the other side takes, which is ${most}; nothing was sent; send it in parts`);
    this.limit = limit;
  }
}

/** The transport closed before the answer came. */
export class TransportClosedError extends Error {
  /** Always `TransportClosedError`. */
  override readonly name = 'TransportClosedError';
  /** Why it closed. */
  readonly reason: CloseReason;
  /** `reason` is what the transport told. */
  constructor(reason: CloseReason) {
    super(`the connection was lost before the answer came: ${reason.detail}`);
    this.reason = reason;
  }
}
