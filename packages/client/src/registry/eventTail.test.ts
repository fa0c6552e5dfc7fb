import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { lastSeqOf, type OutputEvent, type ProcessEvent } from '../events.js';
import { EventTail } from './eventTail.js';

const output = (seq: number, size = 1): OutputEvent => ({
  type: 'output',
  seq,
  stream: 'stdout',
  bytes: new Uint8Array(size),
});

it('gives the event after a cursor until there is none', () => {
  const tail = new EventTail(0, 10_000);
  tail.append(output(1));
  tail.append(output(2));
  expect(tail.after(0)).toEqual({ kind: 'event', event: output(1) });
  expect(tail.after(1)).toEqual({ kind: 'event', event: output(2) });
  expect(tail.after(2)).toEqual({ kind: 'end' });
});

it('drops the oldest at its bound and says where it begins', () => {
  const tail = new EventTail(0, 2_000);
  for (let seq = 1; seq <= 3; seq++) tail.append(output(seq, 800));
  expect(tail.bytes).toBeLessThanOrEqual(2_000);
  expect(tail.after(0)).toEqual({ kind: 'evicted', firstSeq: 2 });
  expect(tail.after(1)).toMatchObject({ kind: 'event', event: { seq: 2 } });
});

it('keeps the last event however large it is', () => {
  const tail = new EventTail(0, 10);
  tail.append(output(1, 1_000));
  expect(tail.after(0)).toMatchObject({ kind: 'event', event: { seq: 1 } });
});

it('cuts a gap the cursor stands in', () => {
  const tail = new EventTail(0, 10_000);
  tail.append({ type: 'gap', fromSeq: 1, throughSeq: 9 });
  tail.append(output(10));
  expect(tail.after(4)).toEqual({ kind: 'event', event: { type: 'gap', fromSeq: 5, throughSeq: 9 } });
  expect(tail.after(9)).toMatchObject({ event: { seq: 10 } });
});

it('finds every event from every cursor, gaps and evictions included', () => {
  const sizes = fc.array(fc.record({ span: fc.integer({ min: 1, max: 4 }), size: fc.nat(60) }), {
    maxLength: 3_000,
    size: 'max',
  });
  fc.assert(
    fc.property(sizes, (steps) => {
      const tail = new EventTail(0, 20_000);
      const all: ProcessEvent[] = [];
      for (const { span, size } of steps) {
        const next = tail.lastSeq + 1;
        const event: ProcessEvent =
          span === 1 ? output(next, size) : { type: 'gap', fromSeq: next, throughSeq: next + span - 1 };
        tail.append(event);
        all.push(event);
      }
      let cursor = 0;
      for (const event of all) {
        const found = tail.after(cursor);
        if (found.kind === 'evicted') expect(found.firstSeq).toBeGreaterThan(cursor + 1);
        else expect(found).toEqual({ kind: 'event', event });
        cursor = lastSeqOf(event);
      }
      expect(tail.after(cursor)).toEqual({ kind: 'end' });
    }),
    { numRuns: 20 },
  );
});

it('keeps no bytes of what it has dropped', async () => {
  const tail = new EventTail(0, 10_000);
  const refs = Array.from({ length: 50 }, (_, index) => {
    const event = output(index + 1, 1_000);
    tail.append(event);
    return new WeakRef(event);
  });
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // A reference that was just made lives to the end of its turn.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  const alive = refs.filter((ref) => ref.deref() !== undefined).length;
  expect(alive).toBeLessThanOrEqual(10);
  expect(tail.lastSeq).toBe(50);
});
