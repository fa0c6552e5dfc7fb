/** The sequenced events of one process. Pure. */
import type { CloseReasonName, ExitReason, StreamName } from '@exec-server/protocol';

/** A piece of output, of at most 64 KiB. */
export interface OutputEvent {
  /** Tells the kinds of events apart. */
  readonly type: 'output';
  /** Position among the events of the process, from 1. */
  readonly seq: number;
  /** Where it was written; `pty` for all output of a terminal. */
  readonly stream: StreamName;
  /** The bytes as they were written; a piece may end within a character. */
  readonly bytes: Uint8Array;
}

/** Events `fromSeq` to `throughSeq` are gone; the process and its later events are not affected. */
export interface GapEvent {
  /** Tells the kinds of events apart. */
  readonly type: 'gap';
  /** The first event that is gone. */
  readonly fromSeq: number;
  /** The last one. */
  readonly throughSeq: number;
  /** Output bytes in the range, where the server still knows. */
  readonly bytes?: number;
}

/** How a process ended. */
export interface Exit {
  /** 128 + n for a death by signal n. */
  readonly exitCode: number;
  /** Name of the signal that ended the process. */
  readonly signal?: string;
  /** By itself, because its `timeoutMs` ran out, or by `terminate`; absent on foreign servers. */
  readonly reason?: ExitReason;
}

/** The process has exited; output may still come behind it. */
export interface ExitedEvent extends Exit {
  /** Tells the kinds of events apart. */
  readonly type: 'exited';
  /** Position among the events of the process, from 1. */
  readonly seq: number;
}

/** How the streams of a process ended. */
export interface Closing {
  /** `heldOpen`: `lingerMs` ran out while other processes held the streams. Absent on foreign servers. */
  readonly reason?: CloseReasonName;
  /** How many processes held the streams, for `heldOpen`. */
  readonly holders?: number;
}

/** Exit and the end of every stream are behind; always the last event. */
export interface ClosedEvent extends Closing {
  /** Tells the kinds of events apart. */
  readonly type: 'closed';
  /** Position among the events of the process, from 1. */
  readonly seq: number;
}

/**
 * What iterating a {@link ProcessHandle} gives. Output, exit and close share one counter without holes; what is missing
 * in it is told by a gap.
 */
export type ProcessEvent = OutputEvent | GapEvent | ExitedEvent | ClosedEvent;

/** The first seq an event covers. */
export function firstSeqOf(event: ProcessEvent): number {
  return event.type === 'gap' ? event.fromSeq : event.seq;
}

/** The last seq an event covers. */
export function lastSeqOf(event: ProcessEvent): number {
  return event.type === 'gap' ? event.throughSeq : event.seq;
}

/** Output bytes an event holds in memory. */
export function sizeOf(event: ProcessEvent): number {
  return event.type === 'output' ? event.bytes.byteLength : 0;
}

/** The part of a gap within `[fromSeq, throughSeq]`; its byte count is known only for the whole. */
export function clipGap(gap: GapEvent, fromSeq: number, throughSeq: number): GapEvent | undefined {
  const from = Math.max(gap.fromSeq, fromSeq);
  const through = Math.min(gap.throughSeq, throughSeq);
  if (from > through) return undefined;
  if (from === gap.fromSeq && through === gap.throughSeq) return gap;
  return { type: 'gap', fromSeq: from, throughSeq: through };
}
