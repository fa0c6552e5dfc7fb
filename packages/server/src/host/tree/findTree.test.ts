import { afterEach, describe, expect, it } from 'vitest';
import { Family } from '../../../../../test/support/family.js';
import { until } from '../../../../../test/support/until.js';
import { findTree, type Sighting, selectTree, type TreeQuery } from './findTree.js';
import { addMark, MARK_VARIABLE, MarkSource } from './mark.js';
import { type ProcessStat, readStat } from './procfs.js';

const child = { pid: 100, startTime: 50 };

function seen(pid: number, changes: Partial<ProcessStat> = {}, mark: Sighting['mark'] = 'lacks'): Sighting {
  const stat = { pid, name: 'x', state: 'S', ppid: 1, pgrp: pid, session: pid, tpgid: -1, threads: 1, startTime: 60 };
  return { stat: { ...stat, kernel: false, ...changes }, mark };
}

function select(
  sightings: readonly Sighting[],
  query: Partial<TreeQuery> = {},
  leader: { startTime: number } | undefined = child,
): { pids: number[]; doubts: boolean } {
  const { members, doubts } = selectTree(sightings, { mark: 'm-1', groupLeader: child, ...query }, leader);
  return { pids: members.map(({ pid }) => pid), doubts };
}

describe('selectTree', () => {
  const inSession = { session: 100, pgrp: 100 };

  it('takes the session, the marked, and the children of both to the last generation', () => {
    const sightings = [
      seen(104, { ppid: 103 }),
      seen(103, { ppid: 102 }),
      seen(102, {}, 'has'),
      seen(101, { session: 100 }),
      seen(105, { ppid: 101 }),
      seen(200),
    ];
    expect(select(sightings)).toEqual({ pids: [102, 101, 103, 105, 104], doubts: false });
  });

  it('takes nobody of a session whose number went to a stranger', () => {
    expect(select([seen(100, { startTime: 90 }), seen(101, inSession)], {}, { startTime: 90 })).toEqual({
      pids: [],
      doubts: false,
    });
  });

  it('takes a session without its leader on the proof of one member, and else says that it does not know', () => {
    const rest = [seen(101, inSession), seen(102, inSession)];
    const selectLeaderless = (sightings: Sighting[], known = new Map<number, number>()): ReturnType<typeof select> => {
      const { members, doubts } = selectTree(sightings, { mark: 'm-1', groupLeader: child, known }, undefined);
      return { pids: members.map(({ pid }) => pid), doubts };
    };
    expect(selectLeaderless(rest)).toEqual({ pids: [], doubts: true });
    expect(selectLeaderless([...rest, seen(103, inSession, 'has')])).toEqual({ pids: [101, 102, 103], doubts: false });
    expect(selectLeaderless(rest, new Map([[101, 60]]))).toEqual({ pids: [101, 102], doubts: false });
    expect(selectLeaderless(rest, new Map([[101, 61]]))).toEqual({ pids: [], doubts: true });
  });

  it('leaves out the dead, but not a process of which only the first thread is over', () => {
    const sightings = [
      seen(101, { ...inSession, state: 'Z' }),
      seen(102, { ...inSession, state: 'Z', threads: 2 }),
      seen(103, { ppid: 101 }),
    ];
    expect(select(sightings)).toEqual({ pids: [102], doubts: false });
  });

  it('leaves out what is older than the child, whatever it carries, and this very process', () => {
    expect(select([seen(101, { startTime: 49 }, 'has'), seen(process.pid, {}, 'has')])).toEqual({
      pids: [],
      doubts: false,
    });
  });

  it('has doubts while a process that could belong may not be looked at', () => {
    expect(select([seen(200, {}, 'unknown')]).doubts).toBe(true);
    expect(select([seen(200, { startTime: 49 }, 'unknown')]).doubts).toBe(false);
    expect(select([seen(200, { kernel: true }, 'unknown')]).doubts).toBe(false);
    expect(select([seen(200, {}, 'unsettled')]).doubts).toBe(true);
    expect(select([seen(101, inSession, 'unknown')])).toEqual({ pids: [101], doubts: false });
  });
});

