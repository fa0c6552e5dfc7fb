import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from 'vitest';
import { Family } from '../../../../../test/support/family.js';
import { until } from '../../../../../test/support/until.js';
import { createGuard, type Guard, type GuardOptions } from './guard.js';
import { MARK_VARIABLE } from './mark.js';
import { isDead, readArgv, readStat } from './procfs.js';

const guardModule = new URL('../../../dist/host/tree/guard.js', import.meta.url).href;
const life = `guard${process.pid}`;

function isAlive(pid: number): boolean {
  const stat = readStat(pid);
  return stat !== undefined && !isDead(stat);
}

function ignores(pid: number, signal: number): boolean {
  const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? '0';
  return ((BigInt(`0x${mask}`) >> BigInt(signal - 1)) & 1n) === 1n;
}

describe.skipIf(process.platform !== 'linux')('the guard', () => {
  const family = new Family();
  const guards: Guard[] = [];
  const servers: ChildProcess[] = [];
  afterEach(async () => {
    for (const guard of guards.splice(0)) await guard.close();
    for (const server of servers.splice(0)) server.kill('SIGKILL');
    family.end();
  });

  function create(options: GuardOptions = { life }): Guard {
    const guard = createGuard(options);
    guards.push(guard);
    return guard;
  }

  /** A program with a guard, in a group of its own; runs the lines it is given and says the pid of its guard after each. */
  async function serve(): Promise<{
    pid: number;
    run(line: string): Promise<number>;
    end(signal: NodeJS.Signals): Promise<void>;
  }> {
    const script = `
      import { createInterface } from 'node:readline';
      import { createGuard } from ${JSON.stringify(guardModule)};
      const guard = createGuard({ life: ${JSON.stringify(life)} });
      for await (const line of createInterface(process.stdin)) {
        await new Function('guard', 'return ' + line)(guard);
        console.log(guard.pid ?? 0);
      }`;
    const server = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    });
    servers.push(server);
    const lines = createInterface(server.stdout)[Symbol.asyncIterator]();
    const run = async (line: string): Promise<number> => {
      server.stdin.write(`${line}\n`);
      return Number((await lines.next()).value);
    };
    const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
    const end = async (signal: NodeJS.Signals): Promise<void> => {
      process.kill(-(server.pid ?? 0), signal);
      await ended;
    };
    await run('0');
    return { pid: server.pid ?? 0, run, end };
  }

  const add = (pid: number, startTime = readStat(pid)?.startTime): string => `guard.add(${pid}, ${startTime})`;
  const gone = (pids: readonly number[], what: string): Promise<void> => until(() => !pids.some(isAlive), what);

  it('kills every listed group when the server is killed, and then ends', async () => {
    const server = await serve();
    const groups = [family.sh('sleep 300 & echo $!; wait'), family.sh('trap "" TERM HUP; sleep 300 & echo $!; wait')];
    let guard = 0;
    for (const { pid } of groups) guard = await server.run(add(pid));
    const pids = [...groups.map(({ pid }) => pid), ...(await Promise.all(groups.map((group) => group.number())))];
    expect(pids.every(isAlive)).toBe(true);
    await server.end('SIGKILL');
    await gone([...pids, guard], 'the end of both groups and the guard');
  });

  it('kills what left its group or lost its leader, by the mark', async () => {
    const server = await serve();
    const marked = { [MARK_VARIABLE]: `outer-1:${life}-7` };
    const escaping = family.sh('setsid sleep 300 & echo $!; wait', marked);
    const leaderless = family.sh('sleep 300 & echo $!; env -i sleep 300 & echo $!', marked);
    await server.run(add(escaping.pid));
    await server.run(add(leaderless.pid));
    const pids = [await escaping.number(), await leaderless.number(), family.adopt(await leaderless.number())];
    await until(() => readStat(leaderless.pid) === undefined, 'the end of the leader');
    await until(() => readStat(pids[0] ?? 0)?.session === pids[0], 'the new session');
    await server.end('SIGKILL');
    await gone([escaping.pid, ...pids], 'the end of all three');
  });

  it('kills nobody that it cannot prove to be ours', async () => {
    const server = await serve();
    const recycled = family.sh('echo 1; exec sleep 300');
    const otherLife = family.sh('echo 1; exec sleep 300', { [MARK_VARIABLE]: `${life}7-1:7${life}-1` });
    const removed = family.sh('echo 1; exec sleep 300');
    const leaderless = family.sh('sleep 300 & echo $!');
    const member = await leaderless.number();
    await server.run(add(recycled.pid, (readStat(recycled.pid)?.startTime ?? 0) - 1));
    await server.run(add(leaderless.pid, readStat(member)?.startTime));
    await server.run(add(removed.pid));
    const guard = await server.run(`guard.remove(${removed.pid})`);
    await until(() => readStat(leaderless.pid) === undefined, 'the end of the leader');
    await server.end('SIGKILL');
    await gone([guard], 'the end of the guard');
    expect([recycled.pid, otherLife.pid, removed.pid, member].map(isAlive)).toEqual([true, true, true, true]);
  });

  it('removes listed temporary files and folders when the server is killed, whatever bytes their path has', async () => {
    const odd = Buffer.from(Array.from({ length: 255 }, (_, index) => index + 1).filter((byte) => byte !== 0x2f));
    const root = mkdtempSync(join(tmpdir(), 'guard-'));
    try {
      const folders = [odd.subarray(0, 127), odd.subarray(127), Buffer.from('-rf $(id) `id` * \\n \n\n')].map((name) =>
        Buffer.concat([Buffer.from(`${root}/`), name]),
      );
      const inside = (folder: Buffer, name: string): Buffer => Buffer.concat([folder, Buffer.from(`/${name}`)]);
      for (const folder of folders) {
        mkdirSync(folder);
        for (const name of ['.temp-1.tmp', '.temp-2.tmp', '.temp-1', 'other.tmp'])
          writeFileSync(inside(folder, name), '');
        mkdirSync(inside(folder, '.temp-3.tmp'));
        writeFileSync(inside(folder, '.temp-3.tmp/x'), '');
      }
      const unlisted = join(root, 'unlisted-1.tmp');
      writeFileSync(unlisted, '');
      const server = await serve();
      await server.run(`guard.addTemps(100, ${JSON.stringify(join(root, 'unlisted-'))})`);
      for (const [key, folder] of folders.entries()) {
        await server.run(`guard.addTemps(${key}, ${JSON.stringify(inside(folder, '.temp-').toString('latin1'))})`);
      }
      const guard = await server.run('guard.removeTemps(100)');
      await server.end('SIGKILL');
      await gone([guard], 'the end of the guard');
      for (const folder of folders) expect(readdirSync(folder).sort()).toEqual(['.temp-1', 'other.tmp']);
      expect(existsSync(unlisted)).toBe(true);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  it('is started by a later call when there are no descriptors at first', async () => {
    const server = await serve();
    const limit = (soft: number): void => {
      const { status } = spawnSync('prlimit', [`--nofile=${soft}:4096`, '--pid', String(server.pid)]);
      expect(status).toBe(0);
    };
    limit(3);
    expect(await server.run(`guard.addTemps(1, '/nowhere/a')`)).toBe(0);
    limit(4096);
    expect(await server.run(`guard.addTemps(2, '/nowhere/b')`)).toBeGreaterThan(0);
  });

  it('is told again what is temporary when it died', async () => {
    const root = mkdtempSync(join(tmpdir(), 'guard-'));
    try {
      writeFileSync(join(root, 'a-1.tmp'), '');
      const server = await serve();
      const first = await server.run(`guard.addTemps(1, ${JSON.stringify(join(root, 'a-'))})`);
      process.kill(first, 'SIGKILL');
      await until(async () => ![first, 0].includes(await server.run('0')), 'another guard');
      await server.end('SIGKILL');
      await until(() => readdirSync(root).length === 0, 'the end of the file');
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  it('kills nothing after close', async () => {
    const server = await serve();
    const child = family.sh('echo 1; exec sleep 300', { [MARK_VARIABLE]: `${life}-1` });
    const guard = await server.run(add(child.pid));
    await server.run('guard.close()');
    expect(isAlive(guard)).toBe(false);
    await server.end('SIGKILL');
    expect(isAlive(child.pid)).toBe(true);
  });

  it('outlives the signals that end the group of the server, and those sent to itself', async () => {
    const server = await serve();
    const child = family.sh('echo 1; exec sleep 300');
    const guard = await server.run(add(child.pid));
    expect(readStat(guard)).toMatchObject({ pgrp: guard, session: guard });
    // Its own session keeps the signals of a terminal away; until its script runs, one sent to it by hand ends it.
    await until(() => ignores(guard, constants.signals.SIGTERM), 'the start of the script');
    for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM', 'SIGQUIT']) process.kill(guard, signal);
    await server.run('0');
    expect([isAlive(guard), isAlive(child.pid)]).toEqual([true, true]);
    await server.end('SIGINT');
    await gone([child.pid, guard], 'the end of the group and the guard');
  });

  it('does not keep its server running', async () => {
    const server = await serve();
    const child = family.sh('echo 1; exec sleep 300');
    await server.run(add(child.pid));
    servers.at(-1)?.stdin?.end();
    await gone([server.pid, child.pid], 'the end of server and child');
  });

  it('starts with the first child, and keeps only live groups in its list', async () => {
    const guard = create();
    expect([guard.state, guard.pid]).toEqual(['idle', undefined]);
    for (let pid = 1_000_000; pid < 1_003_000; pid += 1) {
      guard.add(pid, 7);
      guard.remove(pid);
    }
    expect(guard.state).toBe('running');
    expect(readArgv(guard.pid ?? 0).slice(0, 2)).toEqual(['/bin/sh', '-c']);
  });

  it('is started again once when it dies, with the list it had', async () => {
    const server = await serve();
    const child = family.sh('echo 1; exec sleep 300');
    const first = await server.run(add(child.pid));
    process.kill(first, 'SIGKILL');
    let second = first;
    await until(async () => {
      second = await server.run('0');
      return second !== first && second !== 0;
    }, 'another guard');
    await server.end('SIGKILL');
    await gone([child.pid, second], 'the end of the group and the guard');
  });

  it('says so when it died twice, and takes further calls in silence', async () => {
    const reasons: string[] = [];
    const guard = create({ onUnavailable: (reason) => reasons.push(reason) });
    guard.add(1_000_000, 7);
    for (let deaths = 0; deaths < 2; deaths += 1) {
      const { pid } = guard;
      process.kill(pid ?? 0, 'SIGKILL');
      guard.add(1_000_001, 7);
      await until(() => guard.pid !== pid, 'the news of its end');
    }
    expect([guard.state, guard.pid, reasons]).toEqual(['unavailable', undefined, ['the guard process ended twice']]);
    guard.add(1_000_002, 7);
    guard.remove(1_000_002);
    await guard.close();
  });

  it('says so when there is no shell', async () => {
    const reasons: string[] = [];
    const guard = create({ shell: '/no/such/shell', onUnavailable: (reason) => reasons.push(reason) });
    guard.add(1_000_000, 7);
    guard.add(1_000_001, 7);
    await until(() => guard.state === 'unavailable', 'the refusal');
    await until(() => reasons.length > 0, 'the report');
    expect(reasons).toEqual(['the guard process cannot be started: ENOENT']);
  });

  it('replaces a guard that is stuck', async () => {
    const guard = create();
    guard.add(1_000_000, 7);
    const { pid } = guard;
    process.kill(pid ?? 0, 'SIGSTOP');
    for (let index = 0; guard.pid === pid && index < 200_000; index += 1) {
      guard.add(1_000_001 + index, 7);
      guard.remove(1_000_001 + index);
      if (index % 1000 === 0) await new Promise(setImmediate);
    }
    expect([guard.state, isAlive(pid ?? 0)]).toEqual(['running', false]);
  });
});
