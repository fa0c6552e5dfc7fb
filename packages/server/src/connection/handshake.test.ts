import { describe, expect, it } from 'vitest';
import { gate, type HandshakeEvent, type HandshakeState, handshakeStep } from './handshake.js';

const twice = 'refuse: alreadyInitialized: initialize may only be sent once per connection';
const early = 'violation: initialized was sent before initialize was answered';

/** Every state × every event. */
const table: Readonly<Record<HandshakeState, Readonly<Record<HandshakeEvent, string>>>> = {
  awaitingInitialize: {
    initializeReceived: 'to initializing',
    initializeFailed: 'ignore',
    initializeAnswered: 'ignore',
    initializedReceived: early,
    transportClosed: 'to closed',
  },
  initializing: {
    initializeReceived: twice,
    initializeFailed: 'to awaitingInitialize',
    initializeAnswered: 'to awaitingInitialized',
    initializedReceived: early,
    transportClosed: 'to closed',
  },
  awaitingInitialized: {
    initializeReceived: twice,
    initializeFailed: 'ignore',
    initializeAnswered: 'ignore',
    initializedReceived: 'to ready',
    transportClosed: 'to closed',
  },
  ready: {
    initializeReceived: twice,
    initializeFailed: 'ignore',
    initializeAnswered: 'ignore',
    initializedReceived: 'ignore',
    transportClosed: 'to closed',
  },
  closed: {
    initializeReceived: 'ignore',
    initializeFailed: 'ignore',
    initializeAnswered: 'ignore',
    initializedReceived: 'ignore',
    transportClosed: 'ignore',
  },
};

function told(state: HandshakeState, event: HandshakeEvent): string {
  const step = handshakeStep(state, event);
  switch (step.kind) {
    case 'to':
      return `to ${step.state}`;
    case 'ignore':
      return 'ignore';
    case 'refuse':
      return `refuse: ${step.reason}: ${step.message}`;
    case 'violation':
      return `violation: ${step.message}`;
    default:
      return step satisfies never;
  }
}

describe('the handshake', () => {
  const rows = Object.entries(table).flatMap(([state, events]) =>
    Object.entries(events).map(([event, outcome]) => [state, event, outcome] as const),
  );
  it.each(rows)('in %s answers %s with: %s', (state, event, outcome) => {
    expect(told(state as HandshakeState, event as HandshakeEvent)).toBe(outcome);
  });
});

describe('the gate', () => {
  it.each(['awaitingInitialize', 'initializing'] as const)('asks for initialize first in %s', (state) => {
    expect(gate(state, 'exec')).toEqual({
      reason: 'notInitialized',
      message: 'client must call initialize before using exec methods',
    });
  });

  it('asks for initialized after the answer to initialize', () => {
    expect(gate('awaitingInitialized', 'environment status')).toEqual({
      reason: 'notReady',
      message: 'client must send initialized before using environment status methods',
    });
  });

  it('names the family of the method', () => {
    const families = ['exec', 'filesystem', 'http', 'environment info', 'environment status', 'session'] as const;
    expect(families.map((family) => gate('awaitingInitialize', family)?.message)).toEqual(
      families.map((family) => `client must call initialize before using ${family} methods`),
    );
  });

  it('lets everything pass once the handshake is done', () => {
    expect(gate('ready', 'exec')).toBeUndefined();
  });

  it('lets nothing begin on a connection that has closed', () => {
    expect(gate('closed', 'exec')?.reason).toBe('sessionEnded');
  });
});
