/** Sends calls: waits for a ready connection, keeps deadline and abort, and treats each method after a cut by its replay policy. */
import {
  RemoteError,
  type ReplayPolicy,
  type RequestMethod,
  requests,
  RequestTooLargeError,
  TransportClosedError,
} from '@exec-server/protocol';
import { type BoundOptions, Bounds, callErrors } from './bounds.js';
import type { Clock } from './clock.js';
import type { Connection } from './connection.js';
import { ClientError, type ClientErrorData, fromRemote } from './errors.js';
import { Permits } from './permits.js';
import { closedError, type RecoveryDriver } from './recovery/driver.js';

/** What {@link Client.call} can send: every request but `initialize`. */
export type CallableMethod = Exclude<RequestMethod, 'initialize'>;

/** Bounds of one call. The time of a recovery counts. */
export interface CallOptions {
  /**
   * How long the call may take, in ms, recovery included. Default 120,000; none for `process/read`, `process/write` and
   * `http/request`, which may wait on purpose, and for what works on whole trees. The error is REQUEST_TIMEOUT.
   */
  readonly timeoutMs?: number | undefined;
  /** Aborts the wait, with ABORTED. The server is not told: what was sent may still take effect. */
  readonly signal?: AbortSignal | undefined;
}

export interface Call<T> {
  readonly method: CallableMethod;
  readonly params: unknown;
  /** Checks the result; undefined for one that is not of this method. */
  readonly guard: (value: unknown) => T | undefined;
  /** What to call this where the server lacks the extensions it needs; absent when every server can do it. */
  readonly extension?: string;
  readonly data?: ClientErrorData;
  /** What to do after a cut, where the params name the effect so that a repeat does it once. Default: that of the method. */
  readonly replay?: ReplayPolicy;
  /** The connection it belongs to: what names a handle must not reach the next one. Default: the next ready connection. */
  readonly on?: Connection;
}

/** `cut`: sent, and the connection was lost before the answer; or not sent, the connection it belongs to being lost. */
export type Attempt<T> =
  | { readonly kind: 'answered'; readonly value: T }
  | { readonly kind: 'cut'; readonly error: Error };

/** How long a call may take unless told otherwise. */
export const DEFAULT_TIMEOUT_MS = 120_000;

/** They wait on purpose, or take as long as a tree is large; a dead connection is noticed without a time limit. */
const UNLIMITED: ReadonlySet<CallableMethod> = new Set([
  'process/read',
  'process/write',
  'http/request',
  'fs/copy',
  'fs/move',
  'fs/remove',
]);

/** Methods an observer may not call, because they are about files, and that change none. */
const READS: ReadonlySet<CallableMethod> = new Set([
  'fs/readFile',
  'fs/readBlock',
  'fs/getMetadata',
  'fs/canonicalize',
  'fs/readDirectory',
  'fs/walk',
]);

const changesNothing = (method: CallableMethod): boolean => requests[method].observers || READS.has(method);

function timeoutOf(method: CallableMethod, options: CallOptions): BoundOptions {
  return UNLIMITED.has(method) || options.timeoutMs !== undefined
    ? options
    : { ...options, timeoutMs: DEFAULT_TIMEOUT_MS };
}

export class Calls {
  readonly #driver: RecoveryDriver<Connection>;
  readonly #clock: Clock;
  readonly #permits = new Permits();
  readonly #pending = new Set<Bounds>();

  constructor(driver: RecoveryDriver<Connection>, clock: Clock) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /** Calls that wait for a connection, for their turn or for their answer. */
  get pending(): number {
    return this.#pending.size;
  }

  bounds(method: CallableMethod, options: CallOptions, data?: ClientErrorData): Bounds {
    const disposed = (): void => void this.#pending.delete(bounds);
    const bounds = new Bounds(
      timeoutOf(method, options),
      this.#clock,
      callErrors(method, { method, ...data }, changesNothing(method)),
      disposed,
    );
    this.#pending.add(bounds);
    return bounds;
  }

