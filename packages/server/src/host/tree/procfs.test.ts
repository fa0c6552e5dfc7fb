import { spawnSync } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { Family } from '../../../../../test/support/family.js';
import { until } from '../../../../../test/support/until.js';
import { isDead, listPids, parseStat, procView, readArgv, readEnviron, readStat, visitPids } from './procfs.js';

const family = new Family();
afterEach(() => family.end());

/** A number that no process has. */
function unusedPid(): number {
  return spawnSync('/bin/true').pid;
}

describe('parseStat', () => {
  const tail = ' 1 42 42 0 -1 4194304 91 0 0 0 0 0 0 0 20 0 3 0 202665 2654208';

  it('is not misled by a name with parentheses and blanks', () => {
    expect(parseStat(`43 (a) R 1 (b) S${tail}`)).toEqual({
      pid: 43,
      name: 'a) R 1 (b',
      state: 'S',
      ppid: 1,
      pgrp: 42,
      session: 42,
      tpgid: -1,
      threads: 3,
      startTime: 202665,
      kernel: false,
    });
  });

  it('refuses a line that is cut short', () => {
    for (const line of ['', '43', '43 (a', '43 (a) S 1 42 42 0 -1']) expect(parseStat(line)).toBeUndefined();
  });

  it('takes a process for alive whose first thread is over while others run', () => {
    expect([`1 (a) Z${tail}`, `1 (a) X${tail}`, `1 (a) Z${tail.replace('20 0 3', '20 0 1')}`].map(death)).toEqual([
      false,
      true,
      true,
    ]);
  });

  function death(line: string): boolean | undefined {
    const stat = parseStat(line);
    return stat && isDead(stat);
  }
});

describe.skipIf(process.platform !== 'linux')('/proc', () => {
  it('tells the group, session, arguments and environment of a process', async () => {
    const { pid, ...script } = family.sh('echo 1; exec sleep 300', { GREETING: 'hello' });
    await script.number();
    await until(() => readStat(pid)?.name === 'sleep', 'the exec');
    expect(readStat(pid)).toMatchObject({ pid, ppid: process.pid, pgrp: pid, session: pid, kernel: false });
    expect(readArgv(pid)).toEqual(['sleep', '300']);
    expect(readEnviron(pid)?.toString().split('\0')).toContain('GREETING=hello');
    expect(await listPids()).toContain(pid);
  });

  it('reads an environment that is larger than its buffer', async () => {
    const { pid, ...script } = family.sh('echo 1; sleep 300', {
      A: 'a'.repeat(100_000),
      B: 'b'.repeat(100_000),
      C: 'last',
    });
    await script.number();
    const variables = readEnviron(pid)?.toString().split('\0') ?? [];
    const lengths = Object.fromEntries(variables.map((variable) => [variable[0] ?? '', variable.length]));
    expect(lengths).toMatchObject({ A: 100_002, B: 100_002, C: 6 });
  });

  it('has nothing to say about a process that vanished', () => {
    const pid = unusedPid();
    expect(readStat(pid)).toBeUndefined();
    expect(readEnviron(pid)).toBeUndefined();
    expect(readArgv(pid)).toEqual([]);
  });

  it('sees itself in its own namespace', () => {
    expect(procView()).toBe('whole');
    expect(readArgv(process.pid).length).toBeGreaterThan(0);
  });

  it('lets other work have its turn during a long walk', async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      if (turns < 1000) setImmediate(count);
    };
    setImmediate(count);
    await visitPids(
      Array.from({ length: 2000 }, () => process.pid),
      (pid) => readStat(pid),
    );
    expect(turns).toBeGreaterThan(20);
  });
});
