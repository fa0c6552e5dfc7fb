import { describe, expect, it } from 'vitest';
import { MAX_JSON_VALUES } from '../limits.js';
import { refuseTooLarge } from './requestSize.js';

const refuse = (params: object, maxBytes?: number): unknown =>
  refuseTooLarge('process/start', params, JSON.stringify(params), maxBytes)?.limit;

describe('a request', () => {
  it('is sent while it has the bytes the other side takes, whatever its characters take', () => {
    expect(refuse({ text: 'x'.repeat(8_000) }, 10_000)).toBeUndefined();
    expect(refuse({ text: 'x'.repeat(9_500) }, 10_000)).toEqual({ bytes: 10_000 });
    expect(refuse({ text: 'é'.repeat(4_000) }, 10_000)).toBeUndefined();
    expect(refuse({ text: 'é'.repeat(4_600) }, 10_000)).toEqual({ bytes: 10_000 });
    expect(refuse({ text: '€'.repeat(3_000) }, 10_000)).toEqual({ bytes: 10_000 });
    expect(refuse({ text: '😀'.repeat(2_000) }, 10_000)).toBeUndefined();
  });

  it('is sent while it has the values the other side takes', () => {
    expect(refuse({ argv: Array.from({ length: MAX_JSON_VALUES - 10 }, () => 'xyz') })).toBeUndefined();
    expect(refuse({ argv: Array.from({ length: MAX_JSON_VALUES }, () => 'x') })).toEqual({ values: MAX_JSON_VALUES });
  });
});
