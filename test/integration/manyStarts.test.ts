import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { childrenOf, join } from '../support/links.js';
import { scaled } from '../support/scale.js';
import { until } from '../support/until.js';

const WATCHED = new Set(['Timeout', 'Immediate', 'ProcessWrap', 'TCPSocketWrap', 'TCPServerWrap', 'PipeWrap']);

const descriptors = (): number => readdirSync('/proc/self/fd').length;

function resources(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

it(`leaves no descriptor, zombie or timer behind after ${scaled(400, 2_000)} starts`, async () => {
  const before = { descriptors: descriptors(), resources: resources(), children: childrenOf(process.pid) };
  const joined = await join('websocket', { server: { exitedRetentionMs: 0 } });
  const starts = scaled(400, 2_000);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < starts) {
      const index = next++;
      // Every tenth one cannot start.
      const argv = index % 10 === 9 ? ['/no/such/program'] : ['/bin/true'];
      const result = await joined.client.run(argv).catch((error: unknown) => error);
      expect(result).toMatchObject(
        index % 10 === 9 ? { data: { reason: 'programNotFound' } } : { exitCode: 0, closed: true },
      );
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  await until(() => joined.server?.gauges().processes === 0, 'the exited processes to be forgotten');
  await joined.expectClean();
  await until(() => descriptors() <= before.descriptors, 'the descriptors to be closed');
  expect(childrenOf(process.pid)).toEqual(before.children);
  const left = (): string[] => {
    const after = resources();
    return Object.keys(after).filter((name) => WATCHED.has(name) && (after[name] ?? 0) > (before.resources[name] ?? 0));
  };
  // A handle is listed until the turn after its close.
  await until(() => left().length === 0, `timers and handles to be gone: ${left().join()}`);
});
