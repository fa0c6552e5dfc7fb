/** Repairs what pushes did not bring: reads every process from its cursor after a resume, and one process when a hole stays. */
import { ErrorCode, limits, RemoteError } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import type { Connection } from '../connection.js';
import { ClientError, fromRemote, isClientError } from '../errors.js';
import { type ReadReply, readReply } from '../guards.js';
import type { ProcessRecord } from './processRecord.js';
import type { SessionRegistry } from './sessionRegistry.js';

/** How long a hole may stay before it is read; pushes overtake each other by much less. */
export const HOLE_MS = 1_000;
/** Processes read at a time after a resume; each answer may have megabytes. */
const READS_AT_A_TIME = 8;

/**
 * The budget of one read. Our server goes on pushing behind an answer and says where a process ends, so little is asked for;
 * a foreign server tells of exit and close by number only in an answer without a budget.
 */
export function readBudget(extended: boolean): { readonly maxBytes?: number } {
  return extended ? { maxBytes: limits.CATCH_UP_READ_BYTES } : {};
}

export interface CatchUpHost {
  /** A read that waits for a ready connection. */
  read(record: ProcessRecord, afterSeq: number): Promise<ReadReply>;
  log(text: string): void;
}

export class CatchUp {
  readonly #registry: SessionRegistry;
  readonly #host: CatchUpHost;
  readonly #clock: Clock;
  /** Cancels of timers; absent value while the read is under way. */
  readonly #repairs = new Map<ProcessRecord, (() => void) | undefined>();
  #stopped = false;

  constructor(registry: SessionRegistry, host: CatchUpHost, clock: Clock) {
    this.#registry = registry;
    this.#host = host;
    this.#clock = clock;
  }

  /** Reads each live process on a new connection; rejects when the connection does not carry it through. */
  async all(connection: Connection): Promise<void> {
    const waiting = this.#registry.records().filter((record) => record.phase === 'live');
    const work = async (): Promise<void> => {
      for (let record = waiting.shift(); record !== undefined; record = waiting.shift())
        await this.#one(connection, record);
    };
    await Promise.all(Array.from({ length: Math.min(READS_AT_A_TIME, waiting.length) }, work));
  }

  /** A hole was seen; it is read from the cursor if it stays, or at once when events behind it were dropped. */
  holeSeen(record: ProcessRecord, urgent: boolean): void {
    if (this.#stopped) return;
    if (!this.#repairs.has(record)) this.#schedule(record, urgent ? 0 : HOLE_MS);
    else if (urgent && this.#repairs.get(record) !== undefined) this.#schedule(record, 0);
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#repairs.values()) cancel?.();
    this.#repairs.clear();
  }

  async #one(connection: Connection, record: ProcessRecord): Promise<void> {
    const { processId } = record;
    let answer: unknown;
    try {
      const budget = readBudget(connection.extended);
      answer = await connection.request('process/read', { processId, afterSeq: record.cursor, ...budget });
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      this.#readFailed(record, fromRemote(error, 'process/read', { processId }));
      return;
    }
    const reply = readReply(answer);
    if (reply === undefined) throw connection.violate('the answer to process/read does not decode');
    this.#merge(record, reply);
    record.repeatAck();
  }

  #schedule(record: ProcessRecord, delayMs: number): void {
    this.#repairs.get(record)?.();
    this.#repairs.set(
      record,
      this.#clock.timer(delayMs, () => {
        this.#repairs.set(record, undefined);
        this.#repair(record).then(
          () => this.#repaired(record),
          (error: unknown) => {
            this.#host.log(`reading ${record.processId} to close a hole failed: ${String(error)}`);
            this.#repaired(record);
          },
        );
      }),
    );
  }

  async #repair(record: ProcessRecord): Promise<void> {
    for (let before = -1; record.hasHole && record.phase === 'live' && record.cursor > before; ) {
      before = record.cursor;
      let reply: ReadReply;
      try {
        reply = await this.#host.read(record, record.cursor);
      } catch (error) {
        if (!isClientError(error) || error.code !== 'SERVER_ERROR') throw error;
        this.#readFailed(record, error);
        return;
      }
      this.#merge(record, reply);
    }
  }

  #repaired(record: ProcessRecord): void {
    this.#repairs.delete(record);
    if (record.hasHole && !this.#stopped) this.#schedule(record, HOLE_MS);
  }

  #merge(record: ProcessRecord, reply: ReadReply): void {
    const fault = record.acceptReply(reply);
    if (fault !== undefined) this.#fail(record, fault);
  }

  /** Only this process fails; one the server no longer has is lost, and a passing refusal is left to the next attempt. */
  #readFailed(record: ProcessRecord, error: ClientError): void {
    if (error.data.retryable === true) throw error;
    const { reason } = error.data;
    const foreignUnknown = reason === undefined && error.data.wireCode === ErrorCode.invalidRequest;
    const gone = foreignUnknown || reason === 'unknownProcess' || reason === 'expiredProcess';
    const lost = new ClientError(
      'OUTPUT_LOST',
      `the server no longer has process ${record.processId}; what came after event ${record.cursor} is lost`,
      error.data,
      error,
    );
    this.#fail(record, gone ? lost : error);
  }

  #fail(record: ProcessRecord, error: ClientError): void {
    this.#registry.remove(record);
    record.fail(error);
  }
}
