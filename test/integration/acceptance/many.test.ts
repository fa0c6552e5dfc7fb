/** Many short processes, failed and aborted starts: no descriptor, zombie or timer is left. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { full, scaled } from '../../support/scale.js';
import { expectDescriptors, Trial, wires } from '../../support/trial.js';
import { until } from '../../support/until.js';

const IN_FLIGHT = 50;

describe.each(wires)('thousands of starts over %s', (wire) => {
  let trial: Trial;
  let atFirst: number;
  beforeAll(async () => {
    trial = await Trial.open(wire);
    atFirst = trial.allDescriptors();
  });
  afterEach(() => trial.expectClean());
  afterAll(async () => {
    // The pipes kept ready after a burst go when no start has come for a while: once is enough of that wait.
    if (full || wire === 'stdio') await expectDescriptors(trial, atFirst);
    await trial.close();
  });

  async function inFlight(count: number, one: (index: number) => Promise<void>): Promise<void> {
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < count) await one(next++);
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  }

  it(`runs ${scaled(450, 4_500)} programs on pipes and ${scaled(50, 500)} on terminals, each to its end`, async () => {
    await inFlight(scaled(500, 5_000), async (index) => {
      const tty = index % 10 === 0;
      const result = await trial.client.run(['sh', '-c', `echo ${index}; exit ${index % 100}`], { tty });
      expect(result).toMatchObject({ exitCode: index % 100, signal: undefined, closed: true, closeReason: 'ended' });
      expect(result.text()).toBe(`${index}${tty ? '\r' : ''}\n`);
    });
    const { processes } = await trial.client.call('process/list', {});
    expect(processes.length).toBeLessThanOrEqual(1024);
    expect(processes.every(({ state }) => state === 'closed')).toBe(true);
  });

  it(`fails to start ${scaled(100, 1_000)} programs in ways of every kind, and keeps nothing of them`, async () => {
    const before = (await trial.client.call('process/list', {})).processes.length;
    const failures = [
      [{ argv: ['/no/such/program'] }, 'programNotFound'],
      [{ argv: ['/tmp'] }, 'notExecutable'],
      [{ argv: ['true'], cwd: '/no/such/folder' }, 'cwdNotFound'],
      [{ argv: ['true', 'x'.repeat(200_000)] }, 'argumentTooLong'],
      [{ argv: ['true', 'a\0b'] }, 'nulByte'],
      [{ argv: ['/no/such/program'], tty: true }, 'programNotFound'],
      [{ argv: ['/tmp'], tty: true }, 'notExecutable'],
    ] as const;
    await inFlight(scaled(100, 1_000), async (index) => {
      const [options, reason] = failures[index % failures.length] ?? failures[0];
      const start = trial.client.start({ ...options, processId: `failed-${wire}-${index}` });
      await expect(start).rejects.toMatchObject({ data: { reason } });
    });
    expect((await trial.client.call('process/list', {})).processes).toHaveLength(before);
  });

  it(`takes back ${scaled(50, 500)} starts whose caller gave up at once`, async () => {
    await inFlight(scaled(50, 500), async (index) => {
      const giveUp = new AbortController();
      const start = trial.client.start({ argv: ['sleep', '600'], tty: index % 10 === 0 }, { signal: giveUp.signal });
      // Before it is sent, and at several points behind that.
      for (let turn = 0; turn < index % 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      giveUp.abort();
      const handle = await start.catch((error: unknown) => error);
      if (handle instanceof Error) expect(handle).toMatchObject({ code: 'ABORTED' });
      else await trial.client.call('process/terminate', { processId: (await start).processId });
    });
    await until(() => trial.relatives().length === 0, 'the abandoned processes to end', scaled(10_000, 60_000));
  });

  it(`reaps nothing that is not its own: ${scaled(100, 1_000)} children that leave an orphan behind`, async () => {
    await inFlight(scaled(100, 1_000), async () => {
      const result = await trial.client.run(['sh', '-c', 'sleep 0.1 & exit 2'], { lingerMs: 5_000 });
      expect(result).toMatchObject({ exitCode: 2, closeReason: 'ended' });
    });
  });
});
