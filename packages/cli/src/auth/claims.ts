/** Whether the claims of a signed token let its bearer in. Pure. */

export interface ExpectedClaims {
  /** Undefined: any, or none. */
  readonly issuer: string | undefined;
  /** Undefined: any, or none. */
  readonly audience: string | undefined;
  /** How far the clocks of both sides may be apart, in seconds. */
  readonly maxClockSkewSeconds: number;
}

export const INVALID_TOKEN = 'invalid websocket jwt';

/** Beyond this no clock counts, and other implementations cannot read the number. */
const MAX_SECONDS = 2 ** 63;

/** Why the bearer is refused; undefined lets it in. `now` in seconds since 1970. `iat` and what is unknown do not count. */
export function refusalOf(claims: unknown, expected: ExpectedClaims, now: number): string | undefined {
  if (typeof claims !== 'object' || claims === null || Array.isArray(claims)) return INVALID_TOKEN;
  const { exp, nbf, iss, aud } = claims as Readonly<Record<string, unknown>>;
  if (!isTime(exp)) return INVALID_TOKEN;
  if (!isAbsent(nbf) && !isTime(nbf)) return INVALID_TOKEN;
  if (!isAbsent(iss) && typeof iss !== 'string') return INVALID_TOKEN;
  const audiences = isAbsent(aud) ? [] : [aud].flat();
  if (!audiences.every((one) => typeof one === 'string')) return INVALID_TOKEN;
  const { issuer, audience, maxClockSkewSeconds } = expected;
  if (exp < now - maxClockSkewSeconds) return 'expired websocket jwt';
  if (!isAbsent(nbf) && nbf > now + maxClockSkewSeconds) return 'websocket jwt is not valid yet';
  if (issuer !== undefined && iss !== issuer) return 'websocket jwt issuer mismatch';
  if (audience !== undefined && !audiences.includes(audience)) return 'websocket jwt audience mismatch';
  return undefined;
}

const isTime = (value: unknown): value is number => Number.isInteger(value) && Math.abs(Number(value)) <= MAX_SECONDS;
const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null;
