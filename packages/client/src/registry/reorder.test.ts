import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstSeqOf, type GapEvent, lastSeqOf, type OutputEvent, type ProcessEvent } from '../events.js';
import { Reorder } from './reorder.js';

const output = (seq: number, size = 1): OutputEvent => ({
  type: 'output',
  seq,
  stream: 'stdout',
  bytes: new Uint8Array(size),
});
const gap = (fromSeq: number, throughSeq: number): GapEvent => ({ type: 'gap', fromSeq, throughSeq });

function releasedBy(reorder: Reorder, events: readonly ProcessEvent[]): ProcessEvent[] {
  return events.flatMap((event) => {
    const accepted = reorder.accept(event);
    return accepted.kind === 'released' ? accepted.events : [];
  });
}

it('releases in order what arrives shuffled, and drops doubles', () => {
  const reorder = new Reorder();
  expect(reorder.accept(output(3))).toEqual({ kind: 'held' });
  expect(reorder.accept(output(3))).toEqual({ kind: 'duplicate' });
  expect(reorder.accept(output(2))).toEqual({ kind: 'held' });
  expect(reorder.hasHole).toBe(true);
  expect(releasedBy(reorder, [output(1)]).map(firstSeqOf)).toEqual([1, 2, 3]);
  expect(reorder.accept(output(2))).toEqual({ kind: 'duplicate' });
  expect(reorder.hasHole).toBe(false);
});

it('keeps the first event of a number', () => {
  const reorder = new Reorder();
  const first = output(2, 1);
  reorder.accept(first);
  reorder.accept(output(2, 9));
  expect(releasedBy(reorder, [output(1)])[1]).toBe(first);
});

it('begins behind its cursor', () => {
  const reorder = new Reorder(10);
  expect(reorder.accept(output(10)).kind).toBe('duplicate');
  expect(reorder.accept(output(11)).kind).toBe('released');
});

it('takes nothing after the close', () => {
  const reorder = new Reorder();
  expect(reorder.accept({ type: 'closed', seq: 1 }).kind).toBe('released');
  expect(reorder.accept(output(2)).kind).toBe('duplicate');
});

it('drops what passes its bounds, always takes what fills the hole, and remembers that more exists', () => {
  const reorder = new Reorder(0, { events: 2, bytes: 100 });
  expect(reorder.accept(output(3, 60)).kind).toBe('held');
  expect(reorder.accept(output(4, 60)).kind).toBe('overflow');
  expect(reorder.accept(output(5, 1)).kind).toBe('held');
  expect(reorder.accept(output(6, 1)).kind).toBe('overflow');
  expect(releasedBy(reorder, [output(1, 1_000), output(2)]).map(firstSeqOf)).toEqual([1, 2, 3]);
  expect(reorder.hasHole).toBe(true);
});

describe('a gap', () => {
  it('counts as the events it covers', () => {
    const reorder = new Reorder();
    reorder.accept(output(5));
    expect(releasedBy(reorder, [gap(1, 4)])).toEqual([gap(1, 4), output(5)]);
  });

  it('is cut to what was not released yet', () => {
    const reorder = new Reorder(2);
    expect(releasedBy(reorder, [{ ...gap(1, 4), bytes: 7 }])).toEqual([gap(3, 4)]);
    expect(reorder.accept(gap(1, 4)).kind).toBe('duplicate');
  });

  it('gives way to events that arrived although the server lost them', () => {
    const reorder = new Reorder();
    reorder.accept(output(3));
    expect(releasedBy(reorder, [gap(1, 5)])).toEqual([gap(1, 2), output(3), gap(4, 5)]);
  });

  it('waits behind a hole like any event', () => {
    const reorder = new Reorder();
    expect(reorder.accept(gap(2, 4)).kind).toBe('held');
    expect(releasedBy(reorder, [output(1)])).toEqual([output(1), gap(2, 4)]);
  });
});

it('equals sort and dedupe for any order of arrival, doubles and gaps included', () => {
  const arrivals = fc.array(
    fc.oneof(
      fc.integer({ min: 1, max: 40 }).map((seq): ProcessEvent => output(seq)),
      fc.tuple(fc.integer({ min: 1, max: 40 }), fc.nat(4)).map(([from, more]): ProcessEvent => gap(from, from + more)),
    ),
    { maxLength: 120 },
  );
  fc.assert(
    fc.property(arrivals, (events) => {
      const reorder = new Reorder();
      const released = releasedBy(reorder, events);
      // No number twice, none left out, in order.
      let last = 0;
      for (const event of released) {
        expect(firstSeqOf(event)).toBe(last + 1);
        last = lastSeqOf(event);
      }
      expect(reorder.last).toBe(last);
      // Everything up to the first number nobody has sent.
      const sent = new Set(events.flatMap((event) => range(firstSeqOf(event), lastSeqOf(event))));
      let reachable = 0;
      while (sent.has(reachable + 1)) reachable += 1;
      expect(last).toBe(reachable);
    }),
  );
});

it('never holds more than its bounds', () => {
  const bounds = { events: 8, bytes: 64 };
  const arrivals = fc.array(fc.tuple(fc.integer({ min: 2, max: 60 }), fc.nat(40)), { maxLength: 100 });
  fc.assert(
    fc.property(arrivals, (events) => {
      const reorder = new Reorder(0, bounds);
      for (const [seq, size] of events) {
        reorder.accept(output(seq, size));
        expect(reorder.heldEvents).toBeLessThanOrEqual(bounds.events);
        expect(reorder.heldBytes).toBeLessThanOrEqual(bounds.bytes);
      }
    }),
  );
});

function range(from: number, through: number): number[] {
  return Array.from({ length: through - from + 1 }, (_, index) => from + index);
}
