import { describe, expect, it } from 'vitest';
import { ClientError } from '../errors.js';
import { begin, type Effect, type Event, MAX_VIOLATIONS, type State, type StateName, step } from './machine.js';
import type { Policy } from './policy.js';

const policy: Policy = {
  label: 'ws://here',
  reconnect: true,
  maxReconnects: Number.POSITIVE_INFINITY,
  recoveryMs: 45_000,
  connectTimeoutMs: 10_000,
  initializeTimeoutMs: 5_000,
};
const moment = { now: 1_000, random: 0.5 };
const error = new ClientError('CONNECT_FAILED', 'refused');
const road = { attemptId: 4, deadline: 50_000, attempt: 2, tries: 2, violations: 0, lastError: error };

const states: Record<StateName, State> = {
  dialing: { name: 'dialing', attemptId: 4, deadline: 10_000 },
  initializing: { name: 'initializing', attemptId: 4, deadline: 10_000 },
  ready: { name: 'ready', attemptId: 4, since: 0, attempt: 2, violations: 0 },
  waiting: { name: 'waiting', ...road, until: 2_000 },
  redialing: { name: 'redialing', ...road, until: 2_000 },
  resuming: { name: 'resuming', ...road, until: 2_000 },
  catchingUp: { name: 'catchingUp', ...road, until: 50_000 },
  failed: { name: 'failed', error },
  closed: { name: 'closed' },
};

const events: Record<string, Event<string>> = {
  dialed: { type: 'dialed', attemptId: 4, carrier: 'carrier' },
  initialized: { type: 'initialized', attemptId: 4 },
  caughtUp: { type: 'caughtUp', attemptId: 4 },
  retryable: { type: 'attemptFailed', attemptId: 4, error, retryable: true },
  fatal: { type: 'attemptFailed', attemptId: 4, error, retryable: false },
  lost: { type: 'lost', attemptId: 4, error, violation: false },
  violated: { type: 'lost', attemptId: 4, error, violation: true },
  earlyTick: { type: 'tick' },
  close: { type: 'close' },
};

/** State name and effects after each event; `=` where the event is ignored. */
const table: Record<StateName, Record<string, string>> = {
  dialing: {
    dialed: 'initializing: initialize wakeAt',
    initialized: '=',
    caughtUp: '=',
    retryable: 'failed: abandon fail',
    fatal: 'failed: abandon fail',
    lost: '=',
    violated: '=',
    earlyTick: 'dialing: wakeAt',
    close: 'closed: shutDown',
  },
  initializing: {
    dialed: 'initializing: discard',
    initialized: 'ready: releaseCalls',
    caughtUp: '=',
    retryable: 'failed: abandon fail',
    fatal: 'failed: abandon fail',
    lost: 'failed: abandon fail',
    violated: 'failed: abandon fail',
    earlyTick: 'initializing: wakeAt',
    close: 'closed: shutDown',
  },
  ready: {
    dialed: 'ready: discard',
    initialized: '=',
    caughtUp: '=',
    retryable: '=',
    fatal: '=',
    lost: 'waiting: abandon wakeAt',
    violated: 'waiting: abandon wakeAt',
    earlyTick: '=',
    close: 'closed: shutDown',
  },
  waiting: {
    dialed: 'waiting: discard',
    initialized: '=',
    caughtUp: '=',
    retryable: '=',
    fatal: '=',
    lost: '=',
    violated: '=',
    earlyTick: 'waiting: wakeAt',
    close: 'closed: shutDown',
  },
  redialing: {
    dialed: 'resuming: initialize wakeAt',
    initialized: '=',
    caughtUp: '=',
    retryable: 'waiting: abandon wakeAt',
    fatal: 'failed: abandon fail',
    lost: 'waiting: abandon wakeAt',
    violated: 'waiting: abandon wakeAt',
    earlyTick: 'redialing: wakeAt',
    close: 'closed: shutDown',
  },
  resuming: {
    dialed: 'resuming: discard',
    initialized: 'catchingUp: catchUp wakeAt',
    caughtUp: '=',
    retryable: 'waiting: abandon wakeAt',
    fatal: 'failed: abandon fail',
    lost: 'waiting: abandon wakeAt',
    violated: 'waiting: abandon wakeAt',
    earlyTick: 'resuming: wakeAt',
    close: 'closed: shutDown',
  },
  catchingUp: {
    dialed: 'catchingUp: discard',
    initialized: '=',
    caughtUp: 'ready: releaseCalls',
    retryable: 'waiting: abandon wakeAt',
    fatal: 'failed: abandon fail',
    lost: 'waiting: abandon wakeAt',
    violated: 'waiting: abandon wakeAt',
    earlyTick: 'catchingUp: wakeAt',
    close: 'closed: shutDown',
  },
  failed: {
    dialed: 'failed: discard',
    initialized: '=',
    caughtUp: '=',
    retryable: '=',
    fatal: '=',
    lost: '=',
    violated: '=',
    earlyTick: '=',
    close: '=',
  },
  closed: {
    dialed: 'closed: discard',
    initialized: '=',
    caughtUp: '=',
    retryable: '=',
    fatal: '=',
    lost: '=',
    violated: '=',
    earlyTick: '=',
    close: '=',
  },
};

