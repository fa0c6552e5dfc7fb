/** Terminate: politely, at once, twice, too late, and in a race with the natural exit. */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { commandOf, parentOf } from '../../support/links.js';
import { scaled } from '../../support/scale.js';
import { Trial, wires } from '../../support/trial.js';
import { until } from '../../support/until.js';

// What a shell says of its killed sleep is no matter here.
const stubborn = "exec 2>/dev/null; trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done";
const deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done";

describe.each(wires)('terminate over %s', (wire) => {
  let trial: Trial;
  beforeAll(async () => {
    trial = await Trial.open(wire);
  });
  afterEach(() => trial.expectClean());
  afterAll(() => trial.close());

  const terminate = (processId: string, options: { graceMs?: number; leftovers?: 'kill'; wait?: boolean } = {}) =>
    trial.client.call('process/terminate', { processId, ...options });

  it('asks first, kills when the grace is over, and answers once the exit was collected', async () => {
    const process = await trial.sh(stubborn);
    await process.see('ready');
    const answer = await terminate(process.id, { graceMs: 500 });
    expect(answer).toMatchObject({
      running: true,
      escalated: true,
      exit: { exitCode: 137, signal: 'SIGKILL', reason: 'terminated' },
      left: [],
    });
    expect(trial.relatives()).toEqual([]);
    await process.over;
    // It was asked before it was killed, and lived on in between.
    expect(process.text).toBe('ready\nasked\n');
    expect(process.order).toEqual(['output', 'exited', 'closed']);
    expect(process.events.at(-2)).toMatchObject({ exitCode: 137, signal: 'SIGKILL', reason: 'terminated' });
  });

  it('does not escalate where the process does as it is asked', async () => {
    const process = await trial.sh(
      "exec 2>/dev/null; trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.02; done",
    );
    await process.see('ready');
    expect(await terminate(process.id, { graceMs: 10_000 })).toMatchObject({
      running: true,
      escalated: false,
      exit: { exitCode: 3, signal: null, reason: 'terminated' },
    });
    await process.over;
    expect(process.text).toBe('ready\nbye\n');
  });

  it('ends a tree that ignores TERM, escapees included, when told to', async () => {
    const process = await trial.sh(`setsid sh -c "${deaf}" & setsid -f sleep 600; sh -c "${deaf}" & ${deaf}`);
    await process.see(/(ready\n[^]*){3}/);
    const answer = await terminate(process.id, { graceMs: 200, leftovers: 'kill' });
    expect(answer).toMatchObject({ running: true, escalated: true, left: [], exit: { signal: 'SIGKILL' } });
    expect(trial.relatives()).toEqual([]);
  });

  it('wakes a stopped tree so that it can do as it is asked', async () => {
    const stopped = await trial.sh('trap "echo woken; exit 5" TERM; sleep 600 & echo ready; wait');
    await stopped.see('ready');
    await until(() => trial.relatives().map(commandOf).includes('sleep 600'), 'the sleep to run');
    process.kill(-stopped.pid, 'SIGSTOP');
    await until(() => isStopped(stopped.pid), 'the stop to take effect');
    expect(await terminate(stopped.id, { graceMs: 10_000 })).toMatchObject({
      escalated: false,
      exit: { exitCode: 5, signal: null, reason: 'terminated' },
    });
    await stopped.over;
    expect(stopped.text).toBe('ready\nwoken\n');
  });

  it('wakes what stops only after it was asked', async () => {
    const stopped = await trial.sh(
      "exec 2>/dev/null; trap 'kill -STOP $$; echo woken; exit 5' TERM; echo ready; while :; do sleep 0.05; done",
    );
    await stopped.see('ready');
    expect(await terminate(stopped.id, { graceMs: 10_000 })).toMatchObject({
      escalated: false,
      exit: { exitCode: 5, reason: 'terminated' },
    });
    await stopped.over;
    expect(stopped.text).toBe('ready\nwoken\n');
  });

  it.each([
    ['with a grace', { graceMs: 10_000 }, 'SIGTERM'],
    ['at once', { wait: true }, 'SIGKILL'],
  ])('ends a stopped sleep %s', async (_how, options, signal) => {
    const stopped = await trial.start(['sleep', '600']);
    process.kill(stopped.pid, 'SIGSTOP');
    await until(() => isStopped(stopped.pid), 'the stop to take effect');
    expect(await terminate(stopped.id, options)).toMatchObject({ running: true, exit: { signal } });
  });

  it('tells a death by signal from an exit with the same number', async () => {
    const killed = await trial.sh('kill -9 $$');
    const exited = await trial.sh('exit 137');
    expect(await killed.handle.wait()).toEqual({ exitCode: 137, signal: 'SIGKILL', reason: 'exited' });
    expect(await exited.handle.wait()).toEqual({ exitCode: 137, signal: undefined, reason: 'exited' });
    const terminal = await trial.sh('kill -9 $$', { tty: true });
    expect(await terminal.handle.wait()).toEqual({ exitCode: 137, signal: 'SIGKILL', reason: 'exited' });
  });

  it('gives the same final state to whoever terminates twice, or after the exit', async () => {
    const process = await trial.sh(deaf);
    await process.see('ready');
    const answers = await Promise.all([
      terminate(process.id, { graceMs: 200 }),
      terminate(process.id, { graceMs: 200 }),
      terminate(process.id, { wait: true, graceMs: 100 }),
    ]);
    const exit = { exitCode: 137, signal: 'SIGKILL', reason: 'terminated' };
    for (const answer of answers) expect(answer).toMatchObject({ running: true, exit });
    expect(await terminate(process.id, { graceMs: 200 })).toMatchObject({ running: false, escalated: false, exit });
    expect(await terminate(process.id, { wait: true })).toMatchObject({ running: false, exit });
    expect(await terminate(process.id)).toEqual({ running: false });
    expect(await terminate('never-started', { graceMs: 5 })).toEqual({ running: false });
  });

  it('overrides a long grace by a plain terminate', async () => {
    const process = await trial.sh(deaf);
    await process.see('ready');
    const polite = terminate(process.id, { graceMs: 25_000 });
    expect(await terminate(process.id)).toEqual({ running: true });
    expect(await polite).toMatchObject({ running: true, escalated: false, exit: { signal: 'SIGKILL' } });
  });

  it('does not undo an exit that came first: its reason stays', async () => {
    const process = await trial.sh('exit 4');
    await process.over;
    expect(await terminate(process.id, { graceMs: 100 })).toMatchObject({
      running: false,
      exit: { exitCode: 4, reason: 'exited' },
    });
  });

  it('ends a process and its group when its time is up, and says so', async () => {
    const process = await trial.sh(`sh -c "${deaf}" & sleep 600`, { timeoutMs: 300 });
    await process.see('ready');
    expect(await process.handle.wait()).toEqual({ exitCode: 137, signal: 'SIGKILL', reason: 'timedOut' });
    await process.over;
    expect(process.order).toEqual(['output', 'exited', 'closed']);
  });

  it('ends the tree of a process whose time is up, with those who left its group', async () => {
    const process = await trial.sh('setsid -f sleep 600; echo ready; sleep 600', { timeoutMs: 300 });
    await process.see('ready');
    expect(await process.handle.wait()).toMatchObject({ reason: 'timedOut' });
    await until(() => trial.relatives().length === 0, 'the escapee to end');
  });

  it('leaves a process alone that ends before its time is up', async () => {
    const result = await trial.client.run(['sh', '-c', 'echo quick'], { timeoutMs: 20_000 });
    expect(result).toMatchObject({ exitCode: 0, reason: 'exited', timedOut: false });
  });

  it(`has one end and signals no stranger when terminate races the exit ${scaled(200, 1_000)} times`, async () => {
    const strangers: number[] = [];
    const send = process.kill.bind(process);
    const spy = vi.spyOn(process, 'kill').mockImplementation((target, signal) => {
      const pid = Math.abs(target);
      const isOurs = trial.tag.has(pid) || parentOf(pid) === process.pid;
      if (signal !== 0 && !isOurs && existsSync(`/proc/${pid}`)) strangers.push(pid);
      return send(target, signal);
    });
    try {
      const ends = { exited: 0, terminated: 0 };
      for (let round = 0; round < scaled(200, 1_000); round += 1) {
        const raced = await trial.start(['true']);
        // From at once to behind the exit.
        for (let turn = 0; turn < round % 8; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        const answer = await terminate(raced.id, round % 2 === 0 ? { wait: true } : { graceMs: 1_000 });
        await raced.over;
        const { exitCode, signal, reason } = await raced.handle.wait();
        expect(raced.order).toEqual(['exited', 'closed']);
        expect(answer.exit).toEqual({ exitCode, signal: signal ?? null, reason });
        expect(answer.left).toEqual([]);
        if (reason === 'exited') expect([exitCode, signal, answer.running]).toEqual([0, undefined, false]);
        ends[reason === 'exited' ? 'exited' : 'terminated'] += 1;
      }
      expect(ends.exited + ends.terminated).toBe(scaled(200, 1_000));
      expect(strangers).toEqual([]);
    } finally {
      spy.mockRestore();
    }
  });
});

function isStopped(pid: number): boolean {
  return /\) T /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
}
