import { describe, expect, it } from 'vitest';
import { emptyReply, listReply, signalReply, startReply, terminateReply, writeReply } from './callGuards.js';

const notAnObject = [undefined, null, 1, 'text', [], true];

const summary = {
  processId: 'p',
  argv: ['sleep', '1'],
  tty: false,
  pid: 7,
  state: 'exited',
  startedAtMs: 1_000,
  exitedAtMs: 2_000,
  exit: { exitCode: 143, signal: 'SIGTERM', reason: 'terminated' },
  outputBytes: 10,
  retainedBytes: 5,
  firstRetainedSeq: 2,
  nextSeq: 4,
  stdinBytes: 0,
  leftovers: [{ pid: 8, argv: ['sh'] }],
};

describe('answers to calls', () => {
  it('tell the pid where there is one', () => {
    expect(startReply({ processId: 'p', pid: 7 })).toEqual({ pid: 7 });
    expect(startReply({ processId: 'p', sandboxType: 'none' })).toEqual({});
  });

  it('tell that a process was adopted, and how it had ended', () => {
    const exit = { exitCode: 3, signal: null, reason: 'exited' };
    expect(startReply({ processId: 'p', existing: true, exit })).toEqual({
      existing: true,
      exit: { exitCode: 3, reason: 'exited' },
    });
  });

  it('tell the other results', () => {
    expect(writeReply({ status: 'stdinClosed' })).toEqual({ status: 'stdinClosed' });
    expect(signalReply({})).toEqual({});
    expect(signalReply({ delivered: false })).toEqual({ delivered: false });
    expect(terminateReply({ running: true })).toEqual({ running: true });
    expect(emptyReply({ later: 1 })).toEqual({ later: 1 });
  });

  it('tell what a terminate has done', () => {
    const exit = { exitCode: 137, signal: 'SIGKILL', reason: 'terminated' };
    const left = [{ pid: 9, argv: ['daemon'] }];
    const full = { running: true, exit, escalated: true, left, method: 'mark', treeComplete: false };
    expect(terminateReply(full)).toEqual(full);
  });

  it('list processes, those that are starting too', () => {
    const starting = { ...summary, state: 'starting', pid: undefined, exit: undefined, leftovers: undefined };
    const list = listReply({ epoch: 'e', processes: [summary, starting] });
    expect(list).toMatchObject({ epoch: 'e', processes: [summary, { processId: 'p', state: 'starting' }] });
    expect(list?.processes[1]).not.toHaveProperty('pid');
  });

  it.each([startReply, writeReply, signalReply, terminateReply, emptyReply, listReply])(
    '%o refuses what is no object',
    (guard) => {
      for (const value of notAnObject) expect(guard(value)).toBeUndefined();
    },
  );

  it.each([
    { processes: [] },
    { epoch: 'e', processes: {} },
    { epoch: 'e', processes: [null] },
    { epoch: 'e', processes: [{ ...summary, argv: [1] }] },
    { epoch: 'e', processes: [{ ...summary, state: 'odd' }] },
    { epoch: 'e', processes: [{ ...summary, outputBytes: -1 }] },
  ])('refuse the list %j', (value) => {
    expect(listReply(value)).toBeUndefined();
  });

  it('refuse a status of no meaning', () => {
    expect(writeReply({ status: 'maybe' })).toBeUndefined();
    expect(terminateReply({})).toBeUndefined();
    expect(terminateReply({ running: true, left: [{ pid: 'x' }] })).toBeUndefined();
    expect(startReply({})).toBeUndefined();
  });
});
