/** Runs the effects of the recovery machine and feeds results back; has the machine's only timer and its current connection. */
import type { Clock } from '../clock.js';
import { ClientError, toClientError } from '../errors.js';
import type { Carrier } from '../transport/dialer.js';
import { begin, type Effect, type Event, type State, step, type Step } from './machine.js';
import type { Policy } from './policy.js';

/** What the driver drives; `T` is an initialized connection. */
export interface DriverHost<T> {
  dial(signal: AbortSignal): Promise<Carrier>;
  /** Makes a connection; `lost` is to be called once when it closes, early loss included. */
  open(carrier: Carrier, lost: (error: ClientError, violation: boolean) => void): T;
  /** Completes the handshake, resuming if there is a session. */
  initialize(connection: T): Promise<void>;
  /** What `initialize` rejected with, and whether another attempt can help. */
  judge(error: unknown): { readonly error: ClientError; readonly retryable: boolean };
  /** Reads for every process what was missed. */
  catchUp(connection: T): Promise<void>;
  abort(connection: T): void;
  discard(carrier: Carrier): void;
  failed(error: ClientError): void;
  changed(state: State): void;
  log(text: string): void;
}

interface Waiter<T> {
  readonly resolve: (connection: T) => void;
  readonly reject: (error: ClientError) => void;
}

export class RecoveryDriver<T> {
  readonly #host: DriverHost<T>;
  readonly #policy: Policy;
  readonly #clock: Clock;
  readonly #random: () => number;
  #state: State;
  #connection: T | undefined;
  #dialing: AbortController | undefined;
  #cancelTimer: (() => void) | undefined;
  #waiters = new Set<Waiter<T>>();

  constructor(host: DriverHost<T>, policy: Policy, clock: Clock, random: () => number) {
    this.#host = host;
    this.#policy = policy;
    this.#clock = clock;
    this.#random = random;
    const first: Step<Carrier> = begin(policy, clock.now());
    this.#state = first.state;
    for (const effect of first.effects) this.#run(effect);
  }

  get state(): State {
    return this.#state;
  }

  /** The connection of the present attempt, ready or not. */
  get connection(): T | undefined {
    return this.#connection;
  }

  /**
   * The connection once calls may go out on it; rejects when there will be none. `forget` takes back the wish, so that a
   * caller who gave up leaves nothing behind.
   */
  ready(): { readonly connection: Promise<T>; forget(): void } {
    const settled = this.#settled();
    if (settled !== undefined) return { connection: settled, forget: () => {} };
    let waiter: Waiter<T> | undefined;
    const connection = new Promise<T>((resolve, reject) => {
      waiter = { resolve, reject };
      this.#waiters.add(waiter);
    });
    return {
      connection,
      forget: () => {
        if (waiter !== undefined) this.#waiters.delete(waiter);
      },
    };
  }

  close(): void {
    this.#dispatch({ type: 'close' });
  }

  #settled(): Promise<T> | undefined {
    switch (this.#state.name) {
      case 'ready':
        return this.#connection === undefined ? undefined : Promise.resolve(this.#connection);
      case 'failed':
        return Promise.reject(this.#state.error);
      case 'closed':
        return Promise.reject(closedError());
      default:
        return undefined;
    }
  }

  #dispatch(event: Event<Carrier>): void {
    const before = this.#state;
    const { state, effects } = step(this.#policy, before, event, { now: this.#clock.now(), random: this.#random() });
    this.#state = state;
    if (state.name !== before.name) this.#host.log(`${before.name} -> ${state.name}: ${reasonOf(event)}`);
    if (before.name !== state.name && !('attemptId' in state)) this.#stopTimer();
    // Told first: an effect may bring the next transition about, and transitions are told in order.
    if (state.name !== before.name) this.#host.changed(state);
    for (const effect of effects) this.#run(effect);
  }

  #run(effect: Effect<Carrier>): void {
    switch (effect.do) {
      case 'dial':
        this.#dial(effect.attemptId);
        break;
      case 'initialize':
        this.#initialize(effect.attemptId, effect.carrier);
        break;
      case 'catchUp':
        this.#catchUp(effect.attemptId);
        break;
      case 'discard':
        this.#host.discard(effect.carrier);
        break;
      case 'abandon':
        this.#abandon();
        break;
      case 'wakeAt':
        this.#stopTimer();
        this.#cancelTimer = this.#clock.timer(Math.max(0, effect.at - this.#clock.now()), () =>
          this.#dispatch({ type: 'tick' }),
        );
        break;
      case 'releaseCalls':
        this.#stopTimer();
        this.#settleWaiters((waiter) => {
          if (this.#connection !== undefined) waiter.resolve(this.#connection);
        });
        break;
      case 'fail':
        this.#host.failed(effect.error);
        this.#settleWaiters((waiter) => waiter.reject(effect.error));
        break;
      case 'shutDown': {
        // The connection is left to the owner, who may have to say goodbye on it.
        this.#dialing?.abort();
        const error = closedError();
        this.#host.failed(error);
        this.#settleWaiters((waiter) => waiter.reject(error));
        break;
      }
      default:
        effect satisfies never;
    }
  }

  #dial(attemptId: number): void {
    const dialing = new AbortController();
    this.#dialing = dialing;
    this.#host.dial(dialing.signal).then(
      (carrier) => this.#dispatch({ type: 'dialed', attemptId, carrier }),
      (cause: unknown) => {
        const error = toClientError(cause, 'CONNECT_FAILED', `no connection to ${this.#policy.label}`);
        this.#dispatch({ type: 'attemptFailed', attemptId, error, retryable: error.code === 'CONNECT_FAILED' });
      },
    );
  }

  #initialize(attemptId: number, carrier: Carrier): void {
    const connection = this.#host.open(carrier, (error, violation) =>
      this.#dispatch({ type: 'lost', attemptId, error, violation }),
    );
    this.#connection = connection;
    this.#host.initialize(connection).then(
      () => this.#dispatch({ type: 'initialized', attemptId }),
      (cause: unknown) => this.#dispatch({ type: 'attemptFailed', attemptId, ...this.#host.judge(cause) }),
    );
  }

  #catchUp(attemptId: number): void {
    if (this.#connection === undefined) return;
    this.#host.catchUp(this.#connection).then(
      () => this.#dispatch({ type: 'caughtUp', attemptId }),
      (cause: unknown) => {
        const error = toClientError(cause, 'RECOVERY_FAILED', 'catching up failed');
        this.#dispatch({ type: 'attemptFailed', attemptId, error, retryable: true });
      },
    );
  }

  #abandon(): void {
    this.#dialing?.abort();
    this.#dialing = undefined;
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection !== undefined) this.#host.abort(connection);
  }

  #settleWaiters(settle: (waiter: Waiter<T>) => void): void {
    const waiters = this.#waiters;
    this.#waiters = new Set();
    for (const waiter of waiters) settle(waiter);
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }
}

export function closedError(): ClientError {
  return new ClientError('CLOSED', 'the client was closed; make a new one to go on');
}

function reasonOf(event: Event<Carrier>): string {
  switch (event.type) {
    case 'attemptFailed':
    case 'lost':
      return event.error.message;
    case 'dialed':
    case 'initialized':
    case 'caughtUp':
    case 'tick':
    case 'close':
      return event.type;
    default:
      return event satisfies never;
  }
}
