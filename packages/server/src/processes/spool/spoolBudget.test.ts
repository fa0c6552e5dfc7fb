import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SpoolBudget } from './spoolBudget.js';

describe('SpoolBudget', () => {
  it('takes nothing anywhere when one budget around it is used up', () => {
    const server = new SpoolBudget(100);
    const session = new SpoolBudget(80, server);
    const one = new SpoolBudget(60, session);
    const other = new SpoolBudget(60, session);
    expect(one.take(50)).toBe(true);
    expect(other.take(31)).toBe(false);
    expect([other.usedBytes, session.usedBytes, server.usedBytes]).toEqual([0, 50, 50]);
    expect(other.freeBytes).toBe(30);
    one.give(50);
    expect(other.take(31)).toBe(true);
  });

  it('refuses to be given what was not taken', () => {
    const budget = new SpoolBudget(10);
    expect(() => budget.give(1)).toThrow(RangeError);
  });

  it('never goes over a limit, and an outer budget is the sum of those within', () => {
    const step = fc.record({ at: fc.nat(3), bytes: fc.nat(40), take: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const server = new SpoolBudget(100);
        const sessions = [new SpoolBudget(70, server), new SpoolBudget(60, server)];
        const processes = [0, 1, 2, 3].map((index) => new SpoolBudget(40, sessions[index % 2]));
        const used = [0, 0, 0, 0];
        for (const { at, bytes, take } of steps) {
          if (take) used[at] = (used[at] ?? 0) + (processes[at]?.take(bytes) ? bytes : 0);
          else if (bytes <= (used[at] ?? 0)) {
            processes[at]?.give(bytes);
            used[at] = (used[at] ?? 0) - bytes;
          }
          const [a = 0, b = 0, c = 0, d = 0] = used;
          expect(processes.map(({ usedBytes }) => usedBytes)).toEqual(used);
          expect(sessions.map(({ usedBytes }) => usedBytes)).toEqual([a + c, b + d]);
          expect(server.usedBytes).toBe(a + b + c + d);
          for (const budget of [server, ...sessions, ...processes]) {
            expect(budget.usedBytes).toBeLessThanOrEqual(budget.limitBytes);
          }
        }
      }),
    );
  });
});
