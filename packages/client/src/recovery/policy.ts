/** What the recovery machine is told once. Pure. */

export interface Policy {
  /** What stands in errors: the URL or the program. */
  readonly label: string;
  /** Whether a lost connection is dialed again. */
  readonly reconnect: boolean;
  /** Attempts per loss; more is a failure. */
  readonly maxReconnects: number;
  readonly recoveryMs: number;
  readonly connectTimeoutMs: number;
  readonly initializeTimeoutMs: number;
}
