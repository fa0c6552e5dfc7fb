import fc from 'fast-check';
import { expect, it } from 'vitest';
import { backoffMs, spentAttempts, STABLE_MS } from './backoff.js';

it('goes at once first, then under a bound that doubles from 50 ms to 2 s', () => {
  const bounds = Array.from({ length: 9 }, (_, attempt) => backoffMs(attempt, 1));
  expect(bounds).toEqual([0, 50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
});

it('spreads over the whole range below the bound', () => {
  fc.assert(
    fc.property(fc.nat(10_000), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, random) => {
      const delay = backoffMs(attempt, random);
      return delay >= 0 && delay < 2_000 && delay === backoffMs(attempt, 1) * random;
    }),
  );
});

it('forgets spent attempts only after a stable time', () => {
  expect(spentAttempts(7, STABLE_MS - 1)).toBe(7);
  expect(spentAttempts(7, STABLE_MS)).toBe(0);
});
