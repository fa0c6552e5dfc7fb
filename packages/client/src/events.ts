/** The sequenced events of one process. Pure. */
import type { StreamName } from '@exec-server/protocol';

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

export interface ExitedEvent {
  readonly type: 'exited';
  readonly seq: number;
  /** 128 + n for a death by signal n. */
  readonly exitCode: number;
  /** Name of the signal that ended the process. */
  readonly signal?: string;
}

/** Exit and the end of every stream are behind; always the last event. */
export interface ClosedEvent {
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
