/** Descendants that left the group of their process. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { commandOf } from '../../support/links.js';
import { Trial, wires } from '../../support/trial.js';
import { until } from '../../support/until.js';

describe.each(wires)('escapees over %s', (wire) => {
  let trial: Trial;
  beforeAll(async () => {
    trial = await Trial.open(wire);
  });
  afterEach(() => trial.expectClean());
  afterAll(() => trial.close());

  const daemon = 'setsid -f sleep 41.3 </dev/null >/dev/null 2>&1; echo launched';
  const holder = "(setsid sh -c 'sleep 41.4 & echo $!' &); sleep .3; echo launched";
  const leftoversOf = async (processId: string): Promise<string[][] | undefined> => {
    const { processes } = await trial.client.call('process/list', { leftovers: true });
    return processes.find((process) => process.processId === processId)?.leftovers?.map(({ argv }) => argv);
  };

  it('closes at once behind a daemon that let go of the streams, and finds it later', async () => {
    const process = await trial.sh(daemon);
    expect(await process.handle.wait()).toMatchObject({ exitCode: 0, reason: 'exited' });
    expect(await process.handle.closed()).toEqual({ reason: 'ended', holders: undefined });
    expect(process.text).toBe('launched\n');
    const shown = async (): Promise<string> => String(await leftoversOf(process.id));
    await until(async () => (await shown()) === 'sleep,41.3', 'the daemon to have become sleep');
    const { processId } = process.handle;
    const kept = await trial.client.call('process/terminate', { processId, leftovers: 'keep' });
    expect(kept).toMatchObject({ running: false, exit: { exitCode: 0 }, method: 'environment mark and process group' });
    expect(kept.left).toMatchObject([{ argv: ['sleep', '41.3'] }]);
    expect(trial.relatives()).toHaveLength(1);
    const killed = await trial.client.call('process/terminate', { processId, leftovers: 'kill' });
    expect(killed).toMatchObject({ running: false, left: [] });
    expect(trial.relatives()).toEqual([]);
    expect(await leftoversOf(process.id)).toEqual([]);
  });

  it('holds the close for a daemon that kept the streams, for the linger', async () => {
    const process = await trial.sh(holder, { lingerMs: 300 });
    expect((await process.handle.wait()).exitCode).toBe(0);
    expect(await process.handle.closed()).toEqual({ reason: 'heldOpen', holders: 1 });
    await process.over;
    const [sleep] = await process.numbers(1);
    expect(process.text).toBe(`${sleep}\nlaunched\n`);
    expect(process.order).toEqual(['output', 'exited', 'closed']);
    expect(trial.relatives()).toEqual([sleep]);
    const { processId } = process.handle;
    const killed = await trial.client.call('process/terminate', { processId, leftovers: 'kill' });
    expect(killed).toMatchObject({ running: false, left: [] });
    expect(trial.relatives()).toEqual([]);
  });

  it('ends a daemon together with the running process it came from, but only when told to', async () => {
    const process = await trial.sh(`${daemon}; sleep 600`);
    await process.see('launched');
    // Within its exec it shows no mark.
    await until(() => trial.relatives().some((pid) => commandOf(pid) === 'sleep 41.3'), 'the daemon to run');
    const { processId } = process.handle;
    const kept = await trial.client.call('process/terminate', { processId, graceMs: 5_000 });
    expect(kept).toMatchObject({ running: true, exit: { reason: 'terminated' } });
    expect(kept.left).toHaveLength(1);
    await process.over;
    expect(trial.relatives()).toEqual(kept.left?.map(({ pid }) => pid));
    const killed = await trial.client.call('process/terminate', { processId, graceMs: 5_000, leftovers: 'kill' });
    // A sleep does as it is asked.
    expect(killed).toMatchObject({ running: false, escalated: false, left: [] });
  });

  it('finds twenty generations of double forks', async () => {
    const fork = 'n=$1; [ "$n" = 0 ] && exec sleep 600; setsid -f sh -c "$0" "$0" $((n-1)); exec sleep 600';
    const process = await trial.start(['sh', '-c', fork, fork, '20']);
    await until(() => trial.relatives().length >= 21, 'all generations');
    const { processId } = process.handle;
    const killed = await trial.client.call('process/terminate', { processId, leftovers: 'kill' });
    // Whether the look was complete depends on what else the host starts meanwhile.
    expect(killed).toMatchObject({ running: true, left: [] });
    expect(trial.relatives()).toEqual([]);
  });

  it('keeps the escapees of one process apart from those of another', async () => {
    const [one, other] = await Promise.all([trial.sh(daemon), trial.sh(daemon)]);
    await Promise.all([one.over, other.over]);
    await until(async () => (await leftoversOf(other.id))?.[0]?.[0] === 'sleep', 'the other daemon to be sleep');
    await trial.client.call('process/terminate', { processId: one.id, leftovers: 'kill' });
    expect(await leftoversOf(one.id)).toEqual([]);
    expect(await leftoversOf(other.id)).toEqual([['sleep', '41.3']]);
    await trial.client.call('process/terminate', { processId: other.id, leftovers: 'kill' });
  });

  it('says what it cannot promise of a child that cleared its environment and left', async () => {
    const script = 'setsid -f env -i sleep 0.8 </dev/null >/dev/null 2>&1; exit 0';
    const process = await trial.sh(script);
    await process.over;
    const { processId } = process.handle;
    const answer = await trial.client.call('process/terminate', { processId, leftovers: 'kill' });
    expect(answer).toMatchObject({
      running: false,
      exit: { exitCode: 0 },
      method: 'environment mark and process group',
    });
  });
});
