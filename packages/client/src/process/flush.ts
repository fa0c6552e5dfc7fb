/** Waits until what the server has of a process has come, holes mended. */
import { flushReply } from '../callGuards.js';
import type { CallOptions, Calls } from '../calls.js';
import type { ProcessRecord } from '../registry/processRecord.js';

/** Resolves when everything the server had at the time of the call was released in order; rejects when the record fails. */
export async function flushProcess(calls: Calls, record: ProcessRecord, options: CallOptions): Promise<void> {
  const { processId } = record;
  // A server may have let go of a process that has closed, and nothing of it is missing here.
  if (record.phase === 'closed') return;
  const data = { processId };
  const bounds = calls.bounds('process/flush', options, data);
  try {
    const call = { method: 'process/flush', params: { processId }, guard: flushReply, data } as const;
    const throughSeq = await calls.answer(call, bounds);
    for (;;) {
      const wish = record.waitReleased(throughSeq);
      if (wish === undefined) return;
      try {
        await bounds.race(wish.promise);
      } finally {
        wish.forget();
      }
    }
  } finally {
    bounds.dispose();
  }
}
