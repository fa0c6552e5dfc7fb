/** The sequenced events of one process. Pure. */
import type { CloseReasonName, ExitReason, StreamName } from '@exec-server/protocol';

export interface OutputEvent {
  readonly type: 'output';
  readonly seq: number;
  readonly stream: StreamName;
  readonly bytes: Uint8Array;
}

/** Events `fromSeq` to `throughSeq` are gone; the process and its later events are not affected. */
export interface GapEvent {
  readonly type: 'gap';
  readonly fromSeq: number;
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

export interface ExitedEvent extends Exit {
  readonly type: 'exited';
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
  readonly type: 'closed';
  readonly seq: number;
}

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
