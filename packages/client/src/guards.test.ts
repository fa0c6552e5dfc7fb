import { describe, expect, it } from 'vitest';
import { initializeReply, processNotice, readReply } from './guards.js';
import { chunk, extendedReply, readResult } from './testSupport/fakeServer.js';

const notAnObject = [undefined, null, 1, 'text', [], true];

describe('initializeReply', () => {
  it('takes an answer with nothing but a session id', () => {
    expect(initializeReply({ sessionId: 's' })).toEqual({ sessionId: 's' });
  });

  it('takes an environment without further members, and one that is null', () => {
    expect(initializeReply({ sessionId: 's', environmentInfo: { shell: {} } })).toEqual({
      sessionId: 's',
      environmentInfo: { shell: {} },
    });
    expect(initializeReply({ sessionId: 's', environmentInfo: null })).toEqual({ sessionId: 's' });
  });

  it('reads what an extended server announces, and ignores what it does not know', () => {
    const reply = initializeReply(extendedReply('s', { later: 1, limits: { pendingRequests: 7, odd: 'x' } }));
    expect(reply?.extended).toEqual({
      serverInfo: { name: 'fake', version: '0' },
      protocolVersion: 1,
      flowControl: true,
      http: false,
      terminal: true,
      files: true,
      epoch: 'epoch-1',
      limits: { pendingRequests: 7 },
      resumed: false,
      leaseMs: 80_000,
    });
  });

  it('keeps the id for observers apart from what is shown of the server', () => {
    const reply = initializeReply(extendedReply('s', { observeId: 'o' }));
    expect(reply).toMatchObject({ sessionId: 's', observeId: 'o' });
    expect(reply?.extended).not.toHaveProperty('observeId');
  });

  it('takes absent extensions as none', () => {
    expect(initializeReply(extendedReply('s', { extensions: undefined, limits: null }))?.extended).toMatchObject({
      flowControl: false,
      terminal: false,
      limits: {},
    });
  });

  it.each([
    ...notAnObject,
    {},
    { sessionId: '' },
    { sessionId: 5 },
    { sessionId: 's', environmentInfo: 'x' },
    extendedReply('s', { serverInfo: {} }),
    extendedReply('s', { epoch: 3 }),
    extendedReply('s', { resumed: 'yes' }),
    extendedReply('s', { leaseMs: -1 }),
    extendedReply('s', { limits: [] }),
    extendedReply('s', { extensions: 'all' }),
    extendedReply('s', { observeId: 1 }),
  ])('refuses %j', (value) => {
    expect(initializeReply(value)).toBeUndefined();
  });
});

describe('readReply', () => {
  it('takes the answer of a foreign server', () => {
    const reply = readReply(readResult({ chunks: [chunk(1, 'hi')], nextSeq: 2 }));
    expect(reply).toEqual({
      chunks: [{ type: 'output', seq: 1, stream: 'stdout', bytes: new TextEncoder().encode('hi') }],
      nextSeq: 2,
      closed: false,
      endsLater: false,
      closing: {},
    });
  });

  it('does not take a close for covered that lies behind the answer', () => {
    const answer = (nextSeq: number): unknown => ({
      ...readResult({ chunks: [chunk(1, 'hi')], nextSeq, exited: true, exitCode: 0, closed: true }),
      exitedSeq: 2,
      closedSeq: 3,
    });
    expect(readReply(answer(2))).toMatchObject({ closed: false, endsLater: true });
    expect(readReply(answer(4))).toMatchObject({ closed: true, endsLater: false });
  });

  it('takes what an extended server adds', () => {
    const more = {
      epoch: 'e',
      firstRetainedSeq: 3,
      gap: { fromSeq: 1, throughSeq: 2, bytes: 9 },
      exitedSeq: 4,
    };
    const exit = { exitCode: 137, signal: 'SIGKILL', reason: 'timedOut' };
    const close = { closed: true, closeReason: 'heldOpen', holders: 3 };
    expect(readReply(readResult({ nextSeq: 6, exited: true, ...exit, ...close, ...more }))).toMatchObject({
      ...more,
      gap: { type: 'gap', fromSeq: 1, throughSeq: 2, bytes: 9 },
      exit,
      closing: { reason: 'heldOpen', holders: 3 },
    });
  });

  it('leaves out reasons of a later version', () => {
    const reply = readReply(
      readResult({ nextSeq: 2, exited: true, exitCode: 0, reason: 'evaporated', closeReason: 7 }),
    );
    expect(reply).toMatchObject({ exit: { exitCode: 0 }, closing: {} });
    expect(reply?.exit).not.toHaveProperty('reason');
  });

  it.each([
    ...notAnObject,
    readResult({ chunks: {} }),
    readResult({ nextSeq: 0 }),
    readResult({ nextSeq: 1.5 }),
    readResult({ exited: 'no' }),
    readResult({ closed: undefined }),
    readResult({ exited: true, exitCode: null }),
    readResult({ exitCode: 'zero' }),
    readResult({ chunks: [chunk(0, 'x')], nextSeq: 2 }),
    readResult({ chunks: [chunk(2, 'x')], nextSeq: 2 }),
    readResult({ chunks: [chunk(1, 'x', 'stdlog')], nextSeq: 2 }),
    readResult({ chunks: [{ seq: 1, stream: 'stdout', chunk: 'A' }], nextSeq: 2 }),
    readResult({ chunks: [null], nextSeq: 2 }),
    readResult({ gap: { fromSeq: 3, throughSeq: 2 } }),
    readResult({ gap: 'all' }),
  ])('refuses %j', (value) => {
    expect(readReply(value)).toBeUndefined();
  });
});

describe('processNotice', () => {
  it.each([
    ['process/output', { processId: 'p', ...chunk(3, 'x', 'pty') }, { type: 'output', seq: 3, stream: 'pty' }],
    [
      'process/exited',
      { processId: 'p', seq: 4, exitCode: 137, signal: 'SIGKILL', reason: 'terminated' },
      { type: 'exited', exitCode: 137, signal: 'SIGKILL', reason: 'terminated' },
    ],
    [
      'process/closed',
      { processId: 'p', seq: 5, reason: 'heldOpen', holders: 2 },
      { type: 'closed', seq: 5, reason: 'heldOpen', holders: 2 },
    ],
    ['process/gap', { processId: 'p', fromSeq: 1, throughSeq: 2 }, { type: 'gap', fromSeq: 1, throughSeq: 2 }],
  ] as const)('takes %s', (method, params, event) => {
    expect(processNotice(method, params)).toMatchObject({ processId: 'p', event });
  });

  it.each([
    ['process/output', { processId: 'p', seq: 1, stream: 'stdout', chunk: '?' }],
    ['process/output', { processId: 1, ...chunk(3, 'x') }],
    ['process/output', undefined],
    ['process/exited', { processId: 'p', seq: 4 }],
    ['process/exited', { processId: 'p', seq: 4, exitCode: 1.5 }],
    ['process/closed', { processId: 'p', seq: '5' }],
    ['process/gap', { processId: 'p', fromSeq: 0, throughSeq: 2 }],
  ] as const)('refuses %s %j', (method, params) => {
    expect(processNotice(method, params)).toBeUndefined();
  });
});
