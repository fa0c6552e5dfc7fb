/**
 * A start: the record first, so that output which beats the answer finds its home; then the request; and after a cut the
 * question whether it took place.
 */
import { ErrorCode, type StartParams } from '@exec-server/protocol';
import type { Bounds } from '../bounds.js';
import { type CallOptions, type Calls, outcomeUnknown } from '../calls.js';
import type { Clock } from '../clock.js';
import { type ClientErrorCode, isClientError } from '../errors.js';
import { readReply, startReply, terminateReply } from '../guards.js';
import type { ProcessRecord } from '../registry/processRecord.js';
import type { SessionRegistry } from '../registry/sessionRegistry.js';

export interface StartHost {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly registry: SessionRegistry;
  log(text: string): void;
}

/**
 * Resolves when the process is known to run. When the caller gives up before, a start that was sent is terminated as soon
 * as the server can be asked.
 */
export async function startProcess(
  host: StartHost,
  record: ProcessRecord,
  params: StartParams,
  options: CallOptions,
): Promise<void> {
  const { registry, calls } = host;
  const { processId } = record;
  registry.register(record);
  const bounds = calls.bounds('process/start', options, { processId });
  try {
    await settle(host, record, params, bounds);
  } catch (error) {
    registry.remove(record);
    if (isClientError(error)) {
      record.fail(error);
      if (mayStillRun.has(error.code)) terminate(host, processId);
    }
    throw error;
  } finally {
    bounds.dispose();
  }
}

const mayStillRun: ReadonlySet<ClientErrorCode> = new Set(['ABORTED', 'REQUEST_TIMEOUT', 'OUTCOME_UNKNOWN']);

/** A foreign server may have left a start half done; how often, and how long apart, it is asked whether it has come about. */
const FOREIGN_LOOKS = 20;
const FOREIGN_LOOK_MS = 100;

async function settle(host: StartHost, record: ProcessRecord, params: StartParams, bounds: Bounds): Promise<void> {
  const { calls, clock } = host;
  const { processId } = record;
  const start = { method: 'process/start', params, guard: startReply, data: { processId } } as const;
  for (let sent = 1; ; sent++) {
    const { extended } = await calls.connection(bounds);
    try {
      const attempt = await calls.attempt(start, bounds);
      if (attempt.kind === 'answered') {
        record.started(attempt.value.pid);
        return;
      }
      // Requests of the lost connection are settled before a server of ours answers the next initialize: one question tells.
      if (extended && !(await adopt(calls, record, bounds))) continue;
      if (extended) return;
    } catch (error) {
      // A foreign server answers a start that took place before with the one code it has for all refusals.
      const isTaken =
        isClientError(error) && error.data.wireCode === ErrorCode.invalidRequest && error.data.reason === undefined;
      if (extended || sent === 1 || !isTaken) throw error;
      for (let look = 0; look < FOREIGN_LOOKS; look++) {
        if (await adopt(calls, record, bounds)) return;
        await bounds.race(new Promise<void>((resolve) => void clock.timer(FOREIGN_LOOK_MS, resolve)));
      }
      throw outcomeUnknown(start, error);
    }
  }
}

/** Takes over a process whose start was not answered; false when the server does not have it. */
async function adopt(calls: Calls, record: ProcessRecord, bounds: Bounds): Promise<boolean> {
  const { processId } = record;
  const read = {
    method: 'process/read',
    params: { processId, afterSeq: record.cursor },
    guard: readReply,
    data: { processId },
  } as const;
  for (;;) {
    try {
      const attempt = await calls.attempt(read, bounds);
      if (attempt.kind === 'cut') continue;
      record.started(undefined);
      const fault = record.acceptReply(attempt.value);
      if (fault !== undefined) throw fault;
      record.repeatAck();
      return true;
    } catch (error) {
      if (!isClientError(error) || error.code !== 'SERVER_ERROR') throw error;
      const { reason, wireCode } = error.data;
      if (reason === 'unknownProcess' || (reason === undefined && wireCode === ErrorCode.invalidRequest)) return false;
      throw error;
    }
  }
}

/** In the background: the caller has given up and must not wait for it. */
function terminate(host: StartHost, processId: string): void {
  host.calls
    .call({ method: 'process/terminate', params: { processId }, guard: terminateReply, data: { processId } })
    .then(
      ({ running }) => host.log(`the abandoned start of ${processId} was ${running ? 'terminated' : 'not running'}`),
      (error: unknown) => host.log(`the abandoned start of ${processId} could not be terminated: ${String(error)}`),
    );
}
