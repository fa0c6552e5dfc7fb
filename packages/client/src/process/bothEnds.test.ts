import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BothEnds } from './bothEnds.js';

const bytesOf = (text: string): number => new TextEncoder().encode(text).byteLength;

describe('the two ends of a text', () => {
  it('are all of it within the bound, and else its beginning and its end in whole characters, with the exact rest counted', () => {
    // Of 1 to 4 bytes, the one that decoders like to drop, and long pieces.
    const piece = fc.oneof(
      fc.constantFrom('a', '\n', 'é', '€', '😀', '\uFEFF'),
      fc.string({ unit: 'grapheme', maxLength: 40 }),
    );
    const lone = /\p{Surrogate}/u;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), fc.integer({ min: 0, max: 80 }), (pieces, maxBytes) => {
        fc.pre(!pieces.some((text) => lone.test(text)));
        const ends = new BothEnds(maxBytes);
        for (const text of pieces) ends.add(text);
        const whole = pieces.join('');
        const total = bytesOf(whole);
        expect(ends.isEmpty).toBe(total === 0);
        const { text, omittedBytes } = ends.take();
        if (total <= maxBytes) {
          expect({ text, omittedBytes }).toEqual({ text: whole, omittedBytes: 0 });
          return;
        }
        const kept = total - omittedBytes;
        expect(kept).toBeLessThanOrEqual(maxBytes);
        // A character has at most 4 bytes, and there are two borders.
        expect(kept).toBeGreaterThanOrEqual(maxBytes - 2 * 3);
        const note = `\n[${omittedBytes} bytes left out]\n`;
        const isSplit = Array.from({ length: text.length + 1 }, (_, at) => at).some((at) => {
          const [head, tail] = [text.slice(0, at), text.slice(at + note.length)];
          return (
            text.slice(at).startsWith(note) &&
            whole.startsWith(head) &&
            whole.endsWith(tail) &&
            bytesOf(head) + bytesOf(tail) === kept
          );
        });
        expect(isSplit, text).toBe(true);
        expect(ends.take()).toEqual({ text: '', omittedBytes: 0 });
      }),
      { numRuns: 1_000 },
    );
  });

  it('hold their bound in memory however small the pieces are', () => {
    const ends = new BothEnds(10);
    for (let at = 0; at < 100_000; at++) ends.add(String(at % 10));
    expect(ends.take()).toEqual({ text: '01234\n[99990 bytes left out]\n56789', omittedBytes: 99_990 });
  });

  it('begin anew after each look', () => {
    const ends = new BothEnds(4);
    ends.add('abcdef');
    expect(ends.take().text).toBe('ab\n[2 bytes left out]\nef');
    ends.add('gh');
    expect(ends.take()).toEqual({ text: 'gh', omittedBytes: 0 });
  });
});