  /** Sends a call and, after a cut, does what the method's replay policy says. */
  async call<T>(call: Call<T>, options: CallOptions = {}): Promise<T> {
    const bounds = this.bounds(call.method, options, call.data);
    try {
      return await this.answer(call, bounds);
    } finally {
      bounds.dispose();
    }
  }

  /** The same within bounds of the caller's. `sent` is called each time the call goes out. */
  async answer<T>(call: Call<T>, bounds: Bounds, sent?: () => void): Promise<T> {
    for (;;) {
      const attempt = await this.attempt(call, bounds, sent);
      if (attempt.kind === 'answered') return attempt.value;
      const replay = call.replay ?? requests[call.method].replay;
      if (replay !== 'repeat' && replay !== 'continue') throw outcomeUnknown(call, attempt.error);
    }
  }

  /** Sends a call once, on the next ready connection. `sent` is given the answer to come, when the call goes out. */
  async attempt<T>(call: Call<T>, bounds: Bounds, sent?: (answer: Promise<unknown>) => void): Promise<Attempt<T>> {
    for (;;) {
      bounds.check();
      const connection = call.on ?? (await this.connection(bounds));
      if ((requests[call.method].extension || call.extension !== undefined) && !connection.extended) {
        throw notSupported(connection.carrier.transport.label, call.extension ?? call.method);
      }
      // A foreign server answers in strict order and stops when it is given too much, so nothing passes there.
      const passes = requests[call.method].urgent && connection.extended;
      const permit = passes ? undefined : await this.#permit(connection, bounds);
      if (connection.closed || bounds.over) {
        permit?.();
        bounds.check();
        if (call.on !== undefined) return { kind: 'cut', error: lostBefore(call.method) };
        continue;
      }
      const request = connection.request(call.method, call.params);
      if (permit !== undefined) request.then(permit, permit);
      sent?.(request);
      let value: unknown;
      try {
        value = await bounds.race(request);
      } catch (error) {
        const isEnd = call.on !== undefined && this.#driver.state.name === 'closed';
        // The session was ended by `close`; what it held is not lost to a cut, nor to the server.
        if (isEnd && (error instanceof TransportClosedError || error instanceof RemoteError)) throw closedError();
        if (error instanceof TransportClosedError) return { kind: 'cut', error };
        if (error instanceof RequestTooLargeError) {
          throw new ClientError('REQUEST_TOO_LARGE', error.message, {
            method: call.method,
            ...call.data,
            ...error.limit,
          });
        }
        throw error instanceof RemoteError ? fromRemote(error, call.method, call.data) : error;
      }
      const result = call.guard(value);
      if (result === undefined) throw connection.violate(`the answer to ${call.method} does not decode`);
      return { kind: 'answered', value: result };
    }
  }

  /** The ready connection, once there is one. */
  async connection(bounds: Bounds): Promise<Connection> {
    for (;;) {
      const wish = this.#driver.ready();
      let connection: Connection;
      try {
        connection = await bounds.race(wish.connection);
      } finally {
        wish.forget();
      }
      if (!connection.closed) return connection;
      // Its loss is known here and not yet to the driver.
      await bounds.race(connection.finished);
    }
  }

  async #permit(connection: Connection, bounds: Bounds): Promise<() => void> {
    const wish = this.#permits.acquire(connection.requestLimit);
    try {
      await bounds.race(wish.granted);
      bounds.check();
    } catch (error) {
      wish.forget();
      throw error;
    }
    return () => this.#permits.release();
  }
}

function lostBefore(method: string): Error {
  return new Error(`the connection was lost before ${method} was sent`);
}

export function outcomeUnknown(call: Pick<Call<unknown>, 'method' | 'data'>, cause: unknown): ClientError {
  return new ClientError(
    'OUTCOME_UNKNOWN',
    `the connection was lost after ${call.method} was sent; whether it took effect is not known; it is not repeated by itself`,
    { method: call.method, ...call.data },
    cause,
  );
}

/** `label` names the server. */
export function notSupported(label: string, what: string): ClientError {
  return new ClientError('NOT_SUPPORTED', `${label} does not support ${what}; nothing was sent`);
}
