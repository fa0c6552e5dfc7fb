/**
 * A start: the record first, so that output which beats the answer finds its home; then the request; and after a cut the
 * question whether it took place.
 */
import { ErrorCode, limits, RemoteError, type StartParams } from '@exec-server/protocol';
import type { Bounds } from '../bounds.js';
import { type Call, type CallOptions, type Calls, notSupported, outcomeUnknown } from '../calls.js';
import type { Clock } from '../clock.js';
import { ClientError, type ClientErrorCode, isClientError } from '../errors.js';
import { sizeOf } from '../events.js';
import { listReply, startReply, type StartReply, terminateReply } from '../callGuards.js';
import type { Connection } from '../connection.js';
import { type ReadReply, readReply } from '../guards.js';
import { readBudget } from '../registry/catchUp.js';
import type { ProcessRecord } from '../registry/processRecord.js';
import type { SessionRegistry } from '../registry/sessionRegistry.js';
import { holdRecord } from './holdRecord.js';
import { extensionOf } from './startParams.js';

/** What to do about it is up to whoever has installed the server. */
const NO_TERMINAL = 'processes on a terminal (on Linux it needs the optional package @lydell/node-pty)';

export interface StartHost {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly registry: SessionRegistry;
  log(text: string): void;
}

/** What is asked for. */
export interface Wanted {
  readonly params: StartParams;
  /** Whether the process id was made for this start, so that nobody else can have used it. */
  readonly freshId: boolean;
}

/**
 * Resolves when the process is known to run, or to have been there; with a function where output may have come before, which
 * is not acknowledged until that is called (see `holdRecord`). When the caller gives up before, a start that was sent is
 * terminated once it is known to be the one that took place; one that adopts is left alone, since the process may be older.
 */
export async function startProcess(
  host: StartHost,
  record: ProcessRecord,
  { params, freshId }: Wanted,
  options: CallOptions,
): Promise<(() => void) | undefined> {
  const { registry, calls } = host;
  const { processId } = record;
  // Before anything can arrive: a session that was resumed is sent what is there of an older process of this id.
  const release = holdRecord(record);
  registry.register(record);
  const bounds = calls.bounds('process/start', options, { processId });
  const start: Start = { params, freshId, bounds, answers: [], extended: false };
  try {
    const existed = await settle(host, record, start);
    if (record.phase === 'failed') registry.remove(record);
    if (existed) return release;
    release();
    return undefined;
  } catch (error) {
    registry.remove(record);
    if (isClientError(error)) {
      record.fail(error);
      if (mayStillRun.has(error.code) && params.ifExists !== 'adopt') abandon(host, start);
    }
    throw error;
  } finally {
    bounds.dispose();
  }
}

interface Start extends Wanted {
  readonly bounds: Bounds;
  /** The answers to come, one for each time the request was sent. */
  readonly answers: Promise<unknown>[];
  /** Whether the server speaks our extensions. */
  extended: boolean;
}

const mayStillRun: ReadonlySet<ClientErrorCode> = new Set(['ABORTED', 'REQUEST_TIMEOUT', 'OUTCOME_UNKNOWN']);

/** A foreign server may have left a start half done; how often, and how long apart, it is asked whether it has come about. */
const FOREIGN_LOOKS = 20;
const FOREIGN_LOOK_MS = 100;

/** Whether the process was there before the answer that told of it, so that there may be output to read. */
async function settle(host: StartHost, record: ProcessRecord, start: Start): Promise<boolean> {
  const { calls, clock } = host;
  const { params, bounds } = start;
  let call = startCall(params);
  for (let sent = 1; ; sent++) {
    const connection = await calls.connection(bounds);
    const { extended } = connection;
    start.extended = extended;
    requireTerminal(connection, params);
    try {
      const attempt = await calls.attempt(call, bounds, (answer) => void start.answers.push(answer));
      if (attempt.kind === 'answered') {
        await answered(calls, record, attempt.value, bounds);
        return attempt.value.existing === true;
      }
      // A server of ours compares the params, so that the question is answered with the process of this start, whether it took
      // place before or only now, and never with one by other params that has the id.
      if (extended) call = startCall(adopting(params));
    } catch (error) {
      if (extended) throw params.ifExists === 'adopt' ? error : asDuplicate(error, params);
      // A foreign server answers a start that took place before with the one code it has for all refusals.
      const isTaken =
        isClientError(error) && error.data.wireCode === ErrorCode.invalidRequest && error.data.reason === undefined;
      if (!isTaken) throw error;
      if (sent === 1) throw new ClientError('DUPLICATE_PROCESS', error.message, error.data, error.cause);
      for (let look = 0; look < FOREIGN_LOOKS; look++) {
        if (await adoptForeign(calls, record, bounds)) return true;
        await bounds.race(new Promise<void>((resolve) => void clock.timer(FOREIGN_LOOK_MS, resolve)));
      }
      throw outcomeUnknown(call, error);
    }
  }
}

function adopting(params: StartParams): StartParams {
  return { ...params, ifExists: 'adopt' };
}

/** The refusal of the first request, which was lost in a cut, as the question that followed gives it. */
function asDuplicate(error: unknown, { processId }: StartParams): unknown {
  if (!isClientError(error) || error.data.reason !== 'startDiffers') return error;
  const message = `the server refused process/start: process ${processId} already exists, and it is another one; choose another id`;
  return new ClientError('DUPLICATE_PROCESS', message, error.data, error);
}

