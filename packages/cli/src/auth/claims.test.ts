import { describe, expect, it } from 'vitest';
import { type ExpectedClaims, refusalOf } from './claims.js';

const NOW = 1_800_000_000;
const anyone: ExpectedClaims = { issuer: undefined, audience: undefined, maxClockSkewSeconds: 30 };
const known: ExpectedClaims = { issuer: 'me', audience: 'you', maxClockSkewSeconds: 30 };
const valid = { exp: NOW + 60, iss: 'me', aud: 'you' };

describe('the claims of a signed token', () => {
  it.each<[string, object]>([
    ['a time to live', { exp: NOW + 1 }],
    ['a time that is over by no more than the skew', { exp: NOW - 30 }],
    ['the last time there is', { exp: 2 ** 63 }],
    ['a beginning within the skew', { exp: NOW + 60, nbf: NOW + 30 }],
    ['null in the place of what may be absent', { exp: NOW + 60, nbf: null, iss: null, aud: null }],
    ['an issue time ahead, or of another type', { exp: NOW + 60, iat: 'tomorrow' }],
    ['no audience among none', { exp: NOW + 60, aud: [] }],
  ])('let in with %s', (_what, claims) => {
    expect(refusalOf(claims, anyone, NOW)).toBeUndefined();
  });

  it.each<[string, unknown]>([
    ['no claims', null],
    ['a list', [1]],
    ['no end', {}],
    ['an end that is null', { exp: null }],
    ['an end that is text', { exp: String(NOW + 60) }],
    ['an end between two seconds', { exp: NOW + 60.5 }],
    ['an end beyond all clocks', { exp: 2 ** 64 }],
    ['a beginning that is text', { exp: NOW + 60, nbf: 'x' }],
    ['an issuer that is a number', { exp: NOW + 60, iss: 1 }],
    ['an audience that is a number', { exp: NOW + 60, aud: 1 }],
    ['an audience that is a number among others', { exp: NOW + 60, aud: ['you', 1] }],
  ])('are invalid with %s, also where nothing is expected of them', (_what, claims) => {
    expect(refusalOf(claims, anyone, NOW)).toBe('invalid websocket jwt');
  });

  it.each<[object, string | undefined]>([
    [{}, undefined],
    [{ aud: ['x', 'you'] }, undefined],
    [{ iss: undefined }, 'websocket jwt issuer mismatch'],
    [{ iss: 'Me' }, 'websocket jwt issuer mismatch'],
    [{ aud: undefined }, 'websocket jwt audience mismatch'],
    [{ aud: ['x'] }, 'websocket jwt audience mismatch'],
    [{ exp: NOW - 31 }, 'expired websocket jwt'],
    [{ nbf: NOW + 31 }, 'websocket jwt is not valid yet'],
  ])('are held against what is expected: %j', (changes, refusal) => {
    expect(refusalOf({ ...valid, ...changes }, known, NOW)).toBe(refusal);
  });

  it('tell the first of several faults: its end, its beginning, issuer, audience', () => {
    const wrong = { exp: NOW - 100, nbf: NOW + 100, iss: 'x', aud: 'x' };
    expect(refusalOf(wrong, known, NOW)).toBe('expired websocket jwt');
    expect(refusalOf({ ...wrong, exp: NOW }, known, NOW)).toBe('websocket jwt is not valid yet');
    expect(refusalOf({ ...wrong, exp: NOW, nbf: NOW }, known, NOW)).toBe('websocket jwt issuer mismatch');
  });

  it('are over at once without skew', () => {
    const strict = { ...anyone, maxClockSkewSeconds: 0 };
    expect(refusalOf({ exp: NOW }, strict, NOW)).toBeUndefined();
    expect(refusalOf({ exp: NOW - 1 }, strict, NOW)).toBe('expired websocket jwt');
    expect(refusalOf({ exp: NOW, nbf: NOW + 1 }, strict, NOW)).toBe('websocket jwt is not valid yet');
  });
});
