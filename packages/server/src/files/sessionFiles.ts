/** What a session remembers of its file work across connections: operations that were done, and staged writes. */
import { Buffer } from 'node:buffer';
import { limits, WireError } from '@exec-server/protocol';
import { PathOrder } from './pathOrder.js';
import { Stages } from './stages.js';

export class SessionFiles {
  readonly stages = new Stages();
  /** Of the requests of all connections that controlled it: what an earlier one left under way comes first. */
  readonly order = new PathOrder();
  /** Operation id → its outcome, or the one to come; oldest first. */
  readonly #operations = new Map<string, Promise<unknown>>();

  /**
   * Runs an operation once: a repeat with the same id gets the outcome of the first, also while that is under way. Without
   * an id it is run each time.
   */
  once<T>(operationId: string | null | undefined, action: () => Promise<T>): Promise<T> {
    if (operationId === null || operationId === undefined) return action();
    checkFileId(operationId, 'operationId');
    const known = this.#operations.get(operationId);
    // The same id names the same operation, so the outcome is of its kind.
    if (known !== undefined) return known as Promise<T>;
    const outcome = action();
    this.#operations.set(operationId, outcome);
    // Its caller has the failure.
    outcome.catch(() => undefined);
    for (const oldest of this.#operations.keys()) {
      if (this.#operations.size <= limits.REMEMBERED_OPERATIONS) break;
      this.#operations.delete(oldest);
    }
    return outcome;
  }

  /** The session is over. Resolves when its temporary files are gone; never rejects. */
  async end(): Promise<void> {
    this.#operations.clear();
    await this.stages.end();
  }
}

/** An id of a stage, an operation or a watch. */
export function checkFileId(id: string, field: string): void {
  if (id !== '' && Buffer.byteLength(id) <= limits.MAX_FILE_ID_BYTES) return;
  throw new WireError('invalidArgument', `${field} must have 1 to ${limits.MAX_FILE_ID_BYTES} bytes`, {
    field,
    limitBytes: limits.MAX_FILE_ID_BYTES,
  });
}
