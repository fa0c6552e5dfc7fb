/** One consumer's way through the events of a process: from the tail, and from the server for what the tail has dropped. */
import { ClientError, isClientError } from '../errors.js';
import { lastSeqOf, type ProcessEvent, sizeOf } from '../events.js';
import type { Consumer, ProcessRecord } from './processRecord.js';

export interface SubscriptionOptions {
  readonly afterSeq: number;
  /** Makes a gap an error. */
  readonly errorOnGap: boolean;
  readonly handedOver?: (seq: number) => void;
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/**
 * Ends after `closed`, by `return` (leaving the loop), or by a ClientError with `data.cursor`. While it is iterated and
 * lags, it holds back the output of its process at the server.
 */
export class Subscription implements AsyncIterableIterator<ProcessEvent, undefined>, Consumer {
  readonly #record: ProcessRecord;
  readonly #errorOnGap: boolean;
  readonly #handedOver: ((seq: number) => void) | undefined;
  /** Last seq handed over. */
  #cursor: number;
  /** Last seq the caller is done with: he has come back for more. What he may still have in hand is not acknowledged. */
  #consumed: number;
  /** Read back from the server, not handed over yet: one answer at most, which has the budget of a read. */
  #backlog: ProcessEvent[] = [];
  #state: 'idle' | 'active' | 'done' = 'idle';
  #wake: (() => void) | undefined;
  /** Calls of `next` are answered one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(record: ProcessRecord, options: SubscriptionOptions) {
    this.#record = record;
    this.#cursor = options.afterSeq;
    this.#consumed = options.afterSeq;
    this.#errorOnGap = options.errorOnGap;
    this.#handedOver = options.handedOver;
  }

  get cursor(): number {
    return this.#consumed;
  }

  get backlogBytes(): number {
    return this.#backlog.reduce((sum, event) => sum + sizeOf(event), 0);
  }

  wake(): void {
    this.#wake?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<ProcessEvent, undefined>> {
    if (this.#state === 'idle') {
      this.#state = 'active';
      this.#record.addConsumer(this);
    }
    const result = this.#turn.then(() => this.#advance());
    // The caller has the error; the next turn only waits for this one to be over.
    this.#turn = result.catch(() => undefined);
    return result;
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    this.#finish('leaving');
    return Promise.resolve(DONE);
  }

  async #advance(): Promise<IteratorResult<ProcessEvent, undefined>> {
    if (this.#state === 'active' && this.#consumed < this.#cursor) {
      this.#consumed = this.#cursor;
      this.#record.noteConsumed();
    }
    while (this.#state === 'active') {
      const event = await this.#nextEvent();
      if (event === undefined) continue;
      if (event.type === 'gap' && this.#errorOnGap) this.#fail(this.#gapError(event.fromSeq, event.throughSeq));
      this.#cursor = lastSeqOf(event);
      this.#handedOver?.(this.#cursor);
      if (event.type === 'closed') this.#finish();
      return { done: false, value: event };
    }
    return DONE;
  }

  /** Undefined when the state has to be looked at again. */
  async #nextEvent(): Promise<ProcessEvent | undefined> {
    const kept = this.#backlog.shift();
    if (kept !== undefined) return kept;
    const found = this.#record.lookup(this.#cursor);
    switch (found.kind) {
      case 'event':
        return found.event;
      case 'evicted':
        await this.#readBack(found.firstSeq);
        return undefined;
      case 'end':
        if (this.#record.phase === 'closed') this.#finish();
        else if (this.#record.failure !== undefined) this.#fail(this.#record.failure);
        else await new Promise<void>((resolve) => (this.#wake = resolve));
        return undefined;
      default:
        return found satisfies never;
    }
  }

  async #readBack(tailFirstSeq: number): Promise<void> {
    let events: readonly ProcessEvent[] = [];
    try {
      events = await this.#record.readBack(this.#cursor);
    } catch (error) {
      // A server that has let go of the process has nothing to read; what is in the tail is still delivered.
      if (!isForgotten(error)) this.#fail(error);
    }
    if (events.length > 0) this.#backlog = [...events];
    else this.#backlog = [{ type: 'gap', fromSeq: this.#cursor + 1, throughSeq: tailFirstSeq - 1 }];
  }

  #gapError(fromSeq: number, throughSeq: number): ClientError {
    return new ClientError(
      'OUTPUT_LOST',
      `events ${fromSeq}-${throughSeq} of process ${this.#record.processId} are gone; the process is not affected; go on from ${throughSeq}`,
      { fromSeq, throughSeq },
    );
  }

  #fail(error: unknown): never {
    this.#finish();
    const place = { processId: this.#record.processId, cursor: this.#cursor };
    throw isClientError(error) ? error.with(place) : new ClientError('OUTPUT_LOST', 'reading failed', place, error);
  }

  #finish(how: 'ended' | 'leaving' = 'ended'): void {
    if (this.#state === 'done') return;
    this.#state = 'done';
    this.#backlog = [];
    this.#record.removeConsumer(this, how);
    this.#wake?.();
  }
}

function isForgotten(error: unknown): boolean {
  return isClientError(error) && (error.data.reason === 'unknownProcess' || error.data.reason === 'expiredProcess');
}
