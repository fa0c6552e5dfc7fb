/**
 * Life of a client's connection as data: an event and the time give the next state and what to do. Late results carry an
 * old attempt id and are dropped. `failed` and `closed` absorb everything. Pure.
 *
 * dialing → initializing → ready —lost→ waiting → redialing → resuming → catchingUp → ready
 */
import type { ClientError } from '../errors.js';
import { backoffMs, FLAPPING_TRIES, spentAttempts } from './backoff.js';
import { connectTimeout, initializeTimeout, outOfAttempts, outOfTime } from './verdicts.js';
import type { Policy } from './policy.js';

/** Losses by a violation of the protocol in a row, without a stable time between, that are recovered from. */
export const MAX_VIOLATIONS = 3;

/** Carried along the road back, from the loss on. */
interface Recovery {
  readonly attemptId: number;
  /** Set once at the loss. */
  readonly deadline: number;
  /** Attempts made since the last stable time, against the budget. */
  readonly attempt: number;
  /** Where the backoff stands: attempts since this loss, and a few more for a connection that keeps being lost. */
  readonly tries: number;
  readonly violations: number;
  readonly lastError: ClientError;
}

export type State =
  | { readonly name: 'dialing' | 'initializing'; readonly attemptId: number; readonly deadline: number }
  | {
      readonly name: 'ready';
      readonly attemptId: number;
      readonly since: number;
      readonly attempt: number;
      readonly violations: number;
    }
  /** `until`: when the next attempt begins. */
  | (Recovery & { readonly name: 'waiting'; readonly until: number })
  /** `until`: when this step of the attempt counts as failed. */
  | (Recovery & { readonly name: 'redialing' | 'resuming' | 'catchingUp'; readonly until: number })
  | { readonly name: 'failed'; readonly error: ClientError }
  | { readonly name: 'closed' };

export type StateName = State['name'];

/** `C` is a dialed connection; the machine only hands it on. */
export type Event<C> =
  | { readonly type: 'dialed'; readonly attemptId: number; readonly carrier: C }
  | { readonly type: 'initialized' | 'caughtUp'; readonly attemptId: number }
  | {
      readonly type: 'attemptFailed';
      readonly attemptId: number;
      readonly error: ClientError;
      readonly retryable: boolean;
    }
  | { readonly type: 'lost'; readonly attemptId: number; readonly error: ClientError; readonly violation: boolean }
  | { readonly type: 'tick' }
  | { readonly type: 'close' };

export type Effect<C> =
  | { readonly do: 'dial' | 'catchUp'; readonly attemptId: number }
  | { readonly do: 'initialize'; readonly attemptId: number; readonly carrier: C }
  /** Closes a connection that came too late. */
  | { readonly do: 'discard'; readonly carrier: C }
  /** Gives up the attempt under way, its connection included. */
  | { readonly do: 'abandon' }
  /** A `tick` is wanted at this time; replaces an earlier wish. */
  | { readonly do: 'wakeAt'; readonly at: number }
  /** Calls are held in every state but `ready`; those that wait may go out now. */
  | { readonly do: 'releaseCalls' }
  | { readonly do: 'fail'; readonly error: ClientError }
  | { readonly do: 'shutDown' };

export interface Step<C> {
  readonly state: State;
  readonly effects: readonly Effect<C>[];
}

export interface Moment {
  readonly now: number;
  /** In [0, 1), for the jitter. */
  readonly random: number;
}

export function begin<C>(policy: Policy, now: number): Step<C> {
  const deadline = now + policy.connectTimeoutMs;
  return go({ name: 'dialing', attemptId: 1, deadline }, [
    { do: 'dial', attemptId: 1 },
    { do: 'wakeAt', at: deadline },
  ]);
}

export function step<C>(policy: Policy, state: State, event: Event<C>, moment: Moment): Step<C> {
  const current = 'attemptId' in state ? state.attemptId : undefined;
  if ('attemptId' in event && event.attemptId !== current) {
    return keep(state, event.type === 'dialed' ? [{ do: 'discard', carrier: event.carrier }] : []);
  }
  if (event.type === 'close') return close(state);
  const { now } = moment;
  switch (state.name) {
    case 'dialing':
      return dialing(policy, state, event, now);
    case 'initializing':
      return initializing(policy, state, event, now);
    case 'ready':
      return event.type === 'lost' ? lose(policy, state, event, moment) : keep(state, discardDialed(event));
    case 'waiting':
      return waiting(policy, state, event, now);
    case 'redialing':
    case 'resuming':
    case 'catchingUp':
      return recovering(policy, state, event, moment);
    case 'failed':
    case 'closed':
      return keep(state);
    default:
      return state satisfies never;
  }
}

type First = Extract<State, { name: 'dialing' | 'initializing' }>;
type Ready = Extract<State, { name: 'ready' }>;
type Waiting = Extract<State, { name: 'waiting' }>;
type Underway = Extract<State, { name: 'redialing' | 'resuming' | 'catchingUp' }>;
type Loss<C> = Extract<Event<C>, { type: 'lost' }>;

function dialing<C>(policy: Policy, state: First, event: Event<C>, now: number): Step<C> {
  if (event.type === 'dialed') {
    const deadline = now + policy.initializeTimeoutMs;
    const { attemptId } = state;
    return go({ name: 'initializing', attemptId, deadline }, [
      { do: 'initialize', attemptId, carrier: event.carrier },
      { do: 'wakeAt', at: deadline },
    ]);
  }
  if (event.type === 'attemptFailed') return fail(event.error);
  if (event.type !== 'tick') return keep(state);
  return now < state.deadline ? keepWaking(state, state.deadline) : fail(connectTimeout(policy));
}

