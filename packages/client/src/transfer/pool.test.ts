import { describe, expect, it } from 'vitest';
import { runPool } from './pool.js';

describe('runPool', () => {
  it('runs every job once, no more at a time than it may', async () => {
    let [running, most] = [0, 0];
    const done: number[] = [];
    await runPool([1, 2, 3, 4, 5, 6, 7], 3, async (job) => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      done.push(job);
      running -= 1;
    });
    expect(done.sort((one, other) => one - other)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(most).toBe(3);
  });

  it('begins no job after a failure, tells the others to stop, and throws the first one', async () => {
    const begun: number[] = [];
    const stops: unknown[] = [];
    let end: (() => void) | undefined;
    const other = new Promise<void>((_resolve, reject) => (end = () => reject(new Error('stopped'))));
    const run = async (job: number): Promise<void> => {
      begun.push(job);
      if (job === 1) throw new Error('first');
      await other;
    };
    const pool = runPool([1, 2, 3], 2, run, (error) => {
      stops.push(error);
      end?.();
    });
    await expect(pool).rejects.toThrow('first');
    expect(begun).toEqual([1, 2]);
    expect(stops).toHaveLength(1);
  });
});
