/** What a client holds in memory, as numbers. Pure. */

/**
 * Of the processes a client follows. One whose last event has come is no longer among them: what is left of it belongs to
 * its handles, for as long as the caller keeps those.
 */
export interface RecordGauges {
  /** How many there are. */
  readonly processes: number;
  /** Output bytes held until the events before them have come; at most 4 MiB a process. */
  readonly reorderBytes: number;
  /** Bytes of the newest events, for iterators that begin late or lag; at most 1 MiB a process, or one event. */
  readonly tailBytes: number;
  /** Output bytes read back from the server and not handed to their iterator yet, over all iterators; one answer each. */
  readonly backlogBytes: number;
}

/** Of everything a session owns. */
export interface SessionGauges extends RecordGauges {
  /** Bytes given to the transport that it has not sent yet. */
  readonly queuedBytes: number;
  /** Calls that wait for a connection, for their turn or for their answer. */
  readonly pendingCalls: number;
}

/** What a client holds at the moment, for metrics and tests. */
export interface ClientGauges extends SessionGauges {
  /** Bytes of writes to processes that the server has not accepted yet; at most 64 MiB a handle, or one write. */
  readonly stdinQueuedBytes: number;
  /** Bytes of http responses that wait for their readers, with what each piece takes besides; at most 16 MiB. */
  readonly httpQueuedBytes: number;
}
