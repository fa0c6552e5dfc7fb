import { expect, test } from 'vitest';
import { describeSeed, seededRandom } from './random.js';

const draw = (seed: number | string): number[] => {
  const random = seededRandom(seed);
  return Array.from({ length: 20 }, () => random.next());
};

test('equal seeds give equal numbers, other seeds others', () => {
  expect(draw(42)).toEqual(draw(42));
  expect(draw('a')).toEqual(draw('a'));
  expect(draw(42)).not.toEqual(draw(43));
  expect(draw(1)).not.toEqual(draw('1'));
});

test('numbers stay in range and spread over it', () => {
  const random = seededRandom('range');
  const counts = new Map<number, number>();
  for (let round = 0; round < 6000; round += 1) {
    const number = random.integer(6);
    counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  expect(new Set(counts.keys())).toEqual(new Set([0, 1, 2, 3, 4, 5]));
  for (const count of counts.values()) expect(count).toBeGreaterThan(800);
  expect(() => random.integer(0)).toThrow(RangeError);
  expect(() => random.integer(1.5)).toThrow(RangeError);
});

test('a fork depends on seed and label, not on what was drawn before', () => {
  const used = seededRandom(7);
  used.next();
  expect(used.fork('cuts').next()).toBe(seededRandom(7).fork('cuts').next());
  expect(used.fork('cuts').next()).not.toBe(used.fork('splits').next());
});

test('picks items of a list and refuses an empty one', () => {
  expect(['a', 'b']).toContain(seededRandom(1).pick(['a', 'b']));
  expect(() => seededRandom(1).pick([])).toThrow(RangeError);
});

test('describes a seed so that it can be pasted', () => {
  expect(describeSeed(42)).toBe('seed 42 (repeat with { seed: 42 })');
  expect(describeSeed('x')).toContain('{ seed: "x" }');
});
