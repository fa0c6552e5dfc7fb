import { expect, test } from 'vitest';
import { type FaultAction, FaultPlan, type FaultRule, hasMethod } from './faultPlan.js';

const planOf = (rules: readonly FaultRule[], seed = 1): FaultPlan<FaultAction> => new FaultPlan(rules, seed);

/** Byte counts at which a rule with random distances is due, on each of three connections. */
function cutPoints(seed: number): number[][] {
  const plan = planOf([{ when: { direction: 'down', aboutEveryBytes: 1000 }, do: 'cut' }], seed);
  return Array.from({ length: 3 }, () => {
    const faults = plan.openConnection();
    const points: number[] = [];
    for (let at = 0; points.length < 5; ) {
      const step = faults.room('down');
      at += step;
      if (faults.bytesPassed('down', step).length > 0) points.push(at);
    }
    return points;
  });
}

test('a byte count is due at that byte, once in all, in its direction only', () => {
  const plan = planOf([{ when: { direction: 'up', afterBytes: 10 }, do: 'cut' }]);
  const faults = plan.openConnection();
  expect(faults.room('down')).toBe(Number.POSITIVE_INFINITY);
  expect(faults.room('up')).toBe(10);
  expect(faults.bytesPassed('up', 9)).toEqual([]);
  expect(faults.room('up')).toBe(1);
  expect(faults.bytesPassed('up', 1)).toEqual([{ type: 'cut' }]);
  expect(faults.room('up')).toBe(Number.POSITIVE_INFINITY);
  expect(plan.openConnection().room('up')).toBe(Number.POSITIVE_INFINITY);
});

test('a rule with times repeats, on one connection and on the next', () => {
  const plan = planOf([{ when: { direction: 'up', afterMessages: 2 }, do: 'silence', times: 3 }]);
  const first = plan.openConnection();
  const due = Array.from({ length: 4 }, () => first.afterMessage('up', undefined).length);
  expect(due).toEqual([0, 1, 0, 1]);
  const second = plan.openConnection();
  expect(Array.from({ length: 4 }, () => second.afterMessage('up', undefined).length)).toEqual([0, 1, 0, 0]);
});

test('a rule added later counts from then on', () => {
  const plan = planOf([]);
  const faults = plan.openConnection();
  faults.bytesPassed('down', 100);
  plan.add({ when: { direction: 'down', afterBytes: 5 }, do: 'cut' });
  expect(faults.room('down')).toBe(5);
});

test('the same seed gives the same cut points, another seed others', () => {
  expect(cutPoints(5)).toEqual(cutPoints(5));
  expect(cutPoints(5)).not.toEqual(cutPoints(6));
  const [first, second] = cutPoints(5);
  expect(first).not.toEqual(second);
});

test('message rules see text before and after, and only where they are wanted', () => {
  const plan = planOf([
    { when: { direction: 'down', beforeMessage: hasMethod('a') }, do: 'cut' },
    { when: { direction: 'down', afterMessage: hasMethod('b') }, do: { type: 'stall', direction: 'up' } },
  ]);
  const faults = plan.openConnection();
  expect(faults.inspects('up')).toBe(false);
  expect(faults.inspects('down')).toBe(true);
  expect(faults.beforeMessage('down', '{"method":"b"}')).toEqual([]);
  expect(faults.beforeMessage('down', '{"method":"a"}')).toEqual([{ type: 'cut' }]);
  expect(faults.afterMessage('down', undefined)).toEqual([]);
  expect(faults.afterMessage('down', '{"method":"b"}')).toEqual([{ type: 'stall', direction: 'up' }]);
  expect(faults.inspects('down')).toBe(false);
});

test('hasMethod takes requests and notifications and nothing else', () => {
  const isExit = hasMethod('process/exited');
  expect(isExit('{"jsonrpc":"2.0","method":"process\\/exited","params":{}}')).toBe(true);
  expect(isExit('{"result":{"method":"process/exited"}}')).toBe(false);
  expect(isExit('process/exited')).toBe(false);
  expect(isExit('null')).toBe(false);
});

test('refuses counts that can never be due', () => {
  expect(() => planOf([{ when: { direction: 'up', afterBytes: 0 }, do: 'cut' }])).toThrow(RangeError);
  expect(() => planOf([{ when: { direction: 'up', aboutEveryBytes: Number.NaN }, do: 'cut' }])).toThrow(RangeError);
});
