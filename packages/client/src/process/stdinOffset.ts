/** How much of its stdin the server has accepted for a process, whoever wrote it. */
import { listReply } from '../callGuards.js';
import type { CallOptions, Calls } from '../calls.js';
import { ClientError } from '../errors.js';

export async function stdinOffset(calls: Calls, processId: string, options: CallOptions): Promise<number> {
  const { processes } = await calls.call({ method: 'process/list', params: {}, guard: listReply }, options);
  const found = processes.find((process) => process.processId === processId);
  if (found !== undefined) return found.stdinBytes;
  const message = `the server does not have process ${processId}, or no longer keeps it`;
  throw new ClientError('SERVER_ERROR', message, { processId, reason: 'unknownProcess' });
}
