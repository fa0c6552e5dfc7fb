/** What an id stands for: adopted starts, the list, release, and what stays known of processes that are gone. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Trial, wires } from '../../support/trial.js';
import { until } from '../../support/until.js';
import { Watched } from '../../support/watched.js';

describe.each(wires)('process ids over %s', (wire) => {
  let trial: Trial;
  beforeAll(async () => {
    trial = await Trial.open(wire);
  });
  afterEach(() => trial.expectClean());
  afterAll(() => trial.close());

  let ids = 0;
  /** Params of a start under an id of its own. */
  const params = (script: string) => ({
    processId: `own-${(ids += 1)}`,
    argv: ['sh', '-c', script],
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '', ...trial.tag.env },
    tty: false,
  });
  type Params = ReturnType<typeof params>;
  const start = (body: Params) => trial.client.call('process/start', body);
  const adopt = (body: Params) => trial.client.call('process/start', { ...body, ifExists: 'adopt' });
  const closed = (processId: string) => until(async () => (await summary(processId))?.state === 'closed', 'the close');
  const summary = async (processId: string) => {
    const { processes } = await trial.client.call('process/list', {});
    return processes.find((process) => process.processId === processId);
  };

  it('adopts a running process that was started by the same params, in any order of members', async () => {
    const body = params('exec sleep 600');
    const first = await start(body);
    expect(first.existing).toBeUndefined();
    const { processId, argv, ...rest } = body;
    const again = await adopt({ ...rest, argv, processId });
    expect(again).toMatchObject({ processId, existing: true, pid: first.pid });
    expect(again).not.toHaveProperty('exit');
    expect(await trial.family(1)).toEqual([first.pid]);
    await trial.client.call('process/terminate', { processId, wait: true });
    expect(await adopt(body)).toMatchObject({
      existing: true,
      exit: { exitCode: 137, signal: 'SIGKILL', reason: 'terminated' },
    });
  });

  it('starts what is to be adopted and is not there', async () => {
    const body = params('exit 3');
    const first = await adopt(body);
    expect(first.existing).toBeUndefined();
    expect(first.pid).toBeGreaterThan(0);
    await closed(body.processId);
    expect(await adopt(body)).toMatchObject({ existing: true, exit: { exitCode: 3, signal: null, reason: 'exited' } });
  });

  it('refuses to adopt what was started by other params, and to start an id twice', async () => {
    const body = params('exec sleep 600');
    await start(body);
    const changes = [
      { argv: ['sh', '-c', 'exec sleep 601'] },
      { cwd: '/tmp' },
      { env: { ...body.env, MORE: '1' } },
      { tty: true },
      { pipeStdin: true },
      { timeoutMs: 5 },
    ];
    for (const change of changes) {
      await expect(adopt({ ...body, ...change })).rejects.toMatchObject({ data: { reason: 'startDiffers' } });
    }
    await expect(start(body)).rejects.toMatchObject({ code: 'DUPLICATE_PROCESS' });
    await trial.family(1);
    await trial.client.call('process/terminate', { processId: body.processId });
  });

  it('makes one process of twenty starts at the same time', async () => {
    const body = params('exec sleep 600');
    const answers = await Promise.all(Array.from({ length: 20 }, () => adopt(body)));
    expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
    expect(answers.filter(({ existing }) => existing !== true)).toHaveLength(1);
    await trial.family(1);
    await trial.client.call('process/terminate', { processId: body.processId });
  });

  it('answers everybody who joined a start that fails, and frees the id', async () => {
    const body = { ...params(''), argv: ['/no/such/program'] };
    const answers = await Promise.allSettled([adopt(body), adopt(body), adopt(body)]);
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    const good = { ...body, argv: ['true'] };
    expect((await adopt(good)).existing).toBeUndefined();
    await closed(body.processId);
  });

  it('releases a closed process once, not a running one, and keeps its id', async () => {
    const body = params('echo out; read -r _; exit 6');
    const { processId } = body;
    await start({ ...body, pipeStdin: true } as Params);
    await expect(trial.client.call('process/release', { processId })).rejects.toMatchObject({
      data: { reason: 'processRunning', retryable: true },
    });
    await trial.client.call('process/write', { processId, chunk: '', offset: 0, eof: true });
    await closed(processId);
    expect(await summary(processId)).toMatchObject({ state: 'closed', outputBytes: 4, exit: { exitCode: 6 } });
    expect(await trial.client.call('process/release', { processId })).toEqual({});
    await expect(trial.client.call('process/release', { processId })).rejects.toMatchObject({
      data: { reason: 'alreadyReleased' },
    });
    expect(await summary(processId)).toBeUndefined();
    const exit = { exitCode: 6, signal: null, reason: 'exited' };
    await expect(trial.client.call('process/read', { processId })).rejects.toMatchObject({
      data: { reason: 'expiredProcess', serverData: { exit } },
    });
    await expect(start(body)).rejects.toMatchObject({ code: 'DUPLICATE_PROCESS' });
    const same = { ...body, pipeStdin: true } as Params;
    expect(await adopt(same)).toEqual({ processId, sandboxType: 'none', existing: true, exit });
    await expect(adopt(body)).rejects.toMatchObject({ data: { reason: 'startDiffers' } });
    await expect(trial.client.call('process/release', { processId: 'never' })).rejects.toMatchObject({
      data: { reason: 'unknownProcess' },
    });
  });

  it('lists processes with their state, times and counts', async () => {
    const running = params('echo 12345; cat >/dev/null');
    const ended = params('exit 2');
    const before = Date.now();
    const { pid } = await start({ ...running, pipeStdin: true } as Params);
    await start(ended);
    await trial.client.call('process/write', { processId: running.processId, chunk: 'YWJj', offset: 0 });
    await closed(ended.processId);
    await until(async () => (await summary(running.processId))?.outputBytes === 6, 'the output');
    const shown = await summary(running.processId);
    const live = { argv: running.argv, tty: false, state: 'running', pid, outputBytes: 6, stdinBytes: 3 };
    expect(shown).toMatchObject({ ...live, retainedBytes: 6, firstRetainedSeq: 1, nextSeq: 2 });
    expect(shown?.startedAtMs).toBeGreaterThanOrEqual(before - 1);
    for (const member of ['exit', 'exitedAtMs', 'closedAtMs', 'leftovers']) expect(shown).not.toHaveProperty(member);
    const over = await summary(ended.processId);
    expect(over).toMatchObject({ state: 'closed', exit: { exitCode: 2, signal: null, reason: 'exited' }, nextSeq: 3 });
    const { startedAtMs = 0, exitedAtMs = 0, closedAtMs = 0 } = over ?? {};
    expect([startedAtMs, exitedAtMs, closedAtMs].toSorted((a, b) => a - b)).toEqual([
      startedAtMs,
      exitedAtMs,
      closedAtMs,
    ]);
    await trial.client.call('process/terminate', { processId: running.processId });
  });
});

