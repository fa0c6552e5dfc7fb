/** `process/read`: what is there, or a wait for what comes. */
import { clampTimerMs, type ReadParams, type ReadResult } from '@exec-server/protocol';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import type { Process } from './process.js';
import { hasNews, type ReadReply, readReply } from './readReply.js';

export function readProcess(context: HandlerContext, params: ReadParams): ReadResult | Parked<ReadResult> {
  const { processes } = context.session;
  const process = processes.get(params.processId);
  if (process.state !== 'starting') return readOrWait(process, context, params);
  const started = process.started.then(() => {
    // A start that failed has freed the id.
    if (processes.find(params.processId) !== process) return readProcess(context, params);
    return readOrWait(process, context, params);
  });
  return new Parked(started);
}

function readOrWait(process: Process, context: HandlerContext, params: ReadParams): ReadResult | Parked<ReadResult> {
  const { log } = process;
  const afterSeq = params.afterSeq ?? 0;
  let throughSeq = afterSeq;
  const tell = (reply: ReadReply): ReadResult => {
    throughSeq = reply.throughSeq;
    return reply.result;
  };
  const build = (): ReadResult | Promise<ReadResult> => {
    const reply = readReply(process.history, params, context.server.epoch);
    return reply instanceof Promise ? reply.then(tell) : tell(reply);
  };
  // Pushes that waited for this read go on behind its reply.
  const answer = (): ReadResult | Parked<ReadResult> =>
    context.bulk.make(build, () => context.pushes.readThrough(process, afterSeq, throughSeq));
  const waitMs = clampTimerMs(params.waitMs ?? 0);
  if (waitMs === 0 || hasNews(log, afterSeq)) return answer();
  let release: () => void = () => {};
  const news = new Promise<void>((resolve) => {
    let settled = false;
    release = (): void => {
      if (settled) return;
      settled = true;
      stopWatching();
      cancelTimer();
      resolve();
    };
    const stopWatching = process.watch(() => {
      if (hasNews(log, afterSeq)) release();
    });
    const cancelTimer = context.server.clock.after(waitMs, release);
  });
  return context.parking.park(news.then(answer), release);
}
