/** The states of one connection as a table, and what they admit. Pure. */
import { type Family, type Reason } from '@exec-server/protocol';

export type HandshakeState = 'awaitingInitialize' | 'initializing' | 'awaitingInitialized' | 'ready' | 'closed';

export type HandshakeEvent =
  | 'initializeReceived'
  | 'initializeFailed'
  | 'initializeAnswered'
  | 'initializedReceived'
  | 'transportClosed';

export type HandshakeStep =
  | { readonly kind: 'to'; readonly state: HandshakeState }
  | { readonly kind: 'ignore' }
  /** A request in a state that does not take it. */
  | { readonly kind: 'refuse'; readonly reason: Reason; readonly message: string }
  /** The connection ends: the message has no answer and breaks the order. */
  | { readonly kind: 'violation'; readonly message: string };

const to = (state: HandshakeState): HandshakeStep => ({ kind: 'to', state });
const ignore: HandshakeStep = { kind: 'ignore' };
const refuse = (reason: Reason, message: string): HandshakeStep => ({ kind: 'refuse', reason, message });
const onlyOnce = refuse('alreadyInitialized', 'initialize may only be sent once per connection');
const tooEarly: HandshakeStep = { kind: 'violation', message: 'initialized was sent before initialize was answered' };

const table: Readonly<Record<HandshakeState, Readonly<Record<HandshakeEvent, HandshakeStep>>>> = {
  awaitingInitialize: {
    initializeReceived: to('initializing'),
    initializeFailed: ignore,
    initializeAnswered: ignore,
    initializedReceived: tooEarly,
    transportClosed: to('closed'),
  },
  initializing: {
    initializeReceived: onlyOnce,
    initializeFailed: to('awaitingInitialize'),
    initializeAnswered: to('awaitingInitialized'),
    initializedReceived: tooEarly,
    transportClosed: to('closed'),
  },
  awaitingInitialized: {
    initializeReceived: onlyOnce,
    initializeFailed: ignore,
    initializeAnswered: ignore,
    initializedReceived: to('ready'),
    transportClosed: to('closed'),
  },
  ready: {
    initializeReceived: onlyOnce,
    initializeFailed: ignore,
    initializeAnswered: ignore,
    initializedReceived: ignore,
    transportClosed: to('closed'),
  },
  closed: {
    initializeReceived: ignore,
    initializeFailed: ignore,
    initializeAnswered: ignore,
    initializedReceived: ignore,
    transportClosed: ignore,
  },
};

export function handshakeStep(state: HandshakeState, event: HandshakeEvent): HandshakeStep {
  return table[state][event];
}

/** Why a method of this family is not served in this state; undefined when it is. */
export function gate(state: HandshakeState, family: Family): { reason: Reason; message: string } | undefined {
  switch (state) {
    case 'awaitingInitialize':
    case 'initializing':
      return { reason: 'notInitialized', message: `client must call initialize before using ${family} methods` };
    case 'awaitingInitialized':
      return { reason: 'notReady', message: `client must send initialized before using ${family} methods` };
    case 'ready':
      return undefined;
    case 'closed':
      return { reason: 'sessionEnded', message: 'the connection has closed' };
    default:
      return state satisfies never;
  }
}
