/** What `process/read` answers for a cursor. Pure but for the base64 of the host. */
import { limits, type ReadParams, type ReadResult } from '@exec-server/protocol';
import type { EventLog, LogRead } from './eventLog.js';
import { base64Of } from './frames.js';
import type { History } from './history.js';

/** Whether a read at this cursor has something to say without waiting. */
export function hasNews(log: EventLog, afterSeq: number): boolean {
  if (log.closed !== undefined || (log.exited !== undefined && log.exited.seq > afterSeq)) return true;
  return log.nextSeq - 1 > afterSeq;
}

/** What fits the largest reply, before base64, with room for the members around the chunks. */
const MAX_REPLY_WEIGHT = ((limits.MAX_REPLY_BYTES - 64 * 1024) / 4) * 3;

export interface ReadReply {
  readonly result: ReadResult;
  /** The reader has everything up to this seq. */
  readonly throughSeq: number;
}

/**
 * A client without `maxBytes` gets a reply cut at the server's limit, and what lies behind the cut is not told in it. One
 * with `maxBytes` is told of exit and close in any case, as the base protocol does; `nextSeq` then is one past the last
 * chunk.
 */
export function readReply(history: History, params: ReadParams, epoch: string): ReadReply | Promise<ReadReply> {
  const read = history.read(params.afterSeq ?? 0, {
    maxBytes: Math.min(params.maxBytes ?? limits.MAX_READ_BYTES, limits.MAX_READ_BYTES),
    maxChunks: limits.MAX_READ_CHUNKS,
    maxWeight: MAX_REPLY_WEIGHT,
  });
  return read instanceof Promise
    ? read.then((events) => replyOf(history, events, params, epoch))
    : replyOf(history, read, params, epoch);
}

function replyOf(history: History, read: LogRead, params: ReadParams, epoch: string): ReadReply {
  const { log } = history;
  const wished = params.maxBytes ?? undefined;
  const last = read.chunks.at(-1);
  const throughSeq = wished !== undefined && last !== undefined ? last.seq : Math.min(read.throughSeq, log.nextSeq - 1);
  const tells = (seq: number | undefined): boolean => seq !== undefined && (wished !== undefined || seq <= throughSeq);
  const exited = tells(log.exited?.seq) ? log.exited : undefined;
  const closed = tells(log.closed?.seq) ? log.closed : undefined;
  return {
    throughSeq,
    result: {
      chunks: read.chunks.map((event) => ({ seq: event.seq, stream: event.stream, chunk: base64Of(event) })),
      nextSeq: throughSeq + 1,
      exited: exited !== undefined,
      exitCode: exited?.exitCode ?? null,
      closed: closed !== undefined,
      failure: null,
      sandboxDenied: false,
      epoch,
      firstRetainedSeq: history.firstHeldSeq,
      ...(read.gap === undefined
        ? {}
        : {
            gap: {
              fromSeq: read.gap.fromSeq,
              throughSeq: read.gap.throughSeq,
              ...(read.gap.bytes === undefined ? {} : { bytes: read.gap.bytes }),
            },
          }),
      ...(exited === undefined ? {} : { exitedSeq: exited.seq, reason: exited.reason }),
      ...(closed === undefined ? {} : { closedSeq: closed.seq, closeReason: closed.reason }),
      ...(closed?.holders === undefined ? {} : { holders: closed.holders }),
      ...(exited?.signal === undefined ? {} : { signal: exited.signal }),
    },
  };
}
