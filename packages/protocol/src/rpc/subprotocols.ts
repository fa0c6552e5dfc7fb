/**
 * What a browser says in `Sec-WebSocket-Protocol`, the one header a page can set: the name of the protocol, and beside it the bearer
 * token, which the server takes and never repeats. Pure.
 */

/** What the server selects where it is offered. */
export const WEBSOCKET_SUBPROTOCOL = 'exec-server.v1';
const BEARER = 'bearer.';

/** To be offered in place of an `Authorization` header. The token goes as base64url of its UTF-8, since the header takes few characters. */
export function subprotocolsFor(token: string): readonly [string, string] {
  const binary = Array.from(new TextEncoder().encode(token), (byte) => String.fromCharCode(byte)).join('');
  const base64url = btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  return [WEBSOCKET_SUBPROTOCOL, `${BEARER}${base64url}`];
}

/** The token among what a client offers; empty where it is no base64url of what a header could hold; undefined without one. */
export function tokenOffered(header: string | undefined): string | undefined {
  const offers = header?.split(',').map((offer) => offer.trim()) ?? [];
  const offer = offers.find((name) => name.startsWith(BEARER))?.slice(BEARER.length);
  return offer === undefined ? undefined : (decodeToken(offer) ?? '');
}

function decodeToken(base64url: string): string | undefined {
  if (!/^[\w-]+$/.test(base64url) || base64url.length % 4 === 1) return undefined;
  const binary = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
  try {
    const token = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      Uint8Array.from(binary, (character) => character.charCodeAt(0)),
    );
    // A line break would go where none is expected: into what a server logs, or asks others.
    return /\p{Cc}/u.test(token) ? undefined : token;
  } catch (error) {
    // No UTF-8.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
