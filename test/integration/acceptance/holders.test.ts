/** Exited is not closed: descendants that hold the streams of a process that has ended. */
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isAlive } from '../../support/links.js';
import { Trial, wires } from '../../support/trial.js';
import { until } from '../../support/until.js';

describe.each(wires)('held streams over %s', (wire) => {
  let trial: Trial;
  beforeAll(async () => {
    trial = await Trial.open(wire);
  });
  afterEach(() => trial.expectClean());
  afterAll(() => trial.close());

  it('tells the exit at once, and closes as held open when the linger is over', async () => {
    const held = await trial.sh('sleep 30 & echo parent-done; exit 7', { lingerMs: 500 });
    expect(await held.handle.wait()).toMatchObject({ exitCode: 7, signal: undefined, reason: 'exited' });
    expect(held.events.map(({ type }) => type)).not.toContain('closed');
    expect(await held.handle.closed()).toEqual({ reason: 'heldOpen', holders: 1 });
    await held.over;
    expect(held.text).toBe('parent-done\n');
    expect(held.order).toEqual(['output', 'exited', 'closed']);

    // The holder was not touched, neither by the close nor by a plain terminate.
    await trial.family(1);
    const { processId } = held.handle;
    expect(await trial.client.call('process/terminate', { processId })).toEqual({ running: false });
    const kept = await trial.client.call('process/terminate', { processId, wait: true });
    expect(kept).toMatchObject({ running: false, exit: { exitCode: 7, reason: 'exited' } });
    expect(kept.left?.map(({ argv }) => argv)).toEqual([['sleep', '30']]);
    await trial.family(1);

    const ended = await trial.client.call('process/terminate', { processId, leftovers: 'kill' });
    expect(ended).toMatchObject({ running: false, left: [], exit: { exitCode: 7 } });
    expect(trial.relatives()).toEqual([]);
  });

  it.each([
    ['stdout', 'sleep 30 2>/dev/null & exit 3'],
    ['stderr', 'sleep 30 >/dev/null & exit 3'],
  ])('counts the holder of %s alone', async (_stream, script) => {
    const held = await trial.sh(script, { lingerMs: 100 });
    expect(await held.handle.closed()).toEqual({ reason: 'heldOpen', holders: 1 });
    await held.over;
    expect(held.order).toEqual(['exited', 'closed']);
    await trial.client.call('process/terminate', { processId: held.id, leftovers: 'kill' });
  });

  it('counts three holders of one process', async () => {
    const held = await trial.sh('sleep 30 & sleep 30 & sleep 30 & exit 0', { lingerMs: 100 });
    expect(await held.handle.closed()).toEqual({ reason: 'heldOpen', holders: 3 });
    await trial.client.call('process/terminate', { processId: held.id, leftovers: 'kill' });
  });

  it('delivers what a holder writes until the close and nothing later, and the holder goes on', async () => {
    const held = await trial.sh('(trap "" PIPE; while echo tick; do sleep 0.05; done) & echo $!; exit 0', {
      lingerMs: 500,
    });
    const [holder = 0] = await held.numbers(1);
    expect((await held.handle.closed()).reason).toBe('heldOpen');
    await held.over;
    expect(held.order).toEqual(['output', 'exited', 'output', 'closed']);
    const length = held.events.length;
    // The writer is not stopped by a full pipe: what it writes is read and dropped.
    const before = held.bytes.length;
    expect(isAlive(holder)).toBe(true);
    expect((await trial.client.run(['sleep', '0.2'])).exitCode).toBe(0);
    expect(held.events).toHaveLength(length);
    expect(held.bytes).toHaveLength(before);
    expect(isAlive(holder)).toBe(true);
    await trial.client.call('process/terminate', { processId: held.id, leftovers: 'kill' });
    expect(isAlive(holder)).toBe(false);
  });

  it('drains a holder that floods after the close, so that it never blocks', async () => {
    const held = await trial.sh('(sleep 0.3; head -c 1000000 /dev/zero; exec sleep 30 >/dev/null 2>&1) & echo $!', {
      lingerMs: 50,
    });
    const [holder = 0] = await held.numbers(1);
    expect((await held.handle.closed()).reason).toBe('heldOpen');
    // It becomes `sleep` only once it has written everything.
    await until(async () => (await readFile(`/proc/${holder}/comm`, 'utf8')) === 'sleep\n', 'the flood to pass');
    expect(held.bytes.length).toBeLessThan(100);
    await trial.client.call('process/terminate', { processId: held.id, leftovers: 'kill' });
  });

  it('closes as ended when the last holder lets go before the linger is over', async () => {
    const held = await trial.sh('(sleep 0.2; echo late) & echo early; exit 4', { lingerMs: 20_000 });
    expect(await held.handle.closed()).toEqual({ reason: 'ended', holders: undefined });
    await held.over;
    expect(held.text).toBe('early\nlate\n');
    expect(held.order).toEqual(['output', 'exited', 'output', 'closed']);
  });

  it('waits for holders as long as they live when no linger was asked for', async () => {
    const held = await trial.sh('sleep 600 & echo $!; exit 0');
    const [holder = 0] = await held.numbers(1);
    await held.handle.wait();
    expect((await trial.client.run(['sleep', '0.3'])).exitCode).toBe(0);
    expect(held.order).toEqual(['output', 'exited']);
    process.kill(holder, 'SIGKILL');
    expect(await held.handle.closed()).toEqual({ reason: 'ended', holders: undefined });
  });

  it('closes a terminal with its leader, since the host hangs it up for all who hold it', async () => {
    const held = await trial.sh('trap "" HUP; sleep 30 & echo done; exit 6', { tty: true, lingerMs: 10_000 });
    expect((await held.handle.wait()).exitCode).toBe(6);
    expect(await held.handle.closed()).toEqual({ reason: 'ended', holders: undefined });
    await held.over;
    expect(held.text).toBe('done\r\n');
    await trial.family(1);
    const ended = await trial.client.call('process/terminate', { processId: held.id, leftovers: 'kill' });
    expect(ended).toMatchObject({ running: false, left: [] });
  });
});
