/** Follows processes that were there before: one, or all of a session, each from a cursor on. */
import { listReply } from '../callGuards.js';
import type { CallOptions, Calls } from '../calls.js';
import type { Clock } from '../clock.js';
import { ClientError, type ClientErrorData, isClientError, toClientError } from '../errors.js';
import type { Exit } from '../events.js';
import type { ReadReply } from '../guards.js';
import type { ProcessRecord } from '../registry/processRecord.js';
import type { SessionRegistry } from '../registry/sessionRegistry.js';
import { exitOf, isObject, isSeq } from '../shapes.js';
import { holdRecord } from './holdRecord.js';
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
  /** Whether the record was made for this caller. */
  readonly isNew: boolean;
  /** As `holdRecord` gives it. */
  readonly release: () => void;
}

/** Processes attached to at a time; each answer may have megabytes. */
const AT_A_TIME = 8;

/** Shares what is followed here already, from whatever cursor: what lies before it is read back from the server. */
export async function attachProcess(
  host: AttachHost,
  processId: string,
  afterSeq: number,
  call: CallOptions,
): Promise<Attached> {
  const { registry } = host;
  try {
    for (let known = registry.get(processId); known !== undefined; known = registry.get(processId)) {
      if (await hasBegun(host, known, call)) return await share(host, known, afterSeq, call);
      registry.remove(known);
    }
    // In the turn of the last look, so that two callers never make two records.
    return await attachNew(host, processId, afterSeq, call);
  } catch (error) {
    const { exit, closedSeq } = endOf(error);
    if (closedSeq === undefined || afterSeq < closedSeq) throw error;
    const record = host.newRecord(processId, afterSeq);
    record.closedBefore(exit);
    return { record, afterSeq, isNew: false, release: () => {} };
  }
}

/**
 * Whether a record is there to be shared. A start or a first read of another caller is waited for; when that fails, which may
 * be for reasons of its caller, whoever waited goes his own way.
 */
async function hasBegun({ calls }: AttachHost, known: ProcessRecord, call: CallOptions): Promise<boolean> {
  const wish = known.waitBegun();
  if (wish !== undefined) {
    const bounds = calls.bounds('process/read', call, { processId: known.processId });
    try {
      const begun = wish.promise.then(
        () => true,
        () => false,
      );
      if (!(await bounds.race(begun))) return false;
    } finally {
      wish.forget();
      bounds.dispose();
    }
  }
  return known.phase !== 'failed';
}

async function share(host: AttachHost, record: ProcessRecord, afterSeq: number, call: CallOptions): Promise<Attached> {
  const { processId } = record;
  record.shared = true;
  // The cursor is not of this client, so it may be of another process.
  if (afterSeq > record.cursor) requireReached(processId, afterSeq, await host.read(processId, afterSeq, call));
  return { record, afterSeq, isNew: false, release: () => {} };
}

async function attachNew(host: AttachHost, processId: string, afterSeq: number, call: CallOptions): Promise<Attached> {
  const record = host.newRecord(processId, afterSeq);
  host.registry.register(record);
  record.adopted();
  const release = holdRecord(record);
  try {
    await readFrom(record, async (cursor) => {
      const reply = await host.read(processId, cursor, call);
      requireReached(processId, afterSeq, reply);
      return reply;
    });
  } catch (error) {
    giveUp(host, record, error);
    throw error;
  }
  record.begun();
  // The server counts from what was acknowledged, by whomever it was: what lies before the cursor is not waited for.
  record.repeatAck();
  return { record, afterSeq, isNew: true, release };
}

function giveUp({ registry }: AttachHost, record: ProcessRecord, error: unknown): void {
  registry.remove(record);
  record.fail(toClientError(error, 'SERVER_ERROR', `attaching to process ${record.processId} failed`));
}

/** Behind its last event a process would be silent for ever. */
function requireReached(processId: string, afterSeq: number, { nextSeq }: ReadReply): void {
  const lastSeq = nextSeq - 1;
  if (lastSeq >= afterSeq) return;
  const message = `process ${processId} has no event ${afterSeq} yet, its last is ${lastSeq}; it is not affected; attach with a cursor of this process and of this life of the server (\`epoch\` tells lives apart), or with none`;
  throw new ClientError('OUTPUT_LOST', message, { processId, cursor: afterSeq, lastSeq });
}

/** What the server says about the end of a process it has let go of. */
function endOf(error: unknown): { readonly exit: Exit | undefined; readonly closedSeq: number | undefined } {
  const { reason, serverData }: ClientErrorData = isClientError(error) ? error.data : {};
  if (reason !== 'expiredProcess' || !isObject(serverData)) return { exit: undefined, closedSeq: undefined };
  const { exit, closedSeq } = serverData;
  return { exit: exitOf(exit), closedSeq: isSeq(closedSeq) ? closedSeq : undefined };
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
  for (const { record, isNew, release } of attached) {
    if (isNew && !record.shared) giveUp(host, record, failures[0]);
    else release();
  }
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
    const lost = lossOf(error, processId, afterSeq);
    if (lost === undefined) throw error;
    const record = host.newRecord(processId, afterSeq);
    const { exit } = endOf(error);
    if (exit === undefined) record.fail(lost);
    else record.endedBefore(exit, lost);
    return { record, afterSeq, isNew: false, release: () => {} };
  }
}

/** Undefined for what is not about this one process. */
function lossOf(error: unknown, processId: string, afterSeq: number): ClientError | undefined {
  if (!isClientError(error)) return undefined;
  if (error.code === 'OUTPUT_LOST') return error;
  const { reason } = error.data;
  if (reason !== 'expiredProcess' && reason !== 'unknownProcess') return undefined;
  const message = `the server no longer has process ${processId}; what came after event ${afterSeq} is lost`;
  return new ClientError('OUTPUT_LOST', message, error.data, error);
}