describe.skipIf(process.platform !== 'linux')('findTree', () => {
  const family = new Family();
  const marks = new MarkSource(`find${process.pid}`);
  afterEach(() => family.end());

  function start(script: string, mark: string): { query: TreeQuery; number: () => Promise<number> } {
    const { pid, number } = family.sh(script, { [MARK_VARIABLE]: mark });
    return { query: { mark, groupLeader: { pid, startTime: readStat(pid)?.startTime ?? 0 } }, number };
  }

  async function pids(query: TreeQuery): Promise<number[]> {
    return (await findTree(query)).members.map(({ pid }) => pid).sort((a, b) => a - b);
  }

  const leads = (pid: number) => (): boolean => readStat(pid)?.session === pid;

  it('finds what left the session and what forked twice, and says who is in the group', async () => {
    const script = start(
      `sleep 301 & echo $!; setsid sleep 302 & echo $!; (setsid sh -c 'sleep 303 & echo $!' &); sleep 304`,
      marks.next(),
    );
    const found = [await script.number(), await script.number(), await script.number()];
    await until(leads(found[1] ?? 0), 'the new session');
    const sleeps = async (): Promise<Record<string, boolean>> => {
      const { members } = await findTree(script.query);
      const named = members.map(({ argv, inGroup }) => [argv.join(' '), inGroup] as const);
      return Object.fromEntries(named.filter(([command]) => command.startsWith('sleep')));
    };
    await until(async () => Object.keys(await sleeps()).length === 4, 'the last exec');
    expect(await sleeps()).toEqual({ 'sleep 301': true, 'sleep 302': false, 'sleep 303': false, 'sleep 304': true });
    const tree = await findTree(script.query);
    expect(tree.method).toBe('environment mark and process group');
    expect(tree.members.map(({ pid }) => pid)).toEqual(
      expect.arrayContaining([script.query.groupLeader.pid, ...found]),
    );
  });

  it('knows that it looked at all, once no other process is within an exec', async () => {
    const script = start('echo 1; exec sleep 300', marks.next());
    await script.number();
    await until(async () => (await findTree(script.query)).complete, 'a complete look');
  });

  it('finds what its leader left behind', async () => {
    const script = start('sleep 300 & echo $!; setsid sleep 300 & echo $!', marks.next());
    const left = [await script.number(), await script.number()];
    await until(() => readStat(script.query.groupLeader.pid) === undefined, 'the end of the leader');
    expect(await pids(script.query)).toEqual(left.sort((a, b) => a - b));
  });

  it('finds a cleared environment by the session or the parent, and does not find it without both', async () => {
    const script = start(
      `env -i sleep 300 & echo $!; setsid env -i sleep 300 & echo $!; (setsid env -i sh -c 'sleep 300 & echo $!' &); sleep 300`,
      marks.next(),
    );
    const cleared = [await script.number(), await script.number(), await script.number()];
    for (const pid of cleared) family.adopt(pid);
    await until(leads(cleared[1] ?? 0), 'the new session');
    await until(() => (readStat(readStat(cleared[2] ?? 0)?.session ?? 0)?.state ?? 'Z') === 'Z', 'the double fork');
    const found = await pids(script.query);
    expect(found).toEqual(expect.arrayContaining(cleared.slice(0, 2)));
    expect(found).not.toContain(cleared[2]);
  });

  it('finds nobody for a start time that is not the child’s', async () => {
    const script = start('sleep 300 & echo $!; wait', marks.next());
    await script.number();
    const { pid, startTime } = script.query.groupLeader;
    expect(await pids({ mark: 'other-1', groupLeader: { pid, startTime: startTime - 1 } })).toEqual([]);
  });

  it('finds for an outer server what an inner one started, and not the other way round', async () => {
    const outer = start('setsid sleep 300 & echo $!; wait', marks.next());
    const inner = start('setsid sleep 300 & echo $!; wait', addMark(outer.query.mark, marks.next()));
    const innerMark = inner.query.mark?.split(':')[1];
    const innerPids = [inner.query.groupLeader.pid, await inner.number()];
    const outerPids = [outer.query.groupLeader.pid, await outer.number()];
    expect(await pids({ ...inner.query, mark: innerMark })).toEqual(innerPids.sort((a, b) => a - b));
    expect(await pids(outer.query)).toEqual([...innerPids, ...outerPids].sort((a, b) => a - b));
  });

  it('never claims to be complete without a mark', async () => {
    const script = start('sleep 300 & echo $!; wait', marks.next());
    const pid = await script.number();
    const tree = await findTree({ groupLeader: script.query.groupLeader });
    expect(tree).toMatchObject({ method: 'process group', complete: false });
    expect(tree.members.map((member) => member.pid)).toContain(pid);
  });
});
