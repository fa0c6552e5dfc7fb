import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeBase64 } from '../base64.js';
import { answerText, withPayload } from './answerText.js';

const textOf = (text: string | Uint8Array): string =>
  typeof text === 'string' ? text : new TextDecoder().decode(text);
const MOST = 1_000_000;

describe('an answer', () => {
  it('means the same with its payload laid in as without, whatever else is in it', () => {
    const rest = fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.jsonValue(), fc.constant(undefined)), {
      maxKeys: 4,
    });
    // Around the size from which on it is laid in.
    const size = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 12_000, max: 13_000 }));
    fc.assert(
      fc.property(rest, size, fc.oneof(fc.constant('1'), fc.constant('"a\\u00e9"')), (others, bytes, id) => {
        const chunk = encodeBase64(new Uint8Array(bytes).fill(bytes));
        const result = withPayload({ ...others, chunk }, 'chunk');
        const answer = answerText(id, result, MOST);
        if (!answer.fits) throw new Error('it fits');
        const isLaidIn = chunk.length >= 16 * 1024;
        expect(answer.text instanceof Uint8Array).toBe(isLaidIn);
        expect(JSON.parse(textOf(answer.text))).toEqual({
          id: JSON.parse(id),
          result: JSON.parse(JSON.stringify(result)),
        });
      }),
    );
  });

  it('is refused with the exact length of its result where that is too long', () => {
    for (const others of [{}, { eof: true }, { gone: undefined }]) {
      const result = { ...others, chunk: 'A'.repeat(20_000) };
      const { length } = JSON.stringify(result);
      for (const given of [result, withPayload({ ...result }, 'chunk')]) {
        expect(answerText('1', given, length).fits).toBe(true);
        expect(answerText('1', given, length - 1)).toEqual({ fits: false, length });
      }
    }
  });

  it('has no payload unless that is said', () => {
    expect(answerText('1', { chunk: '"'.repeat(20_000) }, MOST)).toMatchObject({
      fits: true,
      text: expect.any(String) as unknown,
    });
    expect(answerText('1', null, MOST)).toEqual({ fits: true, text: '{"id":1,"result":null}' });
  });
});
