import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byName, Smallest } from './smallest.js';

const named = (names: readonly string[]): { name: string }[] => names.map((name) => ({ name }));

describe('the smallest of many names', () => {
  it('are the first of all of them in order, and it is told whether there are more', () => {
    const names = fc.uniqueArray(fc.string({ unit: 'binary', maxLength: 6 }), { maxLength: 60 });
    fc.assert(
      fc.property(names, fc.integer({ min: 1, max: 20 }), (all, most) => {
        const smallest = new Smallest(most);
        for (const item of named(all)) smallest.offer(item);
        const { items, more } = smallest.take();
        expect(items).toEqual(named(all).sort(byName).slice(0, most));
        expect(more).toBe(all.length > most);
      }),
    );
  });

  it('are all, and nothing more, when there are exactly as many as asked for', () => {
    const smallest = new Smallest(2);
    for (const item of named(['b', 'a'])) smallest.offer(item);
    expect(smallest.take()).toEqual({ items: named(['a', 'b']), more: false });
  });

  it('compare by bytes: upper case before lower case, ASCII before the rest', () => {
    const smallest = new Smallest(4);
    for (const item of named(['\u00ff', 'a', 'Z', '-'])) smallest.offer(item);
    expect(smallest.take().items).toEqual(named(['-', 'Z', 'a', '\u00ff']));
  });
});
