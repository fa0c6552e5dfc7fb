/**
 * The client's bookkeeping for one process: order, tail, consumers, acknowledgements and how it ended. Everything about a
 * process that arrives, by push or by read, enters through `accept` and `acceptReply`.
 */
import { limits } from '@exec-server/protocol';
import { ClientError } from '../errors.js';
import type { Closing, Exit, ExitedEvent, ProcessEvent } from '../events.js';
import type { ReadReply } from '../guards.js';
import { AckLedger } from './ackLedger.js';
import { Ending } from './ending.js';
import { EventTail, type Lookup } from './eventTail.js';
import { Reorder } from './reorder.js';
import { eventsOfReply } from './replyEvents.js';
import { Waiters, type Wish } from './waiters.js';

/** What a record asks of its surroundings. */
export interface RecordHost {
  /** Consumed bytes after which an acknowledgement is due; undefined where nothing is acknowledged. */
  readonly ackEveryBytes: number | undefined;
  /** Tells the server that everything up to `seq` was consumed. */
  acknowledge(processId: string, seq: number): void;
  /** Something is known to exist beyond a hole; `urgent` when it had to be dropped. */
  holeSeen(record: ProcessRecord, urgent: boolean): void;
  /** `closed` was released. */
  closed(record: ProcessRecord): void;
  /** Runs `action` a turn later. */
  soon(action: () => void): void;
  /** Asks the server for what follows `afterSeq`. */
  read(record: ProcessRecord, afterSeq: number): Promise<ReadReply>;
}

/** One consumer of a record's events. */
export interface Consumer {
  /** Last seq it is done with. */
  readonly cursor: number;
  /** Output bytes it has read back from the server and not handed over. */
  readonly backlogBytes: number;
  /** Something was released, or the record ended. */
  wake(): void;
}

/**
 * `starting`: no answer to the start yet; not read after a cut, the start is settled first.
 * `live`: known to exist. `closed`: the last event was released. `failed`: nothing more comes.
 */
export type RecordPhase = 'starting' | 'live' | 'closed' | 'failed';

export class ProcessRecord {
  readonly processId: string;
  readonly afterSeq: number;
  /** Somebody has it beside the caller who made it, so that it outlives a failure of that call. */
  shared = false;
  readonly #host: RecordHost;
  readonly #reorder: Reorder;
  readonly #tail: EventTail;
  /** Absent where nothing is acknowledged: it would grow for as long as a consumer lags. */
  readonly #ledger: AckLedger | undefined;
  readonly #consumers = new Set<Consumer>();
  readonly #ending = new Ending();
  readonly #releaseWaiters = new Waiters<void>();
  readonly #beginWaiters = new Waiters<void>();
  #beginning = true;
  #phase: RecordPhase = 'starting';
  #pid: number | undefined;
  #failure: ClientError | undefined;

  constructor(processId: string, host: RecordHost, afterSeq = 0) {
    this.processId = processId;
    this.afterSeq = afterSeq;
    this.#host = host;
    this.#reorder = new Reorder(afterSeq);
    this.#tail = new EventTail(afterSeq, limits.CLIENT_TAIL_BYTES);
    this.#ledger = host.ackEveryBytes === undefined ? undefined : new AckLedger(afterSeq, host.ackEveryBytes);
  }

  get phase(): RecordPhase {
    return this.#phase;
  }

  get pid(): number | undefined {
    return this.#pid;
  }

  /** Last seq that was released in order. */
  get cursor(): number {
    return this.#reorder.last;
  }

  get failure(): ClientError | undefined {
    return this.#failure;
  }

  get exit(): Exit | undefined {
    return this.#ending.exit;
  }

  get hasHole(): boolean {
    return this.#reorder.hasHole && (this.#phase === 'live' || this.#phase === 'starting');
  }

  /** Output bytes held behind a hole. */
  get reorderBytes(): number {
    return this.#reorder.heldBytes;
  }

  /** Bytes of the newest events, kept for those who come late. */
  get tailBytes(): number {
    return this.#tail.bytes;
  }

