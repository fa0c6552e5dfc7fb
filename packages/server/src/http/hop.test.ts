import { describe, expect, it } from 'vitest';
import { type Hop, redirectOf, type SentHeader, wireHeaders } from './hop.js';

const header = (name: string, value = '1', secret = false): SentHeader => ({ name, value, secret });
const hop = (changes: Partial<Hop> = {}): Hop => ({
  method: 'POST',
  url: new URL('https://a.example/x?q#f'),
  headers: [],
  body: new Uint8Array([1]),
  ...changes,
});
const names = (next: Hop | undefined): string[] => (next?.headers ?? []).map(({ name }) => name);

describe('wireHeaders', () => {
  it('adds what every request says, unless it was given', () => {
    expect(wireHeaders(hop({ headers: [header('X-A')] }))).toEqual([
      ...['X-A', '1'],
      ...['accept', '*/*'],
      ...['accept-encoding', 'gzip'],
      ...['content-length', '1'],
    ]);
    const given = [header('Accept', 'a'), header('Accept-Encoding', 'identity'), header('Content-Length')];
    expect(wireHeaders(hop({ headers: given }))).toEqual([
      ...['Accept', 'a'],
      ...['Accept-Encoding', 'identity'],
      ...['Content-Length', '1'],
    ]);
    const ranged = wireHeaders(hop({ headers: [header('Range', 'bytes=0-1')], body: undefined }));
    expect(ranged).toEqual(['Range', 'bytes=0-1', 'accept', '*/*']);
  });
});

describe('redirectOf', () => {
  it('takes what is no redirect, says no address, or leads away from http for the result', () => {
    expect(redirectOf(hop(), 200, '/y')).toBeUndefined();
    expect(redirectOf(hop(), 304, '/y')).toBeUndefined();
    expect(redirectOf(hop(), 302, undefined)).toBeUndefined();
    expect(redirectOf(hop(), 302, 'http://[')).toBeUndefined();
    expect(redirectOf(hop(), 302, 'file:///etc/passwd')).toBeUndefined();
  });

  it.each([
    [301, 'POST', 'GET'],
    [302, 'post', 'GET'],
    [301, 'PUT', 'PUT'],
    [302, 'HEAD', 'HEAD'],
    [303, 'PUT', 'GET'],
    [303, 'HEAD', 'HEAD'],
    [303, 'get', 'get'],
    [307, 'POST', 'POST'],
    [308, 'POST', 'POST'],
  ])('makes of a %i for %s a %s', (status, method, becomes) => {
    const headers = [header('Content-Type'), header('content-length'), header('X-A')];
    const next = redirectOf(hop({ method, headers }), status, '/y');
    expect(next?.method).toBe(becomes);
    const repeats = becomes === method;
    expect(next?.body !== undefined).toBe(repeats);
    expect(names(next)).toEqual(repeats ? ['Content-Type', 'content-length', 'X-A', 'referer'] : ['X-A', 'referer']);
  });

  it('resolves the address against the last one, without credentials', () => {
    expect(redirectOf(hop(), 307, '../z?r')?.url.href).toBe('https://a.example/z?r');
    expect(redirectOf(hop(), 307, '//u:p@b.example')?.url.href).toBe('https://b.example/');
  });

  it('keeps credentials on the same origin alone', () => {
    const headers = ['Authorization', 'Cookie', 'Proxy-Authorization', 'Host', 'X-A'].map((name) => header(name));
    const all = hop({ headers: [...headers, header('X-Key', 's', true)] });
    expect(names(redirectOf(all, 307, '/y'))).toEqual([...all.headers.map(({ name }) => name), 'referer']);
    for (const other of ['https://b.example/', 'https://a.example:444/']) {
      expect(names(redirectOf(all, 307, other))).toEqual(['X-A', 'referer']);
    }
    expect(names(redirectOf(all, 307, 'http://a.example/'))).toEqual(['X-A']);
  });

  it('says where it comes from, without the fragment, instead of what was said before', () => {
    const next = redirectOf(hop({ headers: [header('Referer', 'old')] }), 307, '/y');
    expect(next?.headers).toEqual([header('referer', 'https://a.example/x?q')]);
  });
});
