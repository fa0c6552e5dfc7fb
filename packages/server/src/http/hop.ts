/** One request as it is sent, and the next one where the answer redirects it. Pure. */

export interface SentHeader {
  readonly name: string;
  /** Bytes of the header, one character each. */
  readonly value: string;
  /** It has a variable of the server's environment in it. */
  readonly secret: boolean;
}

export interface Hop {
  /** As the client wrote it. */
  readonly method: string;
  /** Without user name and password. */
  readonly url: URL;
  readonly headers: readonly SentHeader[];
  readonly body: Uint8Array | undefined;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** What describes a body; it goes with it. */
const BODY_HEADERS = new Set([
  'content-type',
  'content-length',
  'content-encoding',
  'content-language',
  'content-location',
]);
/** What is meant for one host alone. */
const HOST_HEADERS = new Set(['authorization', 'proxy-authorization', 'cookie', 'cookie2', 'host']);

/** The headers of a request in the order in which they are sent, name and value in turn. */
export function wireHeaders({ headers, body }: Hop): string[] {
  const given = new Set(headers.map(({ name }) => name.toLowerCase()));
  const all = headers.flatMap(({ name, value }) => [name, value]);
  if (!given.has('accept')) all.push('accept', '*/*');
  // A range counts in the bytes as they are stored.
  if (!given.has('accept-encoding') && !given.has('range')) all.push('accept-encoding', 'gzip');
  if (body !== undefined && !given.has('content-length')) all.push('content-length', String(body.length));
  return all;
}

/**
 * Where an answer of this status leads; undefined where it is the result: it is no redirect, does not say where to, or leads
 * away from http.
 */
export function redirectOf(hop: Hop, status: number, location: string | undefined): Hop | undefined {
  if (!REDIRECTS.has(status) || location === undefined || !URL.canParse(location, hop.url.href)) return undefined;
  const url = new URL(location, hop.url);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  url.username = '';
  url.password = '';
  const asGet = becomesGet(hop.method, status);
  const staysThere = url.origin === hop.url.origin;
  const kept = hop.headers.filter(({ name, secret }) => {
    const lower = name.toLowerCase();
    if (lower === 'referer' || (asGet && BODY_HEADERS.has(lower))) return false;
    return staysThere || !(secret || HOST_HEADERS.has(lower));
  });
  const referer = refererOf(hop.url, url);
  return {
    method: asGet ? 'GET' : hop.method,
    url,
    headers: referer === undefined ? kept : [...kept, { name: 'referer', value: referer, secret: false }],
    body: asGet ? undefined : hop.body,
  };
}

function becomesGet(method: string, status: number): boolean {
  const name = method.toUpperCase();
  if (status === 303) return name !== 'GET' && name !== 'HEAD';
  return (status === 301 || status === 302) && name === 'POST';
}

/** Nothing of an encrypted address is told to an unencrypted one. */
function refererOf(from: URL, to: URL): string | undefined {
  if (from.protocol === 'https:' && to.protocol === 'http:') return undefined;
  const referer = new URL(from);
  referer.hash = '';
  return referer.href;
}
