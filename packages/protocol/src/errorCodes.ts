/** Codes of the wire, and what there is to say about a reason. Pure. */

/** Codes of the base protocol; finer meaning is in `error.data.reason`. */
export const ErrorCode = {
  transportClosed: -32000,
  notFound: -32004,
  attachedElsewhere: -32010,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
} as const;

export interface ReasonEntry {
  readonly code: number;
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** `error.data.kind` of the base protocol, where it has one. */
  readonly kind?: 'spawnNotFound' | 'spawnPermissionDenied' | 'spawnFailed' | 'sandboxUnavailable';
  readonly meaning: string;
  readonly action: string;
}
