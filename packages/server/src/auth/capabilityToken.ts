/** One shared token, compared in constant time; the server keeps only its digest. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { type Authenticate, bearerToken, unauthorized } from './bearer.js';

/**
 * Takes `Authorization: Bearer TOKEN`. Give the token, whose blanks at both ends do not count, or its SHA-256 in 64 hex digits of
 * either case. An empty token and what is no such digest throw a RangeError.
 */
export function capabilityToken(token: string | { readonly sha256: string }): Authenticate {
  const expected = typeof token === 'string' ? digestOf(token.trim()) : parseDigest(token.sha256);
  return bearerToken((offered) =>
    timingSafeEqual(digestOf(offered), expected) ? { ok: true } : unauthorized('invalid websocket bearer token'),
  );
}

function digestOf(token: string): Buffer {
  if (token === '') throw new RangeError('the capability token is empty');
  return createHash('sha256').update(token, 'utf8').digest();
}

function parseDigest(text: string): Buffer {
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new RangeError('a SHA-256 digest has 64 hex digits');
  return Buffer.from(text, 'hex');
}