function names(effects: readonly Effect<string>[]): string {
  return effects.map((effect) => effect.do).join(' ');
}

describe('every state meets every event', () => {
  it('and no event is left out of the table', () => {
    for (const row of Object.values(table)) expect(Object.keys(row)).toEqual(Object.keys(events));
  });

  for (const [stateName, row] of Object.entries(table)) {
    it.each(Object.entries(row))(`${stateName}: %s → %s`, (eventName, expected) => {
      const state = states[stateName as StateName];
      const event = events[eventName];
      if (event === undefined) throw new Error(`no event ${eventName}`);
      const next = step(policy, state, event, moment);
      if (expected === '=') expect(next).toEqual({ state, effects: [] });
      else expect(`${next.state.name}: ${names(next.effects)}`).toBe(expected);
    });
  }
});

describe('late results', () => {
  const late = Object.entries(events).filter(([, event]) => 'attemptId' in event);
  const cases = Object.keys(states).flatMap((name) => late.map(([eventName]) => [name, eventName] as const));

  it.each(cases)('%s drops %s of another attempt, and closes its connection', (name, eventName) => {
    const state = states[name as StateName];
    for (const attemptId of [3, 5]) {
      const event = { ...events[eventName], attemptId } as Event<string>;
      const effects = event.type === 'dialed' ? [{ do: 'discard', carrier: 'carrier' }] : [];
      expect(step(policy, state, event, moment)).toEqual({ state, effects });
    }
  });
});

describe('the first connection', () => {
  it('begins with a dial and a deadline', () => {
    const first = begin<string>(policy, 100);
    expect(first.state).toEqual({ name: 'dialing', attemptId: 1, deadline: 10_100 });
    expect(names(first.effects)).toBe('dial wakeAt');
  });

  it.each([
    ['dialing', 'CONNECT_FAILED', /no connection to ws:\/\/here within 10000 ms/],
    ['initializing', 'INITIALIZE_TIMEOUT', /ws:\/\/here .*within 5000 ms/],
  ] as const)('fails with %s when its deadline passes', (name, code, text) => {
    const { state } = step(policy, states[name], { type: 'tick' }, { now: 10_000, random: 0 });
    expect(state).toMatchObject({ name: 'failed', error: { code, message: expect.stringMatching(text) as unknown } });
  });
});

