import { describe, expect, it } from 'vitest';
import { pathOf } from '../paths.js';
import { type Claims, PathOrder } from './pathOrder.js';

const writes = (...paths: string[]): Claims => ({ writes: paths.map(pathOf) });
const reads = (...paths: string[]): Claims => ({ reads: paths.map(pathOf) });

/** Runs them all, ends those that have begun in turn, and gives the groups that ran side by side. */
async function groups(...claims: Claims[]): Promise<number[][]> {
  const order = new PathOrder();
  const begun: { readonly index: number; readonly end: () => void }[] = [];
  const all = claims.map((claim, index) =>
    order.run(claim, () => new Promise<void>((resolve) => begun.push({ index, end: resolve }))),
  );
  const seen: number[][] = [];
  while (seen.flat().length < claims.length) {
    const now = begun.splice(0);
    seen.push(now.map(({ index }) => index).toSorted((one, other) => one - other));
    for (const { end } of now) end();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(all);
  return seen;
}

describe('the order of paths', () => {
  it('runs writes to one path, to a folder above it and to a file below it one after the other', async () => {
    expect(await groups(writes('/a/b'), writes('/a'), writes('/a/b/c'), writes('/'))).toEqual([[0], [1], [2], [3]]);
  });

  it('runs side by side what has nothing to do with each other, whatever the names begin with', async () => {
    expect(await groups(writes('/a'), writes('/ab'), writes('/b/a'), reads('/c'))).toEqual([[0, 1, 2, 3]]);
  });

  it('runs reads side by side, behind a write and in front of the next', async () => {
    expect(await groups(reads('/a'), reads('/a/b'), writes('/a'), reads('/a'), reads('/'))).toEqual([
      [0, 1],
      [2],
      [3, 4],
    ]);
  });

  it('waits for each path of those that have several', async () => {
    const copy: Claims = { reads: [pathOf('/a')], writes: [pathOf('/b')] };
    expect(await groups(writes('/a'), writes('/b'), copy, reads('/b'), reads('/a'), writes('/a'))).toEqual([
      [0, 1],
      [2, 4],
      [3, 5],
    ]);
  });

  it('goes on behind a failure, also of an action that throws at once', async () => {
    const order = new PathOrder();
    const failing = order.run(writes('/a'), () => {
      throw new Error('at once');
    });
    const next = order.run(writes('/a'), () => Promise.resolve('next'));
    await expect(failing).rejects.toThrow('at once');
    expect(await next).toBe('next');
  });

  it('takes little memory when thousands wait for each other', async () => {
    const order = new PathOrder();
    let begin: () => void = () => {};
    const first = order.run(writes('/a'), () => new Promise<void>((resolve) => (begin = resolve)));
    const before = process.memoryUsage().heapUsed;
    const ran: number[] = [];
    const all = Array.from({ length: 4000 }, (_, index) =>
      order.run(index % 3 === 0 ? reads('/a') : writes(`/a/${index % 2}`), async () => void ran.push(index)),
    );
    // Each waits for a few thousand others: a list of them has millions of entries.
    expect((process.memoryUsage().heapUsed - before) / 4000).toBeLessThan(8 * 1024);
    begin();
    await Promise.all([first, ...all]);
    expect(ran.toSorted((one, other) => one - other)).toEqual(Array.from(all.keys()));
  });
});
