/**
 * What one connection pushes: a pump for each process it follows, in turn through the outbox, and how far each has come. The
 * only owner of the pumps. Others stand in the same line.
 */
import { limits, type Seq, type Transport } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import type { Process } from '../processes/process.js';
import { Pump } from '../processes/pump.js';
import { Confirmations } from './confirmations.js';
import { type FrameSource, Outbox } from './outbox.js';

/** How the client of a connection takes its output. */
export interface Reader {
  /** False for an observer: it sets nobody's pace, and what it takes is not delivered. */
  readonly controls: boolean;
  /** It sends `process/ack` and takes `process/gap`. */
  readonly flowControl: boolean;
}

interface FlushWish {
  readonly throughSeq: Seq;
  /** Everything through it was pushed, or nothing more will be for now. */
  readonly done: () => void;
}

export class Pushes {
  readonly #clock: Clock;
  readonly #outbox: Outbox;
  readonly #confirmations: Confirmations;
  readonly #pumps = new Map<Process, Pump>();
  readonly #flushes = new Map<Pump, FlushWish[]>();
  #reader: Reader = { controls: true, flowControl: false };
  #cancelFirstReadWait: (() => void) | undefined;
  #ended = false;

  constructor(transport: Transport, clock: Clock) {
    this.#clock = clock;
    this.#confirmations = new Confirmations((arrived) => {
      if (transport.confirm === undefined) queueMicrotask(arrived);
      else transport.confirm(arrived);
    });
    this.#outbox = new Outbox(
      {
        send: (frame) => {
          transport.send(frame);
          this.#confirmations.counted(frame.length);
        },
        queuedBytes: () => transport.queuedBytes,
        flushed: () => this.#confirmations.ask(),
      },
      limits.OUTBOX_HIGH_WATER_BYTES,
    );
  }

  /** To be said before the first `follow`. */
  servesTo(reader: Reader): void {
    this.#reader = reader;
  }

  /** Bytes fetched from the disk and not sent yet. */
  get fetchedBytes(): number {
    let bytes = 0;
    for (const pump of this.#pumps.values()) bytes += pump.fetchedBytes;
    return bytes;
  }

  /** Begins to push the events of a process. `held`: only after the client's first read. */
  follow(process: Process, { held }: { readonly held: boolean }): void {
    if (this.#ended || this.#pumps.has(process)) return;
    const pump = this.#add(process, held);
    if (!held) this.#outbox.ready(pump);
    if (held && this.#reader.controls) this.#awaitFirstReads();
  }

  /** Pushes of a process start, or start again, behind a cursor. */
  restart(process: Process, afterSeq: Seq): void {
    if (this.#ended) return;
    // Held: nothing is pushed before its cursor is set.
    const pump = this.#pumps.get(process) ?? this.#add(process, true);
    pump.restart(afterSeq);
  }

  /** The client has read a process: its cursor was `afterSeq`, and the reply has carried everything through `throughSeq`. */
  readThrough(process: Process, afterSeq: Seq, throughSeq: Seq): void {
    this.#pumps.get(process)?.readThrough(afterSeq, throughSeq);
  }

  /** The client acknowledges. The process may have expired, with its last output still on its way. */
  acked(process: Process | undefined, processId: string, seq: Seq): void {
    if (process !== undefined) this.#pumps.get(process)?.acked(seq);
    else for (const pump of this.#pumps.values()) if (pump.process.id === processId) pump.acked(seq);
  }

  /**
   * Settles with a seq when everything through it was pushed: the last one there is now, or, where no pushes are under way, the
   * last one that was pushed. `stop` settles it at once.
   */
  flush(process: Process): { readonly through: Promise<Seq>; stop: () => void } {
    const throughSeq = process.log.nextSeq - 1;
    const pump = this.#pumps.get(process);
    if (pump === undefined) return { through: Promise.resolve(throughSeq), stop: () => {} };
    if (pump.awaitsRead || pump.sentSeq >= throughSeq) {
      return { through: Promise.resolve(Math.min(pump.sentSeq, throughSeq)), stop: () => {} };
    }
    let stop = (): void => {};
    const through = new Promise<Seq>((resolve) => {
      stop = () => resolve(Math.min(pump.sentSeq, throughSeq));
      const wishes = this.#flushes.get(pump) ?? [];
      wishes.push({ throughSeq, done: stop });
      this.#flushes.set(pump, wishes);
    });
    return { through, stop };
  }

  /** Something else may have a message: it takes its turn with the processes. */
  ready(source: FrameSource): void {
    if (!this.#ended) this.#outbox.ready(source);
  }

  /** It has none any more. */
  remove(source: FrameSource): void {
    this.#outbox.remove(source);
  }

  /** The transport has taken something. */
  drained(): void {
    this.#outbox.flush();
  }

  /** Nothing more is pushed. */
  end(): void {
    this.#ended = true;
    this.#confirmations.end();
    this.#cancelFirstReadWait?.();
    for (const pump of this.#pumps.values()) {
      this.#outbox.remove(pump);
      pump.end();
    }
    this.#pumps.clear();
    this.#flushes.clear();
  }

  #add(process: Process, held: boolean): Pump {
    const { controls, flowControl } = this.#reader;
    const confirms = controls && !flowControl;
    const pump = new Pump(process, {
      controls,
      creditBytes: controls ? limits.CREDIT_BYTES_PER_PROCESS : undefined,
      tellsGaps: flowControl,
      held,
      ready: (ready) => this.#outbox.ready(ready),
      sent: (sender, seq) => {
        if (confirms) this.#confirmations.sent(sender, seq);
        if (this.#flushes.size > 0) this.#tellFlushed(sender, seq);
      },
      over: (over) => this.#drop(over),
      stuck: (stuck) => this.#tellFlushed(stuck, Number.POSITIVE_INFINITY),
    });
    this.#pumps.set(process, pump);
    return pump;
  }

  /**
   * A client that resumes and only listens gets its output after this wait. One with flow control could have asked for it; for
   * what it has not read no process waits any longer.
   */
  #awaitFirstReads(): void {
    this.#cancelFirstReadWait ??= this.#clock.after(limits.FIRST_READ_WAIT_MS, () => {
      for (const pump of [...this.#pumps.values()]) {
        if (this.#reader.flowControl) pump.letGo();
        else pump.goOn();
      }
    });
  }

  #tellFlushed(pump: Pump, sentSeq: Seq): void {
    const wishes = this.#flushes.get(pump);
    if (wishes === undefined) return;
    const left = wishes.filter(({ throughSeq }) => throughSeq > sentSeq);
    if (left.length === 0) this.#flushes.delete(pump);
    else this.#flushes.set(pump, left);
    for (const wish of wishes) if (wish.throughSeq <= sentSeq) wish.done();
  }

  #drop(pump: Pump): void {
    this.#outbox.remove(pump);
    this.#pumps.delete(pump.process);
    for (const { done } of this.#flushes.get(pump) ?? []) done();
    this.#flushes.delete(pump);
  }
}
