/** Who gets in by the bearer token of an upgrade request. */

/**
 * Whether a peer gets in. A refusal answers the upgrade with `status` and the text `body`, which the client sees in its
 * error.
 */
export type AuthResult = { readonly ok: true } | { readonly ok: false; readonly status: number; readonly body: string };

/**
 * Decides by the headers of an upgrade request who gets in; asked once a connection, before it counts. A throw is
 * answered with 500.
 */
export type Authenticate = (headers: {
  readonly authorization?: string | undefined;
}) => AuthResult | Promise<AuthResult>;

/** A refusal with status 401; `body` tells the client why. */
export const unauthorized = (body: string): AuthResult => ({ ok: false, status: 401, body });

/**
 * Lets `verify` judge the token of `Authorization: Bearer TOKEN`; a request without one is refused. The scheme's case and
 * blanks around the token do not matter.
 *
 * @example
 * ```ts
 * const listener = await server.listen({
 *   host: '0.0.0.0',
 *   authenticate: bearerToken(async (token) => ((await isKnown(token)) ? { ok: true } : unauthorized('unknown token'))),
 * });
 * ```
 */
export function bearerToken(verify: (token: string) => AuthResult | Promise<AuthResult>): Authenticate {
  return ({ authorization }) => {
    if (authorization === undefined) return unauthorized('missing websocket bearer token');
    const offered = /^bearer[ \t]+(\S.*)$/i.exec(authorization.trim())?.[1];
    return offered === undefined ? unauthorized('invalid authorization header') : verify(offered.trim());
  };
}
