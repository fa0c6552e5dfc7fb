/** What the calls of a process handle take and give. Pure. */
import type { CloseReasonName, ExitReason } from '@exec-server/protocol';
import type { CallOptions } from '../calls.js';

/** How a process ended. */
export interface ExitStatus {
  /** 128 + n for a death by signal n. A non-zero code is a result, not an error. */
  readonly exitCode: number;
  /** The signal that ended the process, if one did and the server says so. */
  readonly signal: string | undefined;
  /** Whether it ended by itself (a signal of its own making or of `signal` included), by its `timeoutMs` or by `terminate`; undefined on foreign servers. */
  readonly reason: ExitReason | undefined;
}

/** How the streams of a process ended. */
export interface CloseStatus {
  /** `heldOpen`: `lingerMs` ran out while others held the streams; undefined on foreign servers. */
  readonly reason: CloseReasonName | undefined;
  /** How many others held the streams, for `heldOpen`. */
  readonly holders: number | undefined;
}

/**
 * How {@link ProcessHandle.terminate} ends a process. Each but the bounds of the call is NOT_SUPPORTED on foreign
 * servers. The default of `timeoutMs` is 120,000 and the grace.
 */
export interface TerminateOptions extends CallOptions {
  /** SIGTERM first, SIGKILL after this many ms. Default 0: SIGKILL at once. */
  readonly graceMs?: number | undefined;
  /** `kill` ends descendants that left the process group as well, of an exited process too. Default `keep`. */
  readonly leftovers?: 'kill' | 'keep' | undefined;
  /** Whether the answer comes when everything is dead. Default: true with `graceMs` or `leftovers`, else false. */
  readonly wait?: boolean | undefined;
}

/** Where {@link ProcessHandle.events} begins. */
export interface EventsOptions {
  /** Begin after this event. Default: where the handle begins, which is the first event for a started process. */
  readonly afterSeq?: number | undefined;
}

/** Where {@link ProcessHandle.write} and {@link ProcessHandle.end} stand in stdin. */
export interface WriteOptions {
  /**
   * Position of the first byte in all of stdin, from 0. What the server has accepted already is dropped, so that a program can
   * go on after another one without writing anything twice; bytes before `offset` that it does not have are refused with
   * SERVER_ERROR (`writeHole`). Default: behind everything written here before. NOT_SUPPORTED on foreign servers.
   */
  readonly offset?: number | undefined;
}
