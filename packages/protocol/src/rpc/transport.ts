/** The contract between the JSON-RPC peer and whatever carries its messages. No HTTP, socket or stdio words. Pure. */

/**
 * Why a transport closed.
 * - `ended`: the other side finished in an orderly way (end of input, close frame).
 * - `cut`: the transport was lost (reset, broken pipe, error).
 * - `violation`: the other side broke a rule of the transport (message too large, not UTF-8); it was closed from here.
 * - `closed`: closed from here on purpose.
 * - `stopped`: the server stops, and what it held ends with it. The other side is told the same where the carrier can carry it,
 *   and `ended` where it cannot.
 */
export interface CloseReason {
  /** Whose doing it was. */
  readonly kind: 'ended' | 'cut' | 'violation' | 'closed' | 'stopped';
  /** For a log line: an error text, a close code, what was broken. */
  readonly detail: string;
}

/** Who takes what a transport delivers. Its methods must not throw. */
export interface TransportListener {
  /** One whole message, as text. */
  message(text: string): void;
  /** `queuedBytes` has fallen; called after messages were taken by the carrier, never synchronously inside `send`. */
  drained(): void;
  /**
   * The other side sends nothing more, and what is sent to it may still arrive; the listener closes when it has answered.
   * Carriers that end in both directions at once call `closed` alone.
   */
  ended(): void;
  /** Called exactly once, after the last `message`. */
  closed(reason: CloseReason): void;
}

/** Moves whole messages; one life, ends when it closes. */
export interface Transport {
  /** What stands in log lines and errors, for example a peer address. */
  readonly label: string;
  /** Bytes given to `send` that the carrier has not taken yet. */
  readonly queuedBytes: number;
  /** Begins delivery; called once. Messages that arrived before are delivered after it, in order. */
  start(listener: TransportListener): void;
  /**
   * Queues one message: text, or the UTF-8 bytes of a text. Messages leave in the order of the calls. Never throws; after
   * the close it does nothing (`closed` tells). Messages sent in one turn of the event loop may leave in one piece.
   */
  send(message: string | Uint8Array): void;
  /**
   * Calls `arrived` when everything sent so far has reached the other side, as far as this carrier can tell; in a later turn, and
   * never after the close. Carriers that can tell nothing lack it.
   */
  confirm?(arrived: () => void): void;
  /** Stops delivery of messages; what arrives meanwhile waits with the sender. */
  pause(): void;
  /** Delivers again, what waited first. */
  resume(): void;
  /** Sends what is queued, then closes. Idempotent; `closed` follows. */
  close(reason?: CloseReason): void;
  /** Closes at once and drops what is queued. Idempotent; `closed` follows. */
  abort(reason?: CloseReason): void;
}
