import { Buffer } from 'node:buffer';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBase64Codec, decodeBase64, encodeBase64 } from './base64.js';

const codecs = [
  ['with Buffer', createBase64Codec(Buffer)],
  ['without Buffer', createBase64Codec(undefined)],
] as const;

/** Both sides of the length from which on the host decodes. */
const bytes = fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.uint8Array({ minLength: 250, maxLength: 400 }));

describe.each(codecs)('base64 %s', (_, codec) => {
  it('gives back any bytes', () => {
    fc.assert(
      fc.property(bytes, (input) => {
        expect(codec.decodeBase64(codec.encodeBase64(input))).toStrictEqual({ ok: true, bytes: input });
      }),
    );
  });

  it('spells bytes as Buffer does', () => {
    fc.assert(
      fc.property(bytes, (input) => {
        expect(codec.encodeBase64(input)).toBe(Buffer.from(input).toString('base64'));
      }),
    );
  });

  it('encodes views and more than one step of bytes', () => {
    const large = Uint8Array.from({ length: 100_001 }, (__, index) => (index * 7919) % 251);
    const view = large.subarray(1, 90_001);
    const text = codec.encodeBase64(view);
    expect(text).toBe(Buffer.from(view).toString('base64'));
    expect(codec.decodeBase64(text)).toStrictEqual({ ok: true, bytes: view.slice() });
  });

  it('takes exactly one spelling, long or short', () => {
    const symbols = fc.constantFrom(...'ABQRYZaz059+/==-_ \n*é'.split(''));
    fc.assert(
      fc.property(fc.array(symbols, { maxLength: 9 }), fc.constantFrom(0, 100, 101), (parts, quads) => {
        const text = 'AAAA'.repeat(quads) + parts.join('');
        const isStrict = Buffer.from(text, 'base64').toString('base64') === text;
        expect(codec.decodeBase64(text).ok).toBe(isStrict);
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ['*', 'Invalid symbol 42, offset 0.'],
    ['*AAA', 'Invalid symbol 42, offset 0.'],
    ['AA-_', 'Invalid symbol 45, offset 2.'],
    ['AAAA\n', 'Invalid symbol 10, offset 4.'],
    ['AAéA', 'Invalid symbol 195, offset 2.'],
    ['YQ==YQ==', 'Invalid symbol 61, offset 2.'],
    ['A===', 'Invalid symbol 61, offset 1.'],
    ['AAAA=', 'Invalid symbol 61, offset 4.'],
    ['AA=A', 'Invalid symbol 61, offset 2.'],
    ['YQ', 'Invalid padding'],
    ['YQ=', 'Invalid padding'],
    ['YWI', 'Invalid padding'],
    ['A', 'Invalid input length: 1'],
    ['AAAAA', 'Invalid input length: 5'],
    ['YR==', 'Invalid last symbol 82, offset 1.'],
    ['YWJ=', 'Invalid last symbol 74, offset 2.'],
  ])('refuses %j', (text, detail) => {
    expect(codec.decodeBase64(text)).toStrictEqual({ ok: false, detail });
  });
});

describe('the codec of this host', () => {
  it('gives bytes that own their memory', () => {
    for (const length of [0, 1, 100, 1000, 10_000]) {
      const result = decodeBase64(encodeBase64(new Uint8Array(length).fill(7)));
      expect(result.ok && result.bytes.constructor).toBe(Uint8Array);
      expect(result.ok && result.bytes.buffer.byteLength).toBe(length);
    }
  });
});