  get backlogBytes(): number {
    let bytes = 0;
    for (const consumer of this.#consumers) bytes += consumer.backlogBytes;
    return bytes;
  }

  /** The start is known to have taken place. */
  started(pid: number | undefined): void {
    this.#pid = pid;
    this.adopted();
    this.begun();
  }

  /** The process was there before; what there is of it is still to be read. */
  adopted(): void {
    if (this.#phase === 'starting') this.#phase = 'live';
  }

  /** The start, or the first read of an adopted process, went well: others may have the record too. */
  begun(): void {
    this.#beginning = false;
    this.#beginWaiters.resolve();
  }

  /** Undefined unless the start or the first read is under way; else a wait for its end, which rejects when that failed. */
  waitBegun(): Wish<void> | undefined {
    return this.#beginning ? this.#beginWaiters.add() : undefined;
  }

  accept(event: ProcessEvent): void {
    if (this.#phase === 'closed' || this.#phase === 'failed') return;
    const accepted = this.#reorder.accept(event);
    switch (accepted.kind) {
      case 'released':
        this.#release(accepted.events);
        break;
      case 'held':
        this.#host.holeSeen(this, false);
        break;
      case 'overflow':
        this.#host.holeSeen(this, true);
        break;
      case 'duplicate':
        break;
      default:
        accepted satisfies never;
    }
  }

  /** Merges an answer about what follows the cursor or an earlier one; returns what is wrong with it, if anything. */
  acceptReply(reply: ReadReply): ClientError | undefined {
    if (this.#phase === 'closed' || this.#phase === 'failed') return undefined;
    const { last: afterSeq, exitKnown } = this.#reorder;
    const target = reply.nextSeq - 1;
    if (reply.closed && target > afterSeq && this.#reorder.held(target)?.type === 'output') {
      return this.#contradiction(`event ${target} is output and the close at once`);
    }
    const held = this.#reorder.heldSeqs();
    const result = eventsOfReply(reply, {
      afterSeq,
      held,
      exitKnown,
      exitMayPrecede: this.afterSeq > 0,
      ...this.#exitPlace(),
    });
    if (!result.ok) return this.#contradiction(result.detail);
    for (const event of result.events) this.accept(event);
    this.#notePast(reply);
    return undefined;
  }

  /** A handle may begin behind the exit, and even behind the close. */
  #notePast({ exit, exitedSeq, closed, closing, nextSeq }: ReadReply): void {
    if (exit !== undefined && this.exit === undefined && exitedSeq !== undefined && exitedSeq <= this.afterSeq) {
      this.#ending.exited(exit, exitedSeq);
    }
    if (closed && nextSeq - 1 <= this.afterSeq && this.#phase === 'live') {
      this.#noteClosed(closing);
      this.#wakeConsumers();
      this.#releaseWaiters.resolve();
    }
  }

  /** An adopted process that is over and of which the server keeps nothing but how it ended. */
  endedBefore(exit: Exit, error: ClientError): void {
    this.#ending.exited(exit, undefined);
    this.fail(error);
  }

  /** An adopted process that is over, of which nothing is missed after the cursor. */
  closedBefore(exit: Exit | undefined): void {
    if (exit !== undefined) this.#ending.exited(exit, undefined);
    this.#noteClosed({});
  }

  /** Events after `cursor` that the tail no longer has, from the server. */
  async readBack(cursor: number): Promise<readonly ProcessEvent[]> {
    const reply = await this.#host.read(this, cursor);
    const { exitSeq } = this.#ending;
    const exitKnown = exitSeq !== undefined && exitSeq <= cursor;
    const result = eventsOfReply(reply, {
      afterSeq: cursor,
      held: [],
      exitKnown,
      exitMayPrecede: cursor > 0,
      ...this.#exitPlace(),
    });
    if (!result.ok) throw this.#contradiction(result.detail);
    return result.events;
  }

  lookup(cursor: number): Lookup {
    return this.#tail.after(cursor);
  }

  /** From its first call on, a consumer that lags withholds acknowledgements. */
  addConsumer(consumer: Consumer): void {
    this.#consumers.add(consumer);
  }

  /**
   * What it has not taken is acknowledged, since nobody else may hold back the process. One that leaves gets a turn to detach the
   * client first: whoever goes on from its cursor then finds everything.
   */
  removeConsumer(consumer: Consumer, how: 'ended' | 'leaving' = 'ended'): void {
    if (!this.#consumers.delete(consumer)) return;
    if (how === 'ended') this.noteConsumed();
    else this.#host.soon(() => this.noteConsumed());
  }

  /** Acknowledges what every consumer has taken; with no consumer, everything that arrived. */
  noteConsumed(): void {
    if (this.#ledger === undefined) return;
    let consumed = this.#tail.lastSeq;
    for (const { cursor } of this.#consumers) consumed = Math.min(consumed, cursor);
    const due = this.#ledger.consumed(consumed);
    if (due !== undefined) this.#host.acknowledge(this.processId, due);
  }

  /** After a cut the server may have missed acknowledgements; without them it would wait for ever. */
  repeatAck(): void {
    this.#ledger?.forgetSent();
    const seq = this.#ledger?.take();
    if (seq !== undefined) this.#host.acknowledge(this.processId, seq);
  }

  /** Ends the record; what was released before is still delivered. Has no effect after `closed`. */
  fail(error: ClientError): void {
    this.#beginning = false;
    this.#beginWaiters.reject(error);
    if (this.#phase === 'closed' || this.#phase === 'failed') return;
    this.#phase = 'failed';
    this.#failure = error.with({ processId: this.processId, cursor: this.cursor });
    this.#ending.failed(this.#failure);
    this.#releaseWaiters.reject(this.#failure);
    this.#wakeConsumers();
  }

  waitExit(): Wish<Exit> {
    return this.#ending.waitExit();
  }

  waitClosed(): Wish<Closing> {
    return this.#ending.waitClosed();
  }

  /**
   * Undefined once everything up to `seq` was released, else a wait for the next release, to be followed by this question
   * again. What is missing is read if it does not come. Throws when nothing more comes.
   */
  waitReleased(seq: number): Wish<void> | undefined {
    if (this.cursor >= seq || this.#phase === 'closed') return undefined;
    if (this.#failure !== undefined) throw this.#failure;
    this.#reorder.expect(seq);
    this.#host.holeSeen(this, false);
    return this.#releaseWaiters.add();
  }

  #exitPlace(): { exitSeq?: number } {
    const { exitSeq } = this.#ending;
    return exitSeq === undefined ? {} : { exitSeq };
  }

  #release(events: readonly ProcessEvent[]): void {
    for (const event of events) {
      this.#tail.append(event);
      this.#ledger?.released(event);
      if (event.type === 'exited') this.#ending.exited(exitOfEvent(event), event.seq);
      if (event.type === 'closed') this.#noteClosed(event);
    }
    this.#wakeConsumers();
    this.#releaseWaiters.resolve();
    this.noteConsumed();
  }

  #noteClosed(closing: Closing): void {
    this.#phase = 'closed';
    this.#ending.closed(closing, () => this.#exitLost());
    this.#host.closed(this);
  }

  #contradiction(detail: string): ClientError {
    const message = `the server's events of process ${this.processId} contradict each other: ${detail}`;
    return new ClientError('PROTOCOL_VIOLATION', message, { processId: this.processId, cursor: this.cursor });
  }

  #exitLost(): ClientError {
    return new ClientError(
      'OUTPUT_LOST',
      `process ${this.processId} has ended; its exit event lies before the cursor this handle began at, so its exit code is not known here`,
      { processId: this.processId, cursor: this.cursor },
    );
  }

  #wakeConsumers(): void {
    for (const consumer of this.#consumers) consumer.wake();
  }
}

function exitOfEvent({ exitCode, signal, reason }: ExitedEvent): Exit {
  return {
    exitCode,
    ...(signal === undefined ? {} : { signal }),
    ...(reason === undefined ? {} : { reason }),
  };
}
