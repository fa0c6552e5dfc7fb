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
import { startReply, type StartReply, terminateReply } from '../callGuards.js';
import type { Connection } from '../connection.js';
import { type ReadReply, readReply } from '../guards.js';
import { readBudget } from '../registry/catchUp.js';
import type { ProcessRecord } from '../registry/processRecord.js';
import type { SessionRegistry } from '../registry/sessionRegistry.js';
import { extensionOf } from './startParams.js';

export interface StartHost {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly registry: SessionRegistry;
  log(text: string): void;
}

/**
 * Resolves when the process is known to run, or to have been there. When the caller gives up before, a start that was sent
 * is terminated as soon as the server can be asked; one that adopts is left alone, since the process may be older than it.
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
  const start: Start = { params, bounds, answers: [], extended: false };
  try {
    await settle(host, record, start);
    if (record.phase === 'failed') registry.remove(record);
  } catch (error) {
    registry.remove(record);
    if (isClientError(error)) {
      record.fail(error);
      if (mayStillRun.has(error.code) && params.ifExists !== 'adopt') abandon(host, processId, start);
    }
    throw error;
  } finally {
    bounds.dispose();
  }
}

interface Start {
  readonly params: StartParams;
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

async function settle(host: StartHost, record: ProcessRecord, start: Start): Promise<void> {
  const { calls, clock } = host;
  const { params, bounds } = start;
  const call = startCall(params);
  for (let sent = 1; ; sent++) {
    const connection = await calls.connection(bounds);
    const { extended } = connection;
    start.extended = extended;
    requireTerminal(connection, params);
    try {
      const attempt = await calls.attempt(call, bounds, (answer) => void start.answers.push(answer));
      if (attempt.kind === 'answered') {
        await answered(calls, record, attempt.value, bounds);
        return;
      }
      // Asking again is answered with the process, whether it took place or not.
      if (params.ifExists === 'adopt') continue;
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
      throw outcomeUnknown(call, error);
    }
  }
}

/** Asks for a process this client follows already; the server compares the params. Only for a start that adopts. */
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
    throw notSupported(connection.carrier.transport.label, 'processes on a terminal');
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

/**
 * Terminates a start its caller has given up, in the background. A server of ours cancels one that is still starting; a
 * foreign one is asked when its start has settled.
 */
function abandon(host: StartHost, processId: string, { answers, extended }: Start): void {
  if (answers.length === 0) return;
  const terminate = async (): Promise<void> => {
    if (!extended && (await areRefused(answers))) return;
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

/** Waits for every answer. A lost connection is none and says nothing about the start. */
async function areRefused(answers: readonly Promise<unknown>[]): Promise<boolean> {
  const outcomes = await Promise.allSettled(answers);
  return outcomes.every((outcome) => outcome.status === 'rejected' && outcome.reason instanceof RemoteError);
}