function initializing<C>(policy: Policy, state: First, event: Event<C>, now: number): Step<C> {
  switch (event.type) {
    case 'initialized':
      return go({ name: 'ready', attemptId: state.attemptId, since: now, attempt: 0, violations: 0 }, [
        { do: 'releaseCalls' },
      ]);
    case 'attemptFailed':
    case 'lost':
      return fail(event.error);
    case 'tick':
      return now < state.deadline ? keepWaking(state, state.deadline) : fail(initializeTimeout(policy));
    default:
      return keep(state, discardDialed(event));
  }
}

function lose<C>(policy: Policy, state: Ready, loss: Loss<C>, { now, random }: Moment): Step<C> {
  // A server that stops, or has ended, holds the session no more.
  if (loss.error.code === 'SERVER_GONE') return fail(loss.error);
  const readyMs = now - state.since;
  const violations = spentAttempts(state.violations, readyMs) + (loss.violation ? 1 : 0);
  if (!policy.reconnect || violations > MAX_VIOLATIONS) return fail(loss.error);
  const recovery: Recovery = {
    attemptId: state.attemptId + 1,
    deadline: now + policy.recoveryMs,
    attempt: spentAttempts(state.attempt, readyMs),
    tries: spentAttempts(FLAPPING_TRIES, readyMs),
    violations,
    lastError: loss.error,
  };
  return wait(policy, recovery, now, random, [{ do: 'abandon' }]);
}

function waiting<C>(policy: Policy, state: Waiting, event: Event<C>, now: number): Step<C> {
  if (event.type !== 'tick') return keep(state, discardDialed(event));
  if (now >= state.deadline) return fail(outOfTime(policy, state));
  if (now < state.until) return keepWaking(state, state.until);
  const until = Math.min(now + policy.connectTimeoutMs, state.deadline);
  const { attemptId } = state;
  return go({ ...state, name: 'redialing', attempt: state.attempt + 1, tries: state.tries + 1, until }, [
    { do: 'dial', attemptId },
    { do: 'wakeAt', at: until },
  ]);
}

function recovering<C>(policy: Policy, state: Underway, event: Event<C>, moment: Moment): Step<C> {
  const { now } = moment;
  const { attemptId, attempt, violations, deadline } = state;
  switch (event.type) {
    case 'dialed': {
      if (state.name !== 'redialing') return keep(state, discardDialed(event));
      const until = Math.min(now + policy.initializeTimeoutMs, deadline);
      return go({ ...state, name: 'resuming', until }, [
        { do: 'initialize', attemptId, carrier: event.carrier },
        { do: 'wakeAt', at: until },
      ]);
    }
    case 'initialized':
      if (state.name !== 'resuming') return keep(state);
      return go({ ...state, name: 'catchingUp', until: deadline }, [
        { do: 'catchUp', attemptId },
        { do: 'wakeAt', at: deadline },
      ]);
    case 'caughtUp':
      if (state.name !== 'catchingUp') return keep(state);
      return go({ name: 'ready', attemptId, since: now, attempt, violations }, [{ do: 'releaseCalls' }]);
    case 'attemptFailed':
      return event.retryable ? again(policy, state, event.error, false, moment) : fail(event.error);
    case 'lost':
      if (event.error.code === 'SERVER_GONE') return fail(event.error);
      return again(policy, state, event.error, event.violation, moment);
    case 'tick':
      if (now >= deadline) return fail(outOfTime(policy, state));
      if (now < state.until) return keepWaking(state, state.until);
      return again(
        policy,
        state,
        state.name === 'redialing' ? connectTimeout(policy) : initializeTimeout(policy),
        false,
        moment,
      );
    default:
      return keep(state);
  }
}

/** The next attempt of the same recovery: same deadline, new attempt id. */
function again<C>(
  policy: Policy,
  state: Underway,
  error: ClientError,
  violation: boolean,
  { now, random }: Moment,
): Step<C> {
  const violations = state.violations + (violation ? 1 : 0);
  if (violations > MAX_VIOLATIONS) return fail(error);
  const { attempt, tries, deadline } = state;
  const recovery: Recovery = { attemptId: state.attemptId + 1, deadline, attempt, tries, violations, lastError: error };
  return wait(policy, recovery, now, random, [{ do: 'abandon' }]);
}

function wait<C>(
  policy: Policy,
  recovery: Recovery,
  now: number,
  random: number,
  effects: readonly Effect<C>[],
): Step<C> {
  if (recovery.attempt >= policy.maxReconnects) return fail(outOfAttempts(policy, recovery));
  if (now >= recovery.deadline) return fail(outOfTime(policy, recovery));
  const until = Math.min(now + backoffMs(recovery.tries, random), recovery.deadline);
  return go({ ...recovery, name: 'waiting', until }, [...effects, { do: 'wakeAt', at: until }]);
}

function close<C>(state: State): Step<C> {
  if (state.name === 'failed' || state.name === 'closed') return keep(state);
  return go({ name: 'closed' }, [{ do: 'shutDown' }]);
}

function fail<C>(error: ClientError): Step<C> {
  return go({ name: 'failed', error }, [{ do: 'abandon' }, { do: 'fail', error }]);
}

function go<C>(state: State, effects: readonly Effect<C>[]): Step<C> {
  return { state, effects };
}

function keep<C>(state: State, effects: readonly Effect<C>[] = []): Step<C> {
  return { state, effects };
}

/** Timers may fire early by a fraction; then the rest is waited for. */
function keepWaking<C>(state: State, at: number): Step<C> {
  return keep(state, [{ do: 'wakeAt', at }]);
}

function discardDialed<C>(event: Event<C>): Effect<C>[] {
  return event.type === 'dialed' ? [{ do: 'discard', carrier: event.carrier }] : [];
}