describe('a process whose retention is over', () => {
  it('leaves its id taken, its exit known, and its output said to be expired', async () => {
    const trial = await Trial.open('websocket', { server: { exitedRetentionMs: 0 } });
    try {
      const body = { processId: 'gone', argv: ['sh', '-c', 'exit 9'], cwd: '/', env: {}, tty: false };
      await trial.client.call('process/start', body);
      // What nobody has read yet is not forgotten.
      await new Watched(await trial.client.attach('gone')).over;
      await until(() => trial.server?.gauges().processes === 0, 'the process to be forgotten');
      const exit = { exitCode: 9, signal: null, reason: 'exited' };
      await expect(trial.client.call('process/read', { processId: 'gone' })).rejects.toMatchObject({
        data: { reason: 'expiredProcess', serverData: { exit } },
      });
      expect(await trial.client.call('process/start', { ...body, ifExists: 'adopt' })).toMatchObject({
        existing: true,
        exit,
      });
      await expect(trial.client.call('process/start', body)).rejects.toMatchObject({ code: 'DUPLICATE_PROCESS' });
      expect((await trial.client.call('process/list', {})).processes).toEqual([]);
      expect(await trial.client.call('process/terminate', { processId: 'gone', wait: true })).toMatchObject({
        running: false,
      });
      await trial.expectClean();
    } finally {
      await trial.close();
    }
  });
});
