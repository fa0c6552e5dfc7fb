import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Window, WindowBudget, type WindowShare } from './windowBudget.js';

class FakeWindow implements Window {
  weightBytes = 0;
  readonly #budget: WindowBudget;
  share: WindowShare;

  constructor(budget: WindowBudget) {
    this.#budget = budget;
    this.share = budget.share(this);
  }

  restart(): void {
    this.share.end();
    this.weightBytes = 0;
    this.share = this.#budget.share(this);
  }

  grow(bytes: number): void {
    this.weightBytes += bytes;
    this.share.changed();
  }

  shrinkTo(weightBytes: number): void {
    this.weightBytes = Math.min(this.weightBytes, weightBytes);
  }
}

describe('a budget of windows', () => {
  it('leaves them alone while they fit', () => {
    const budget = new WindowBudget(100);
    const [one, two] = [new FakeWindow(budget), new FakeWindow(budget)];
    one.grow(60);
    two.grow(40);
    expect([one.weightBytes, two.weightBytes, budget.usedBytes]).toEqual([60, 40, 100]);
  });

  it('has the one that holds most give way for the others', () => {
    const budget = new WindowBudget(100);
    const [large, small] = [new FakeWindow(budget), new FakeWindow(budget)];
    large.grow(80);
    small.grow(30);
    expect([large.weightBytes, small.weightBytes, budget.usedBytes]).toEqual([40, 30, 70]);
  });

  it('has a window give way to itself when it is alone', () => {
    const budget = new WindowBudget(100);
    const window = new FakeWindow(budget);
    window.grow(250);
    expect(window.weightBytes).toBeLessThanOrEqual(100);
  });

  it('takes back what a window that ended held', () => {
    const server = new WindowBudget(100);
    const session = new WindowBudget(100, server);
    const window = new FakeWindow(session);
    window.grow(50);
    window.share.end();
    window.grow(10);
    expect([session.usedBytes, server.usedBytes]).toEqual([0, 0]);
  });

  it('keeps to the limits of all budgets, and counts what is there, whatever happens', () => {
    const step = fc.tuple(fc.nat({ max: 5 }), fc.integer({ min: -50, max: 120 }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const server = new WindowBudget(200);
        const sessions = [new WindowBudget(120, server), new WindowBudget(120, server)];
        const windows = Array.from({ length: 6 }, (_, index) => new FakeWindow(sessions[index % 2] ?? server));
        for (const [which, bytes] of steps) {
          const window = windows[which];
          if (window === undefined) continue;
          if (bytes >= 0) window.grow(bytes);
          else window.restart();
          const held = (of: readonly FakeWindow[]): number => of.reduce((sum, { weightBytes }) => sum + weightBytes, 0);
          expect(server.usedBytes).toBe(held(windows));
          expect(server.usedBytes).toBeLessThanOrEqual(200);
          for (const [index, session] of sessions.entries()) {
            expect(session.usedBytes).toBe(held(windows.filter((_, at) => at % 2 === index)));
            expect(session.usedBytes).toBeLessThanOrEqual(120);
          }
        }
      }),
    );
  });
});
