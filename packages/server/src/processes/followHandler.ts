/** `process/follow` and `process/flush`: where pushes start, and how far they have come. */
import {
  type FlushParams,
  type FlushResult,
  type FollowParams,
  type FollowResult,
  WireError,
} from '@exec-server/protocol';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import type { Process } from './process.js';

export function followProcess(context: HandlerContext, params: FollowParams): FollowResult | Parked<FollowResult> {
  return whenStarted(context, params.processId, (process) => {
    const { epoch } = context.server;
    if ((params.epoch ?? epoch) !== epoch) {
      throw new WireError('otherEpoch', `the cursor is of another life of this server, which now has ${epoch}`, {
        epoch,
      });
    }
    const afterSeq = params.afterSeq ?? 0;
    const { nextSeq } = process.log;
    if (afterSeq >= nextSeq) {
      const message = `event ${afterSeq} of process ${process.id} does not exist: the last one is ${nextSeq - 1}`;
      throw new WireError('invalidParams', message, { field: 'afterSeq', nextSeq });
    }
    const result = { epoch, firstRetainedSeq: process.history.firstHeldSeq, nextSeq };
    context.afterReply(result, () => context.pushes.restart(process, afterSeq));
    return result;
  });
}

export function flushProcess(context: HandlerContext, params: FlushParams): FlushResult | Parked<FlushResult> {
  return whenStarted(context, params.processId, (process) => {
    const { through, stop } = context.pushes.flush(process);
    return context.parking.park(
      through.then((throughSeq) => ({ throughSeq })),
      stop,
    );
  });
}

/** A start that failed has freed the id. */
function whenStarted<T>(
  context: HandlerContext,
  processId: string,
  answer: (process: Process) => T | Parked<T>,
): T | Parked<T> {
  const { processes } = context.session;
  const process = processes.get(processId);
  if (process.state !== 'starting') return answer(process);
  return new Parked(process.started.then(() => whenStarted(context, processId, answer)));
}
