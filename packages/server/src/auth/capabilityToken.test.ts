import { createHash } from 'node:crypto';
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

  it.each([true, false])('may be given by its digest, in either case of the digits', (upper) => {
    const sha256 = createHash('sha256').update('s3cret-token').digest('hex');
    const byDigest = capabilityToken({ sha256: upper ? sha256.toUpperCase() : sha256 });
    expect(byDigest({ authorization: 'Bearer s3cret-token' })).toEqual({ ok: true });
    expect(byDigest({ authorization: `Bearer ${sha256}` })).toMatchObject({ body: 'invalid websocket bearer token' });
  });

  it.each(['', 'abc', 'g'.repeat(64), 'a'.repeat(65)])('is not given by %j as its digest', (sha256) => {
    expect(() => capabilityToken({ sha256 })).toThrow(RangeError);
  });
});
