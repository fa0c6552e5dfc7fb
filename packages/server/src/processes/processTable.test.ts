import { limits, WireError } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { FakeChild } from '../../../../test/support/fakeChild.js';
import { ManualClock } from '../../../../test/support/manualClock.js';
import { reserve } from '../../../../test/support/reserve.js';
import type { Process } from './process.js';
import { ProcessTable } from './processTable.js';

const RETENTION_MS = 1000;

function table(): { clock: ManualClock; processes: ProcessTable } {
  const clock = new ManualClock();
  const processes = new ProcessTable({
    clock,
    retainedBytesPerProcess: limits.RETAINED_BYTES_PER_PROCESS,
    exitedRetentionMs: RETENTION_MS,
  });
  return { clock, processes };
}

function refusal(action: () => unknown): WireError {
  try {
    action();
  } catch (error) {
    if (error instanceof WireError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

function start(processes: ProcessTable, id: string): { process: Process; child: FakeChild } {
  const process = reserve(processes, id);
  const child = new FakeChild();
  process.begin(child);
  return { process, child };
}

function run(processes: ProcessTable, id: string, output = 0): Process {
  const { process, child } = start(processes, id);
  if (output > 0) child.outputs[0]?.emit(new Uint8Array(output));
  child.exit({ code: 5 });
  child.endOutputs();
  return process;
}

describe('an id', () => {
  it('is taken from the moment it is reserved', () => {
    const { processes } = table();
    const process = reserve(processes, 'p');
    expect(refusal(() => reserve(processes, 'p'))).toMatchObject({
      code: -32600,
      reason: 'duplicateProcess',
      message: 'process p already exists',
      data: { field: 'processId' },
    });
    expect(processes.find('p')).toBe(process);
  });

  it('is free again after a start that failed', () => {
    const { processes } = table();
    processes.free(reserve(processes, 'p'));
    expect(processes.find('p')).toBeUndefined();
    expect(processes.size).toBe(0);
    reserve(processes, 'p');
  });

  it('is not taken from a later process by freeing an earlier one', () => {
    const { processes } = table();
    const first = reserve(processes, 'p');
    processes.free(first);
    const second = reserve(processes, 'p');
    processes.free(first);
    expect(processes.find('p')).toBe(second);
  });

  it('that was never taken is unknown', () => {
    const { processes } = table();
    expect(refusal(() => processes.get('q'))).toMatchObject({
      reason: 'unknownProcess',
      message: 'unknown process id q',
    });
    expect(refusal(() => processes.get('__proto__')).reason).toBe('unknownProcess');
  });
});

describe('retention', () => {
  it('keeps a process readable and its id taken for a while after its close', () => {
    const { clock, processes } = table();
    const process = run(processes, 'p');
    clock.advance(RETENTION_MS - 1);
    expect(processes.get('p')).toBe(process);
    expect(refusal(() => reserve(processes, 'p')).reason).toBe('duplicateProcess');
    clock.advance(1);
    expect(processes.find('p')).toBeUndefined();
    expect(process.expired).toBe(true);
    expect(clock.pending).toBe(0);
  });

  it('says of an expired process that it ended, and how', () => {
    const { clock, processes } = table();
    run(processes, 'p');
    clock.advance(RETENTION_MS);
    const error = refusal(() => processes.get('p'));
    expect(error).toMatchObject({
      code: -32600,
      reason: 'expiredProcess',
      data: { exit: { exitCode: 5, signal: null } },
    });
    expect(error.message).toMatch(/^unknown process id p/);
  });

  it('says of an expired or released process where it closed, so that who had come that far misses nothing', () => {
    const { clock, processes } = table();
    run(processes, 'expired', 1);
    clock.advance(RETENTION_MS);
    run(processes, 'released', 1);
    processes.release('released');
    // One chunk, the exit, the close.
    expect(refusal(() => processes.get('expired')).data).toMatchObject({ closedSeq: 3 });
    expect(refusal(() => processes.get('released')).data).toMatchObject({ closedSeq: 3 });
  });

  it('begins at the close, not at the exit', () => {
    const { clock, processes } = table();
    const { process, child } = start(processes, 'p');
    child.exit();
    clock.advance(10 * RETENTION_MS);
    expect(processes.get('p')).toBe(process);
    child.endOutputs();
    clock.advance(RETENTION_MS - 1);
    expect(processes.get('p')).toBe(process);
  });

  it('begins anew while an attached reader is behind', () => {
    const { clock, processes } = table();
    const process = run(processes, 'p', 100);
    process.delivered({ ackedSeq: 1, cursor: 1, sentSeq: 1 });
    clock.advance(5 * RETENTION_MS);
    expect(processes.get('p')).toBe(process);
    process.delivered({ ackedSeq: 3, cursor: 3, sentSeq: 3 });
    clock.advance(RETENTION_MS);
    expect(processes.find('p')).toBeUndefined();
  });

  it('lets the oldest go when there are too many', () => {
    const { clock, processes } = table();
    const most = limits.EXITED_PROCESSES_PER_SESSION;
    for (let index = 0; index < most; index += 1) run(processes, `p${index}`);
    expect(processes.size).toBe(most);
    run(processes, 'one more');
    expect(processes.size).toBe(most);
    expect(refusal(() => processes.get('p0')).reason).toBe('expiredProcess');
    expect(processes.find('p1')).toBeDefined();
    expect(clock.pending).toBe(most);
  });

  it('lets the oldest go when they hold too many bytes, readers that are behind or not', () => {
    const { processes } = table();
    const each = limits.RETAINED_BYTES_PER_PROCESS;
    const fit = limits.EXITED_BYTES_PER_SESSION / each;
    for (let index = 0; index < fit; index += 1)
      run(processes, `p${index}`, each).delivered({ ackedSeq: 0, cursor: 0, sentSeq: 0 });
    expect(processes.size).toBe(fit);
    run(processes, 'small', 1);
    expect(processes.find('p0')).toBeUndefined();
    expect(processes.find('p1')).toBeDefined();
    expect(processes.find('small')).toBeDefined();
  });

  it('does not count what runs', () => {
    const { processes } = table();
    const { process } = start(processes, 'running');
    for (let index = 0; index <= limits.EXITED_PROCESSES_PER_SESSION; index += 1) run(processes, `p${index}`);
    expect(processes.get('running')).toBe(process);
  });

  it('forgets the oldest expired ids beyond the number it remembers', () => {
    const { clock, processes } = table();
    for (let index = 0; index <= limits.TOMBSTONES_PER_SESSION; index += 1) {
      run(processes, `p${index}`);
      clock.advance(RETENTION_MS);
    }
    expect(refusal(() => processes.get('p0')).reason).toBe('unknownProcess');
    expect(refusal(() => processes.get('p1')).reason).toBe('expiredProcess');
  });
});

describe('the end of a session', () => {
  it('kills every group, frees every id and cancels every retention', () => {
    const { clock, processes } = table();
    const one = start(processes, 'one');
    const two = start(processes, 'two');
    run(processes, 'ended');
    reserve(processes, 'starting');
    expect(processes.end().length).toBe(4);
    expect([one.child.signals, two.child.signals]).toEqual([['SIGKILL'], ['SIGKILL']]);
    expect(processes.size).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('kills the others when the host refuses one of them', () => {
    const { processes } = table();
    const one = start(processes, 'one');
    const two = start(processes, 'two');
    one.child.refusal = new WireError('signalFailed', 'not permitted');
    processes.end();
    expect(two.child.signals).toEqual(['SIGKILL']);
  });

  it('retains nothing that closes afterwards', () => {
    const { clock, processes } = table();
    const { child } = start(processes, 'p');
    processes.end();
    child.exit({ signal: 'SIGKILL' });
    child.endOutputs();
    expect(processes.size).toBe(0);
    expect(clock.pending).toBe(0);
  });
});
