import { describe, expect, it } from 'vitest';
import { capabilityToken } from './capabilityToken.js';

describe('a capability token', () => {
  const authenticate = capabilityToken(' s3cret-token\n');

  it.each(['Bearer s3cret-token', 'bearer s3cret-token', 'BEARER \t s3cret-token  '])(
    'is taken from %j',
    (authorization) => {
      expect(authenticate({ authorization })).toEqual({ ok: true });
    },
  );

  it.each([
    [undefined, 'missing websocket bearer token'],
    ['', 'invalid authorization header'],
    ['Bearer', 'invalid authorization header'],
    ['Bearer ', 'invalid authorization header'],
    ['Bearers3cret-token', 'invalid authorization header'],
    ['Basic s3cret-token', 'invalid authorization header'],
    ['Bearer s3cret-toke', 'invalid websocket bearer token'],
    ['Bearer s3cret-token2', 'invalid websocket bearer token'],
    ['Bearer S3CRET-TOKEN', 'invalid websocket bearer token'],
    ['Bearer s3cret-token s3cret-token', 'invalid websocket bearer token'],
  ])('is not taken from %j', (authorization, body) => {
    expect(authenticate({ authorization })).toEqual({ ok: false, status: 401, body });
  });

  it.each(['', '  \n'])('may not be empty: %j', (token) => {
    expect(() => capabilityToken(token)).toThrow(RangeError);
  });
});
