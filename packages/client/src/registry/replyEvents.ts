/**
 * Turns the answer to `process/read` into sequenced events. Numbers an answer covers and does not contain are gone: they
 * become gaps. Foreign servers do not say where the exit sits; its place is inferred. Pure.
 */
import { type ClosedEvent, clipGap, type ExitedEvent, firstSeqOf, lastSeqOf, type ProcessEvent } from '../events.js';
import type { ReadReply } from '../guards.js';

/** What the reader of the answer knows already. */
export interface Known {
  /** Events up to this seq are known; the answer was asked for what follows. */
  readonly afterSeq: number;
  /** Ascending seqs above it that are known as well. */
  readonly held: readonly number[];
  /** Whether the exit is among the known events, and its seq where that matters. */
  readonly exitKnown: boolean;
  readonly exitSeq?: number;
  /** Whether the exit may lie at or before `afterSeq` although nobody has seen it. */
  readonly exitMayPrecede?: boolean;
}

export type ReplyEvents =
  | { readonly ok: true; readonly events: readonly ProcessEvent[] }
  | { readonly ok: false; readonly detail: string };

interface Range {
  readonly from: number;
  readonly through: number;
}

export function eventsOfReply(reply: ReadReply, known: Known): ReplyEvents {
  const { afterSeq } = known;
  const target = reply.nextSeq - 1;
  const events: ProcessEvent[] = reply.chunks.filter((chunk) => chunk.seq > afterSeq);
  const outputSeqs = new Set(events.map(firstSeqOf));
  if (reply.closed && target > afterSeq) {
    if (outputSeqs.has(target)) return { ok: false, detail: `event ${target} is output and the close at once` };
    events.push({ type: 'closed', seq: target, ...reply.closing } satisfies ClosedEvent);
  }
  const gap = reply.gap === undefined ? undefined : clipGap(reply.gap, afterSeq + 1, Number.MAX_SAFE_INTEGER);
  if (gap !== undefined) events.push(gap);

  const exitSeq = reply.exitedSeq ?? known.exitSeq;
  if (reply.exit !== undefined && exitSeq !== undefined && exitSeq > afterSeq && exitSeq <= target) {
    if (outputSeqs.has(exitSeq)) return { ok: false, detail: `event ${exitSeq} is output and the exit at once` };
    events.push({ type: 'exited', seq: exitSeq, ...reply.exit } satisfies ExitedEvent);
  }

  let missing = missingRanges(events, known.held, afterSeq, target);
  if (reply.exit !== undefined && exitSeq === undefined && !known.exitKnown) {
    const place = inferExitSeq(missing, [...outputSeqs, ...known.held]);
    if (place === undefined && known.exitMayPrecede !== true) {
      return { ok: false, detail: 'there is an exit and no number left for it' };
    }
    if (place !== undefined) {
      events.push({ type: 'exited', seq: place, ...reply.exit } satisfies ExitedEvent);
      missing = missing.flatMap((range) => without(range, place));
    }
  }
  for (const { from, through } of missing) events.push({ type: 'gap', fromSeq: from, throughSeq: through });
  return { ok: true, events: events.sort((a, b) => firstSeqOf(a) - firstSeqOf(b)) };
}

function missingRanges(
  events: readonly ProcessEvent[],
  held: readonly number[],
  afterSeq: number,
  target: number,
): Range[] {
  const covered = [
    ...events.map((event): Range => ({ from: firstSeqOf(event), through: lastSeqOf(event) })),
    ...held.map((seq): Range => ({ from: seq, through: seq })),
  ].sort((a, b) => a.from - b.from);
  const missing: Range[] = [];
  let next = afterSeq + 1;
  for (const { from, through } of covered) {
    if (from > target) break;
    if (from > next) missing.push({ from: next, through: from - 1 });
    next = Math.max(next, through + 1);
  }
  if (next <= target) missing.push({ from: next, through: target });
  return missing;
}

/**
 * Servers evict from the old end, so a hole behind known output is the exit. Otherwise it lies in the hole at the start,
 * with evicted output before it if that is longer than one.
 */
function inferExitSeq(missing: readonly Range[], outputSeqs: readonly number[]): number | undefined {
  const firstOutput = outputSeqs.length === 0 ? Number.MAX_SAFE_INTEGER : outputSeqs.reduce((a, b) => Math.min(a, b));
  const behind = missing.find((range) => range.from > firstOutput);
  return behind?.from ?? missing.at(-1)?.through;
}

function without(range: Range, seq: number): Range[] {
  if (seq < range.from || seq > range.through) return [range];
  const parts: Range[] = [];
  if (range.from < seq) parts.push({ from: range.from, through: seq - 1 });
  if (seq < range.through) parts.push({ from: seq + 1, through: range.through });
  return parts;
}
