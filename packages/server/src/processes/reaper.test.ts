import { expect, it } from 'vitest';
import { hostClock } from '../clock.js';
import { Reaper } from './reaper.js';

it('tells of a sweep that failed, and closes', async () => {
  const told: unknown[] = [];
  const refused = new Error('no list');
  const reaper = new Reaper({
    clock: hostClock,
    life: 'abcdef0123456789',
    guard: false,
    onUnguarded: () => {},
    onSweepFailed: (error) => told.push(error),
    sweepLife: () => Promise.reject(refused),
  });
  reaper.sweep('abcdef0123456789');
  await reaper.close();
  expect(told).toEqual([refused]);
});
