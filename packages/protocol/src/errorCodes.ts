/** Codes of the wire, and what there is to say about a reason. Pure. */

/** Codes of the base protocol; finer meaning is in `error.data.reason`. */
export const ErrorCode = {
  /** Of the base protocol, for a transport that closed; this server never sends it. */
  transportClosed: -32000,
  /** A file or a handle does not exist. */
  notFound: -32004,
  /** Another client controls the session, or has taken it over; `data.reason` says which. */
  attachedElsewhere: -32010,
  /** The request cannot be served as it stands: wrong state, unknown or taken id, a limit; `data.reason` says why. */
  invalidRequest: -32600,
  /** The server has no such method. */
  methodNotFound: -32601,
  /** A parameter is missing, of the wrong type or out of range; `data.field` names it. */
  invalidParams: -32602,
  /** The host or the server failed: a start, a file operation, an http request. */
  internal: -32603,
} as const;

/** What there is to say about one reason; an entry of {@link reasons}. */
export interface ReasonEntry {
  /** The number it travels under; one of {@link ErrorCode}. */
  readonly code: number;
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** `error.data.kind` of the base protocol, where it has one. */
  readonly kind?: 'spawnNotFound' | 'spawnPermissionDenied' | 'spawnFailed' | 'sandboxUnavailable';
  /** One sentence: what happened. */
  readonly meaning: string;
  /** One sentence: what the caller can do about it. */
  readonly action: string;
}
