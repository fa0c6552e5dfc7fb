/** Clients that vanish, and a server that runs out of descriptors. */
import { connect } from '@exec-server/client';
import { startFaultProxy } from '@exec-server/testing';
import { expect, it } from 'vitest';
import { serverProgram } from '../../support/links.js';
import { scaled } from '../../support/scale.js';
import { Tag } from '../../support/tagged.js';
import { expectDescriptors, Trial } from '../../support/trial.js';
import { until } from '../../support/until.js';

it(`ends ${scaled(50, 500)} starts of clients that vanish in the middle of them`, async () => {
  const trial = await Trial.open('websocket', { server: { sessionLeaseMs: 20 } });
  const proxy = await startFaultProxy({ target: trial.url ?? '' });
  try {
    const atFirst = trial.allDescriptors();
    const STARTS = 5;
    for (let gone = 0; gone < scaled(50, 500); gone += STARTS) {
      const client = await connect({ url: proxy.url, leaseMs: 20, reconnect: false });
      const starts = Array.from({ length: STARTS }, (_, index) =>
        client.start({ argv: ['sleep', '600'], tty: index === 0 }),
      );
      for (const start of starts) start.catch(() => undefined);
      for (let turn = 0; turn < 3 * ((gone / STARTS) % 10); turn += 1)
        await new Promise((resolve) => setImmediate(resolve));
      // Without a word to the session, in every other round without one to the connection: the lease ends it.
      if ((gone / STARTS) % 2 === 0) proxy.cut();
      await client.detach();
    }
    // Its sockets are descriptors of this program, too.
    await proxy.close();
    await until(() => trial.server?.gauges().sessions === 1, 'the sessions of the vanished to end');
    await trial.expectClean();
    await expectDescriptors(trial, atFirst);
  } finally {
    await proxy.close();
    await trial.close();
  }
});

it.each([
  ['pipes', false],
  ['terminals', true],
])('says that it has no descriptors left for more %s, and goes on when the load has fallen', async (_kind, tty) => {
  const tag = new Tag();
  const limited = ['sh', '-c', 'ulimit -n 128 && exec "$@"', 'sh', process.execPath, serverProgram] as const;
  const client = await connect({ command: [...limited, '--listen', 'stdio'], env: tag.env });
  try {
    for (let round = 0; round < 3; round += 1) {
      const starts = await Promise.allSettled(
        Array.from({ length: 100 }, () => client.start({ argv: ['sleep', '600'], tty })),
      );
      const running = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
      const refusals = starts.flatMap((start): unknown[] => (start.status === 'rejected' ? [start.reason] : []));
      expect(running.length).toBeGreaterThan(0);
      expect(refusals.length).toBeGreaterThan(0);
      for (const refusal of refusals) {
        expect(refusal).toMatchObject({ data: { reason: 'tooManyOpenFiles', retryable: true } });
      }
      // Those that run are not the worse for it.
      for (const handle of running) expect(await handle.terminate()).toEqual({ running: true });
      for (const handle of running) await handle.closed();
      expect((await client.run(['echo', 'ok'], { tty })).text().trim()).toBe('ok');
    }
  } finally {
    await client.close();
    await until(() => tag.pids().length === 0, 'the server and all it started to end').finally(() => tag.killAll());
  }
});
