/** Bearer tokens that somebody else signs with a secret the server shares (JWT, HS256). */
import { type Authenticate, bearerToken, unauthorized } from '@exec-server/server';
import { compactVerify, errors } from 'jose';
import { type ExpectedClaims, INVALID_TOKEN, refusalOf } from './claims.js';

/** No algorithm but this one: a token may not choose how it is checked. */
const ALGORITHM = 'HS256';
/** Three parts in base64url without padding; the library takes padding as well, which would give a token more than one text. */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** As many bytes as the digest of the algorithm has; fewer make the secret the weak side. */
const LEAST_SECRET_BYTES = 32;

/** A secret that is too short throws a RangeError. `now`: milliseconds since 1970. */
export function signedToken(secret: string, expected: ExpectedClaims, now: () => number = Date.now): Authenticate {
  const key = new TextEncoder().encode(secret);
  if (key.length < LEAST_SECRET_BYTES)
    throw new RangeError(`the secret must be at least ${LEAST_SECRET_BYTES} bytes, and it has ${key.length}`);
  return bearerToken(async (token) => {
    const claims = await signedClaims(token, key);
    const refusal = claims === undefined ? INVALID_TOKEN : refusalOf(claims.value, expected, Math.floor(now() / 1000));
    return refusal === undefined ? { ok: true } : unauthorized(refusal);
  });
}

/** What a token with the right signature says; undefined for any other. */
async function signedClaims(token: string, key: Uint8Array): Promise<{ readonly value: unknown } | undefined> {
  if (!TOKEN.test(token)) return undefined;
  try {
    const { payload } = await compactVerify(token, key, { algorithms: [ALGORITHM] });
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload)) };
  } catch (error) {
    // Of the token: not one, signed otherwise, or not JSON. Anything else is a fault of this program.
    if (error instanceof errors.JOSEError || error instanceof SyntaxError || error instanceof TypeError)
      return undefined;
    throw error;
  }
}
