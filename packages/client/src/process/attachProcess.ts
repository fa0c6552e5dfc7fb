/** Follows processes that were there before: one, or all of a session, each from a cursor on. */
import { listReply } from '../callGuards.js';
import type { CallOptions, Calls } from '../calls.js';
import type { Clock } from '../clock.js';
import { ClientError, isClientError } from '../errors.js';
import type { ReadReply } from '../guards.js';
import type { ProcessRecord } from '../registry/processRecord.js';
import type { SessionRegistry } from '../registry/sessionRegistry.js';
import { exitOf, isObject } from '../shapes.js';
import { readFrom } from './startProcess.js';

export interface AttachHost {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly registry: SessionRegistry;
  newRecord(processId: string, afterSeq: number): ProcessRecord;
  read(processId: string, afterSeq: number, options: CallOptions): Promise<ReadReply>;
}

export interface Attached {
  readonly record: ProcessRecord;
  readonly afterSeq: number;
  /**
   * Until it is called nothing that was read is acknowledged: the server would let go of what the caller has not seen. To be
   * called a turn after the caller has the handle: who iterates at once has begun by then, and nobody else holds back a process.
   */
  readonly release: () => void;
}

/** Processes attached to at a time; each answer may have megabytes. */
const AT_A_TIME = 8;

export async function attachProcess(
  host: AttachHost,
  processId: string,
  afterSeq: number,
  call: CallOptions,
): Promise<Attached> {
  const { registry } = host;
  const known = registry.get(processId);
  if (known !== undefined && known.phase === 'live' && afterSeq >= known.afterSeq) {
    return { record: known, afterSeq, release: () => {} };
  }
  const record = host.newRecord(processId, afterSeq);
  registry.register(record);
  record.started(undefined);
  const caller = { cursor: afterSeq, backlogBytes: 0, wake: () => {} };
  record.addConsumer(caller);
  try {
    await readFrom(record, (cursor) => host.read(processId, cursor, call));
  } catch (error) {
    registry.remove(record);
    throw error;
  }
  // The server counts from what was acknowledged, by whomever it was: what lies before the cursor is not waited for.
  record.repeatAck();
  return { record, afterSeq, release: () => record.removeConsumer(caller) };
}

/**
 * Every process the session has, and every one there is a cursor of. What the server has let go of has a record as well, which
 * fails with OUTPUT_LOST and says how the process ended where that is known.
 */
export async function attachAll(
  host: AttachHost,
  after: Readonly<Record<string, number>>,
  call: CallOptions,
): Promise<Attached[]> {
  const { processes } = await host.calls.call({ method: 'process/list', params: {}, guard: listReply }, call);
  const wanted = [...new Set([...processes.map(({ processId }) => processId), ...Object.keys(after)])];
  const attached: Attached[] = [];
  const fresh = new Set(wanted.filter((processId) => host.registry.get(processId) === undefined));
  const failures: unknown[] = [];
  const work = async (): Promise<void> => {
    for (let id = wanted.shift(); id !== undefined && failures.length === 0; id = wanted.shift()) {
      try {
        attached.push(await attachOrLose(host, id, Object.hasOwn(after, id) ? (after[id] ?? 0) : 0, call));
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_A_TIME, wanted.length) }, work));
  if (failures.length === 0) return attached;
  // Nobody gets a handle. What was read is not acknowledged, so that the next one who asks gets it all.
  for (const { record } of attached) if (fresh.has(record.processId)) host.registry.remove(record);
  throw failures[0];
}

async function attachOrLose(
  host: AttachHost,
  processId: string,
  afterSeq: number,
  call: CallOptions,
): Promise<Attached> {
  try {
    return await attachProcess(host, processId, afterSeq, call);
  } catch (error) {
    const reason = isClientError(error) ? error.data.reason : undefined;
    if (!isClientError(error) || (reason !== 'expiredProcess' && reason !== 'unknownProcess')) throw error;
    const record = host.newRecord(processId, afterSeq);
    const { serverData } = error.data;
    const exit = isObject(serverData) ? exitOf(serverData['exit']) : undefined;
    const message = `the server no longer has process ${processId}; what came after event ${afterSeq} is lost`;
    const lost = new ClientError('OUTPUT_LOST', message, error.data, error);
    if (exit === undefined) record.fail(lost);
    else record.endedBefore(exit, lost);
    return { record, afterSeq, release: () => {} };
  }
}
