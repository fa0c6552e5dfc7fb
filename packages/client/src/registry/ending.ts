/** How one process ended, and who waits to know. Pure. */
import type { ClientError } from '../errors.js';
import type { Closing, Exit } from '../events.js';
import { settled, Waiters, type Wish } from './waiters.js';

export class Ending {
  readonly #exitWaiters = new Waiters<Exit>();
  readonly #closeWaiters = new Waiters<Closing>();
  #exit: Exit | undefined;
  /** Seq of the exit event, once it is known. */
  #exitSeq: number | undefined;
  #closing: Closing | undefined;
  /** Why the exit is not told, where it is not known and will not be. */
  #exitFailure: ClientError | undefined;
  #closeFailure: ClientError | undefined;

  get exit(): Exit | undefined {
    return this.#exit;
  }

  get exitSeq(): number | undefined {
    return this.#exitSeq;
  }

  /** `seq` is undefined where the events of the process are no longer kept. */
  exited(exit: Exit, seq: number | undefined): void {
    this.#exit = exit;
    this.#exitSeq = seq;
    this.#exitWaiters.resolve(exit);
  }

  /** `exitLost`: what those are told who wait for an exit nobody has seen. */
  closed({ reason, holders }: Closing, exitLost: () => ClientError): void {
    this.#closing = { ...(reason === undefined ? {} : { reason }), ...(holders === undefined ? {} : { holders }) };
    this.#closeWaiters.resolve(this.#closing);
    if (this.#exit !== undefined) return;
    this.#exitFailure = exitLost();
    this.#exitWaiters.reject(this.#exitFailure);
  }

  /** Nothing more is heard of the process. */
  failed(error: ClientError): void {
    this.#exitFailure = error;
    this.#closeFailure = error;
    this.#exitWaiters.reject(error);
    this.#closeWaiters.reject(error);
  }

  waitExit(): Wish<Exit> {
    if (this.#exit !== undefined) return settled(Promise.resolve(this.#exit));
    return this.#exitFailure === undefined ? this.#exitWaiters.add() : settled(Promise.reject(this.#exitFailure));
  }

  waitClosed(): Wish<Closing> {
    if (this.#closing !== undefined) return settled(Promise.resolve(this.#closing));
    return this.#closeFailure === undefined ? this.#closeWaiters.add() : settled(Promise.reject(this.#closeFailure));
  }
}
