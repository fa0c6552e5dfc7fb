import { createHmac } from 'node:crypto';
import { SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { signedToken } from './signedToken.js';

const SECRET = '0123456789abcdef0123456789abcdef';
const NOW_MS = 1_800_000_000_999;
const EXP = 1_800_000_060;
const ok = { ok: true };
const invalid = { ok: false, status: 401, body: 'invalid websocket jwt' };

const authenticate = signedToken(
  SECRET,
  { issuer: undefined, audience: undefined, maxClockSkewSeconds: 0 },
  () => NOW_MS,
);
const judge = (token: string): unknown => authenticate({ authorization: `Bearer ${token}` });

function sign(header: object, payload: string | Buffer, { key = SECRET, hash = 'sha256' } = {}): string {
  const text = [JSON.stringify(header), payload].map((part) => Buffer.from(part).toString('base64url')).join('.');
  return `${text}.${createHmac(hash, key).update(text).digest('base64url')}`;
}
const claims = JSON.stringify({ exp: EXP });

describe('a signed token', () => {
  it('lets its bearer in, whoever made it', async () => {
    const made = await new SignJWT({ exp: EXP }).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(SECRET));
    expect(await judge(made)).toEqual(ok);
    expect(await judge(sign({ alg: 'HS256', typ: 'at+jwt', kid: 'k' }, claims))).toEqual(ok);
  });

  it.each<[string, string]>([
    ['another key', sign({ alg: 'HS256' }, claims, { key: 'f'.repeat(32) })],
    ['another algorithm of the same key', sign({ alg: 'HS512' }, claims, { hash: 'sha512' })],
    ['an algorithm that is not the one used', sign({ alg: 'RS256' }, claims)],
    ['no algorithm', `${sign({ alg: 'none' }, claims).split('.').slice(0, 2).join('.')}.`],
    ['a demand in its header that nobody here knows', sign({ alg: 'HS256', crit: ['x'], x: 1 }, claims)],
    ['a payload that is not JSON', sign({ alg: 'HS256' }, '{')],
    ['a payload that is not UTF-8', sign({ alg: 'HS256' }, Buffer.from([0xff, 0xfe]))],
    ['a byte too much', `${sign({ alg: 'HS256' }, claims)}=`],
    ['three parts that are nothing', 'a.b.c'],
    ['one part', 'abc'],
    ['another word behind it', `${sign({ alg: 'HS256' }, claims)} x`],
  ])('is invalid with %s', async (_what, token) => {
    expect(await judge(token)).toEqual(invalid);
  });

  it('is held against its claims', async () => {
    expect(await judge(sign({ alg: 'HS256' }, JSON.stringify({ exp: 1_799_999_999 })))).toEqual({
      ...invalid,
      body: 'expired websocket jwt',
    });
  });

  it('has to be there', async () => {
    expect(await authenticate({})).toEqual({ ...invalid, body: 'missing websocket bearer token' });
    expect(await authenticate({ authorization: 'Basic x' })).toEqual({
      ...invalid,
      body: 'invalid authorization header',
    });
  });

  it('is not checked with a secret that could be guessed', () => {
    const expected = { issuer: undefined, audience: undefined, maxClockSkewSeconds: 0 };
    expect(() => signedToken('x'.repeat(31), expected)).toThrow('at least 32 bytes');
    expect(() => signedToken('é'.repeat(16), expected)).not.toThrow();
  });
});