describe('the road back', () => {
  it.each(['ready', 'resuming', 'catchingUp'] as const)('ends where the server says that it stops: %s', (name) => {
    const gone = new ClientError('SERVER_GONE', 'was stopped');
    const lost: Event<string> = { type: 'lost', attemptId: 4, error: gone, violation: false };
    expect(step(policy, states[name], lost, moment).state).toEqual({ name: 'failed', error: gone });
  });

  it('tries at once after a stable time, and sets the deadline at the loss', () => {
    const lost = step(
      policy,
      states.ready,
      { type: 'lost', attemptId: 4, error, violation: false },
      { now: 3_000, random: 0.9 },
    );
    expect(lost.state).toMatchObject({
      name: 'waiting',
      attemptId: 5,
      attempt: 0,
      tries: 0,
      until: 3_000,
      deadline: 48_000,
    });
  });

  it('waits a little before it dials again for a connection that keeps being lost', () => {
    const lost = step(
      policy,
      states.ready,
      { type: 'lost', attemptId: 4, error, violation: false },
      { now: 1_000, random: 1 },
    );
    expect(lost.state).toMatchObject({ name: 'waiting', attempt: 2, tries: 2, until: 1_100 });
  });

  it('keeps the old deadline across three failed dials', () => {
    let { state } = step<string>(
      policy,
      states.ready,
      { type: 'lost', attemptId: 4, error, violation: false },
      { now: 3_000, random: 0.9 },
    );
    for (let round = 0; round < 3; round++) {
      if (state.name !== 'waiting') throw new Error(state.name);
      const now = state.until;
      ({ state } = step<string>(policy, state, { type: 'tick' }, { now, random: 0.9 }));
      expect(state).toMatchObject({ name: 'redialing', deadline: 48_000, attempt: round + 1, tries: round + 1 });
      if (!('attemptId' in state)) throw new Error(state.name);
      ({ state } = step<string>(
        policy,
        state,
        { type: 'attemptFailed', attemptId: state.attemptId, error, retryable: true },
        { now, random: 0.9 },
      ));
      expect(state).toMatchObject({ name: 'waiting', deadline: 48_000 });
    }
  });

  it.each(['waiting', 'redialing', 'resuming', 'catchingUp'] as const)(
    '%s fails when the deadline passes, with the last error as cause',
    (name) => {
      const { state } = step(policy, states[name], { type: 'tick' }, { now: 50_000, random: 0 });
      expect(state).toMatchObject({
        name: 'failed',
        error: { code: 'RECOVERY_FAILED', data: { retryable: true }, cause: error },
      });
    },
  );

  it.each([
    ['redialing', 'CONNECT_FAILED'],
    ['resuming', 'INITIALIZE_TIMEOUT'],
  ] as const)('%s gives up a step that takes too long and tries again', (name, code) => {
    const next = step<string>(policy, states[name], { type: 'tick' }, { now: 2_000, random: 0 });
    expect(next.state).toMatchObject({ name: 'waiting', attemptId: 5, deadline: 50_000, lastError: { code } });
    expect(names(next.effects)).toBe('abandon wakeAt');
  });

  it('spreads the attempts of many clients over the whole bound', () => {
    const failed: Event<string> = { type: 'attemptFailed', attemptId: 4, error, retryable: true };
    const untils = [0, 0.25, 0.5].map((random) => {
      const { state } = step(policy, states.redialing, failed, { now: 1_000, random });
      return state.name === 'waiting' ? state.until : undefined;
    });
    expect(untils).toEqual([1_000, 1_025, 1_050]);
  });

  it('never waits beyond the deadline', () => {
    const { state } = step(
      policy,
      { ...states.redialing, deadline: 1_010 } as State,
      { type: 'attemptFailed', attemptId: 4, error, retryable: true },
      { now: 1_000, random: 1 },
    );
    expect(state).toMatchObject({ name: 'waiting', until: 1_010 });
  });

  it('does not reconnect when told so', () => {
    const { state } = step(
      { ...policy, reconnect: false },
      states.ready,
      { type: 'lost', attemptId: 4, error, violation: false },
      moment,
    );
    expect(state).toEqual({ name: 'failed', error });
  });

  it('spends the budget of attempts, which refills only after a stable time', () => {
    const strict = { ...policy, maxReconnects: 2 };
    const lost: Event<string> = { type: 'lost', attemptId: 4, error, violation: false };
    expect(step(strict, states.ready, lost, { now: 1_999, random: 0 }).state).toMatchObject({
      name: 'failed',
      error: { code: 'RECOVERY_FAILED', data: { attempts: 2, retryable: true }, cause: error },
    });
    expect(step(strict, states.ready, lost, { now: 2_000, random: 0 }).state).toMatchObject({
      name: 'waiting',
      attempt: 0,
    });
  });

  it('gives up on a server that breaks the protocol again and again', () => {
    const violation: Event<string> = { type: 'lost', attemptId: 4, error, violation: true };
    const worn: State = { name: 'ready', attemptId: 4, since: 999, attempt: 0, violations: MAX_VIOLATIONS };
    expect(step(policy, worn, violation, moment).state).toEqual({ name: 'failed', error });
    expect(step(policy, { ...worn, since: -5_000 }, violation, moment).state).toMatchObject({
      name: 'waiting',
      violations: 1,
    });
    const underway = { ...states.catchingUp, violations: MAX_VIOLATIONS } as State;
    expect(step(policy, underway, violation, moment).state).toEqual({ name: 'failed', error });
  });
});