/** Asks for a process that is known to be there; the server compares the params. Only for a start that adopts. */
export async function repeatStart(calls: Calls, params: StartParams, options: CallOptions): Promise<void> {
  const { processId } = params;
  const bounds = calls.bounds('process/start', options, { processId });
  try {
    const call = startCall(params);
    for (;;) {
      const attempt = await calls.attempt(call, bounds);
      if (attempt.kind === 'answered') return;
    }
  } finally {
    bounds.dispose();
  }
}

function startCall(params: StartParams): Call<StartReply> {
  const extension = extensionOf(params);
  return {
    method: 'process/start',
    params,
    guard: startReply,
    data: { processId: params.processId },
    ...(extension === undefined ? {} : { extension }),
  };
}

/** A server of ours says beforehand whether it has terminals; the base protocol has them always. */
function requireTerminal(connection: Connection, params: StartParams): void {
  if (params.tty && connection.extended && connection.server.extended?.terminal !== true) {
    throw notSupported(connection.carrier.transport.label, NO_TERMINAL);
  }
}

async function answered(calls: Calls, record: ProcessRecord, reply: StartReply, bounds: Bounds): Promise<void> {
  record.started(reply.pid);
  if (reply.existing !== true) return;
  try {
    await readFrom(record, (afterSeq) => readOnce(calls, record, afterSeq, bounds));
  } catch (error) {
    const expired = isClientError(error) && error.data.reason === 'expiredProcess';
    if (!expired || reply.exit === undefined) throw error;
    const { processId } = record;
    const message = `process ${processId} has ended before, and its output is no longer kept; \`wait\` says how it ended`;
    record.endedBefore(reply.exit, new ClientError('OUTPUT_LOST', message, { processId }, error));
  }
}

/** Reads what is there of a process this client did not follow so far; what comes later is pushed. */
export async function readFrom(record: ProcessRecord, read: (afterSeq: number) => Promise<ReadReply>): Promise<void> {
  for (let more = true; more; ) {
    const before = record.cursor;
    const reply = await read(before);
    const fault = record.acceptReply(reply);
    if (fault !== undefined) throw fault;
    more = record.cursor > before && (reply.endsLater || mayBeCut(reply, record));
  }
}

/**
 * Whether there may be more that nobody pushes: the process is over, or was pushed before anybody here followed it. An answer
 * far below its budget has everything; what lies behind a push that came meanwhile is read as a hole.
 */
function mayBeCut(reply: ReadReply, record: ProcessRecord): boolean {
  const bytes = reply.chunks.reduce((sum, chunk) => sum + sizeOf(chunk), 0);
  return bytes * 2 >= limits.CATCH_UP_READ_BYTES && record.cursor === reply.nextSeq - 1;
}

async function readOnce(calls: Calls, record: ProcessRecord, afterSeq: number, bounds: Bounds): Promise<ReadReply> {
  const { processId } = record;
  const params = { processId, afterSeq, ...readBudget(true) };
  const call = { method: 'process/read', params, guard: readReply, data: { processId } } as const;
  for (;;) {
    const attempt = await calls.attempt(call, bounds);
    if (attempt.kind === 'answered') return attempt.value;
  }
}

/** Takes over a process whose start a foreign server did not answer; false when it does not have it. */
async function adoptForeign(calls: Calls, record: ProcessRecord, bounds: Bounds): Promise<boolean> {
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

/** Terminates a start its caller has given up, in the background. */
function abandon(host: StartHost, start: Start): void {
  if (start.answers.length === 0) return;
  const { processId } = start.params;
  const terminate = async (): Promise<void> => {
    if (!(await isToEnd(host.calls, start))) return;
    // Started or adopted again meanwhile, and wanted.
    if (host.registry.get(processId)?.phase === 'live') return;
    const { running } = await host.calls.call({
      method: 'process/terminate',
      params: { processId },
      guard: terminateReply,
      data: { processId },
    });
    host.log(`the abandoned start of ${processId} was ${running ? 'terminated' : 'not running'}`);
  };
  terminate().catch((error: unknown) =>
    host.log(`the abandoned start of ${processId} could not be terminated: ${String(error)}`),
  );
}

/** Whether what has the id is, or may be, of this start and of no other. */
async function isToEnd(calls: Calls, { params, freshId, answers, extended }: Start): Promise<boolean> {
  const outcomes = extended && freshId ? [] : await Promise.allSettled(answers);
  if (!extended) return !outcomes.every(isRefusal);
  // At once: a server of ours cancels one that is still starting, and nobody else has this id.
  if (freshId) return true;
  // Only a request whose answer was lost is followed by another one.
  const last = outcomes.at(-1);
  if (last === undefined || isRefusal(last)) return false;
  return last.status === 'fulfilled' || (await tookPlace(calls, params));
}

/** A lost connection is no answer and says nothing about the start. */
function isRefusal(outcome: PromiseSettledResult<unknown>): boolean {
  return outcome.status === 'rejected' && outcome.reason instanceof RemoteError;
}

/** Whether the server has a process by these params; after a cut it has settled every request from before. */
async function tookPlace(calls: Calls, params: StartParams): Promise<boolean> {
  const { processes } = await calls.call({ method: 'process/list', params: {}, guard: listReply });
  // The comparison would start one where there is none.
  if (!processes.some(({ processId }) => processId === params.processId)) return false;
  try {
    await repeatStart(calls, adopting(params), {});
    return true;
  } catch (error) {
    if (isClientError(error) && error.cause instanceof RemoteError) return false;
    throw error;
  }
}
