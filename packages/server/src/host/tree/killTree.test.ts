import { afterEach, describe, expect, it } from 'vitest';
import { Family, type Relative } from '../../../../../test/support/family.js';
import { until } from '../../../../../test/support/until.js';
import { type Clock, hostClock } from '../../clock.js';
import { findTree } from './findTree.js';
import { type KillTreeOptions, killTree, signalMember } from './killTree.js';
import { MARK_VARIABLE, MarkSource } from './mark.js';
import { isDead, readStat } from './procfs.js';

/** What is waited for comes with the next turn of the event loop. */
function hastyClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    timeOfDay: () => now,
    after(ms, action) {
      const due = setImmediate(() => {
        now += ms;
        action();
      });
      return () => clearImmediate(due);
    },
  };
}

function isAlive(pid: number): boolean {
  const stat = readStat(pid);
  return stat !== undefined && !isDead(stat);
}

describe.skipIf(process.platform !== 'linux')('killTree', () => {
  const family = new Family();
  const marks = new MarkSource(`kill${process.pid}`);
  afterEach(() => family.end());

  function start(script: string, env: Record<string, string> = {}): Relative & { options: KillTreeOptions } {
    const mark = marks.next();
    const { pid, number } = family.sh(script, { [MARK_VARIABLE]: mark, ...env });
    const startTime = readStat(pid)?.startTime ?? 0;
    return { pid, number, options: { mark, groupLeader: { pid, startTime }, clock: hostClock, graceMs: 0 } };
  }

  it('kills what left the session and what forked twice', async () => {
    const script = start(`setsid sleep 300 & echo $!; (setsid sh -c 'sleep 300 & echo $!' &); sleep 300`);
    const pids = [script.pid, await script.number(), await script.number()];
    expect(await killTree(script.options)).toMatchObject({
      left: [],
      escalated: false,
      method: 'environment mark and process group',
    });
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it('kills what the leader left behind', async () => {
    const script = start('sleep 300 & echo $!; setsid sleep 300 & echo $!');
    const pids = [await script.number(), await script.number()];
    await until(() => readStat(script.pid) === undefined, 'the end of the leader');
    expect(await killTree(script.options)).toMatchObject({ left: [] });
    expect(pids.filter(isAlive)).toEqual([]);
  });

  it('kills after the grace what ignores TERM', async () => {
    const script = start(`trap '' TERM; echo 1; while :; do sleep 0.1; done`);
    await script.number();
    const begin = performance.now();
    expect(await killTree({ ...script.options, graceMs: 200 })).toMatchObject({ left: [], escalated: true });
    expect(performance.now() - begin).toBeGreaterThanOrEqual(199);
    expect(isAlive(script.pid)).toBe(false);
  });

  it('is done as soon as TERM was heeded, long before the grace ends', async () => {
    const script = start('setsid sleep 300 & echo $!; sleep 300');
    await script.number();
    expect(await killTree({ ...script.options, graceMs: 60_000 })).toMatchObject({ left: [], escalated: false });
    expect(isAlive(script.pid)).toBe(false);
  });

  it('asks once, and lets a cleanup that was started meanwhile finish', async () => {
    const cleanup = `terms=$((terms + 1)); sleep 0.6; echo $terms; exit`;
    const script = start(`terms=0; trap '${cleanup}' TERM; echo 1; while :; do sleep 0.05; done`);
    await script.number();
    const sent: string[] = [];
    const send = (pid: number, signal: string): void => {
      if (pid === script.pid) sent.push(signal);
      process.kill(pid, signal);
    };
    expect(await killTree({ ...script.options, graceMs: 20_000, send })).toMatchObject({ left: [], escalated: false });
    expect([await script.number(), sent]).toEqual([1, ['SIGTERM']]);
  });

  it('lets a stopped child go on, so that it takes TERM', async () => {
    const script = start('echo 1; exec sleep 300');
    await script.number();
    process.kill(script.pid, 'SIGSTOP');
    await until(() => readStat(script.pid)?.state === 'T', 'the stop');
    expect(await killTree({ ...script.options, graceMs: 20_000 })).toMatchObject({ left: [], escalated: false });
    expect(isAlive(script.pid)).toBe(false);
  });

  it('kills a stopped child at once without a grace', async () => {
    const script = start('echo 1; kill -STOP $$');
    await script.number();
    await until(() => readStat(script.pid)?.state === 'T', 'the stop');
    expect(await killTree(script.options)).toMatchObject({ left: [] });
    expect(isAlive(script.pid)).toBe(false);
  });

  it('ends a chain of which no link lives long', async () => {
    const link = 'sleep 0.01; sh -c "$LINK" & exit';
    const script = start('echo 1; sh -c "$LINK"', { LINK: link });
    await script.number();
    expect(await killTree(script.options)).toMatchObject({ left: [] });
    expect((await findTree(script.options)).members).toEqual([]);
  });

  it('touches neither a process without the mark nor one of another mark', async () => {
    const others = [start('echo 1; exec sleep 300'), family.sh('echo 1; exec sleep 300')];
    const script = start('echo 1; exec sleep 300');
    for (const each of [...others, script]) await each.number();
    expect(await killTree(script.options)).toMatchObject({ left: [] });
    expect([...others, script].map(({ pid }) => isAlive(pid))).toEqual([true, true, false]);
  });

  it('kills alone what carried the mark into a session of others', async () => {
    const script = start('echo 1; exec sleep 300');
    const variable = `${MARK_VARIABLE}=${script.options.mark}`;
    const other = family.sh(`env ${variable} sleep 300 & echo $!; sleep 300 & echo $!; wait`);
    const [carrier, neighbour] = [await other.number(), await other.number()];
    await until(() => readStat(carrier)?.name === 'sleep', 'the exec');
    expect(await killTree(script.options)).toMatchObject({ left: [] });
    expect([carrier, neighbour, other.pid].map(isAlive)).toEqual([false, true, true]);
  });

  it('does not signal a number that was recycled', async () => {
    const stranger = family.sh('echo 1; exec sleep 300');
    await stranger.number();
    const { pid } = stranger;
    const startTime = (readStat(pid)?.startTime ?? 0) - 1;
    const sent: number[] = [];
    const send = (target: number): void => void sent.push(target);
    const query = { mark: marks.next(), groupLeader: { pid, startTime }, known: new Map([[pid, startTime]]) };
    expect(await killTree({ ...query, clock: hostClock, graceMs: 0, send })).toMatchObject({ left: [] });
    const member = { pid, startTime, session: pid, argv: [], state: 'S', inGroup: true };
    expect(signalMember(member, query.mark, 'SIGKILL', send)).toBe('gone');
    expect([sent, isAlive(pid)]).toEqual([[], true]);
  });

  it('does not signal a process that has neither the session nor the mark it was found by', async () => {
    const script = start('echo 1; exec sleep 300');
    await script.number();
    const [member] = (await findTree(script.options)).members;
    if (member === undefined) throw new Error('the child was not found');
    const moved = { ...member, session: 1 };
    expect(signalMember(moved, 'other-1', 'SIGKILL')).toBe('gone');
    expect(isAlive(script.pid)).toBe(true);
    expect(signalMember(moved, script.options.mark, 'SIGKILL')).toBe('sent');
  });

  it('says after a bounded time what it could not kill', async () => {
    const script = start('echo 1; exec sleep 300');
    await script.number();
    await until(() => readStat(script.pid)?.name === 'sleep', 'the exec');
    const refuse = (): never => {
      throw Object.assign(new Error('refused'), { code: 'EPERM' });
    };
    const options = { ...script.options, clock: hastyClock(), graceMs: 30_000, send: refuse };
    expect(await killTree(options)).toMatchObject({
      left: [{ pid: script.pid, argv: ['sleep', '300'] }],
      escalated: true,
    });
  });

  it('ends only what was selected', async () => {
    const script = start('setsid sleep 300 & echo $!; echo 1; exec sleep 300');
    const escapee = await script.number();
    await until(() => readStat(escapee)?.session === escapee, 'the new session');
    const result = await killTree({ ...script.options, select: ({ inGroup }) => !inGroup });
    expect(result.left).toEqual([]);
    expect([escapee, script.pid].map(isAlive)).toEqual([false, true]);
  });
});
