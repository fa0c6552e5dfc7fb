/** Process id → record: routes what arrives, and ends every record when the session is lost. */
import { ClientError } from '../errors.js';
import type { RecordGauges } from '../gauges.js';
import type { ProcessNotice } from '../guards.js';
import type { ProcessRecord } from './processRecord.js';

export class SessionRegistry {
  readonly #records = new Map<string, ProcessRecord>();
  #failure: ClientError | undefined;

  get size(): number {
    return this.#records.size;
  }

  gauges(): RecordGauges {
    const sum = { processes: this.size, reorderBytes: 0, tailBytes: 0, backlogBytes: 0 };
    for (const record of this.#records.values()) {
      sum.reorderBytes += record.reorderBytes;
      sum.tailBytes += record.tailBytes;
      sum.backlogBytes += record.backlogBytes;
    }
    return sum;
  }

  /** Throws for an id that has a record, and once the session is lost. */
  register(record: ProcessRecord): void {
    if (this.#failure !== undefined) throw this.#failure;
    const { processId } = record;
    if (this.#records.has(processId)) {
      throw new ClientError(
        'DUPLICATE_PROCESS',
        `this client already follows a process ${processId}, which is not affected; nothing was sent; choose another id`,
        { processId },
      );
    }
    this.#records.set(processId, record);
  }

  get(processId: string): ProcessRecord | undefined {
    return this.#records.get(processId);
  }

  /** Removes a record, but not a later one of the same id. */
  remove(record: ProcessRecord): void {
    if (this.#records.get(record.processId) === record) this.#records.delete(record.processId);
  }

  /** Notices of processes nobody follows here are dropped: they stay readable at the server. */
  route(notice: ProcessNotice): void {
    this.#records.get(notice.processId)?.accept(notice.event);
  }

  records(): ProcessRecord[] {
    return [...this.#records.values()];
  }

  failAll(error: ClientError): void {
    this.#failure ??= error;
    const records = this.records();
    this.#records.clear();
    for (const record of records) record.fail(error);
  }
}
