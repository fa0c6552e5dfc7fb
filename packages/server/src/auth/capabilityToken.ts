/** One shared token, compared in constant time; the server keeps only its digest. */
import { createHash, timingSafeEqual } from 'node:crypto';

export type AuthResult = { readonly ok: true } | { readonly ok: false; readonly status: number; readonly body: string };

/** Decides by the headers of an upgrade request who gets in. */
export type Authenticate = (headers: {
  readonly authorization?: string | undefined;
}) => AuthResult | Promise<AuthResult>;

const refused = (body: string): AuthResult => ({ ok: false, status: 401, body });

/** Takes `Authorization: Bearer TOKEN`; the scheme's case and blanks around the token do not matter. Empty tokens throw. */
export function capabilityToken(token: string): Authenticate {
  if (token.trim() === '') throw new RangeError('the capability token is empty');
  const expected = digest(token.trim());
  return ({ authorization }) => {
    if (authorization === undefined) return refused('missing websocket bearer token');
    const offered = /^bearer[ \t]+(\S.*)$/i.exec(authorization.trim())?.[1];
    if (offered === undefined) return refused('invalid authorization header');
    return timingSafeEqual(digest(offered.trim()), expected) ? { ok: true } : refused('invalid websocket bearer token');
  };
}

const digest = (text: string): Buffer => createHash('sha256').update(text, 'utf8').digest();
