import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PendingBytes } from './pendingBytes.js';

/** Lengths on both sides of what is joined and of a slab. */
const lengths = fc.oneof(fc.nat(40), fc.integer({ min: 8000, max: 8400 }), fc.constant(70_000));
const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('append' as const), length: lengths, times: fc.nat(12) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('drop' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('skip' as const), bytes: fc.nat(100) }) },
  ),
  { maxLength: 30 },
);

function patterned(position: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let index = 0; index < length; index += 1) bytes[index] = ((position + index) * 31) % 251;
  return bytes;
}

describe('PendingBytes', () => {
  it('gives back each chunk and each range, whatever was joined and dropped', () => {
    fc.assert(
      fc.property(steps, fc.double({ min: 0, max: 1, noNaN: true }), (taken, share) => {
        const pending = new PendingBytes();
        let chunks: { position: number; length: number }[] = [];
        let dropped = 0;
        for (const step of taken) {
          if (step.kind === 'append') {
            for (let n = 0; n < step.times; n += 1) {
              chunks.push({ position: pending.endPosition, length: step.length });
              pending.append(patterned(pending.endPosition, step.length));
            }
          } else {
            const end = pending.endPosition;
            dropped = step.kind === 'drop' ? Math.floor(dropped + (end - dropped) * step.share) : end + step.bytes;
            pending.dropBelow(dropped);
            chunks = chunks.filter(({ position, length }) => position + length > dropped);
          }
        }
        for (const { position, length } of chunks) {
          expect(Buffer.compare(pending.chunk(position, length), patterned(position, length))).toBe(0);
        }
        const span = Math.floor((pending.endPosition - dropped) * share);
        expect(Buffer.compare(Buffer.concat(pending.from(dropped, span)), patterned(dropped, span))).toBe(0);
      }),
      { numRuns: 100 },
    );
  });

  it('joins a flood of small chunks into few pieces', () => {
    const pending = new PendingBytes();
    for (let n = 0; n < 100_000; n += 1) pending.append(new Uint8Array(10));
    expect(pending.from(0, 1_000_000).length).toBeLessThan(20);
  });
});
