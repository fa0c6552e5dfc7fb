import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeUtf8, LineDecoder, type LineResult } from './framing.js';

const encoder = new TextEncoder();

/** Lines as text and `tooLong` as its limit. */
function describeResults(results: readonly LineResult[]): (string | number | undefined)[] {
  return results.map((result) => (result.kind === 'line' ? decodeUtf8(result.line) : result.limitBytes));
}

function decodeAll(chunks: readonly Uint8Array[], limitBytes?: number): (string | number | undefined)[] {
  const decoder = new LineDecoder(limitBytes);
  const results = chunks.flatMap((chunk) => [...decoder.push(chunk)]);
  return describeResults([...results, ...decoder.end()]);
}

const decodeText = (text: string, limitBytes?: number): (string | number | undefined)[] =>
  decodeAll([encoder.encode(text)], limitBytes);

describe('LineDecoder', () => {
  it('cuts at LF and drops one CR before it', () => {
    expect(decodeText('{"a":1}\n{"b":2}\r\n c\r\r\n')).toStrictEqual(['{"a":1}', '{"b":2}', ' c\r']);
  });

  it('skips blank lines', () => {
    expect(decodeText('\n\r\n  \t \na\n \r\n\v\n')).toStrictEqual(['a']);
  });

  it('gives the last line without LF at the end, once', () => {
    const decoder = new LineDecoder();
    expect(decoder.push(encoder.encode('a\nb'))).toHaveLength(1);
    expect(describeResults(decoder.end())).toStrictEqual(['b']);
    expect(decoder.end()).toStrictEqual([]);
    expect(decoder.push(encoder.encode('c\n'))).toStrictEqual([]);
  });

  it('gives a line that lies within a chunk without a copy', () => {
    const chunk = encoder.encode('abc\n');
    const [result] = new LineDecoder().push(chunk);
    expect(result?.kind === 'line' && result.line.buffer === chunk.buffer).toBe(true);
  });

  it('takes a line of the limit and reports one more byte before the line ends', () => {
    const decoder = new LineDecoder(3);
    expect(describeResults(decoder.push(encoder.encode('abc\nde')))).toStrictEqual(['abc']);
    expect(describeResults(decoder.push(encoder.encode('f')))).toStrictEqual([]);
    expect(describeResults(decoder.push(encoder.encode('g')))).toStrictEqual([3]);
  });

  it('is dead after a line that is too long', () => {
    const decoder = new LineDecoder(3);
    expect(describeResults(decoder.push(encoder.encode('a\nbcde\nf\n')))).toStrictEqual(['a', 3]);
    expect(decoder.push(encoder.encode('g\n'))).toStrictEqual([]);
    expect(decoder.end()).toStrictEqual([]);
  });

  it('does not lend one line the memory of another', () => {
    const decoder = new LineDecoder();
    decoder.push(encoder.encode('ab'));
    const [first] = decoder.push(encoder.encode('cd\nxx'));
    const [second] = decoder.push(encoder.encode('yy\n'));
    expect(describeResults([first, second].filter((result) => result !== undefined))).toStrictEqual(['abcd', 'xxyy']);
  });

  it('is blind to where the input is split', () => {
    const bytes = fc
      .array(fc.constantFrom('\n', '\r', '\r\n', ' ', 'a', 'é', '😀', '{"id":1}'), { maxLength: 60 })
      .map((parts) => encoder.encode(parts.join('')));
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(200)), fc.integer({ min: 1, max: 40 }), (input, cuts, limitBytes) => {
        const points = [0, ...cuts.filter((cut) => cut < input.length).sort((a, b) => a - b), input.length];
        const pieces = points.slice(1).map((to, index) => input.slice(points[index], to));
        expect(decodeAll(pieces, limitBytes)).toStrictEqual(decodeAll([input], limitBytes));
        const single = Array.from(input, (byte) => Uint8Array.of(byte));
        expect(decodeAll(single, limitBytes)).toStrictEqual(decodeAll([input], limitBytes));
      }),
    );
  });

  it('takes a long line in single bytes in linear time', () => {
    const decoder = new LineDecoder();
    const byte = Uint8Array.of(0x61);
    const start = performance.now();
    for (let count = 0; count < 500_000; count++) decoder.push(byte);
    expect(decoder.end().map((result) => result.kind === 'line' && result.line.length)).toStrictEqual([500_000]);
    expect(performance.now() - start).toBeLessThan(5000);
  });
});

describe('decodeUtf8', () => {
  it('gives back any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(decodeUtf8(encoder.encode(text))).toBe(text);
      }),
    );
  });

  it('refuses what is not UTF-8, and goes on with the next message', () => {
    for (const bytes of [[0xff], [0x61, 0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
      expect(decodeUtf8(Uint8Array.from(bytes))).toBeUndefined();
    }
    expect(decodeUtf8(Uint8Array.of(0xc3, 0xa9))).toBe('é');
  });

  it('keeps a byte order mark', () => {
    expect(decodeUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61))).toBe('\uFEFFa');
  });
});
