import { describe, expect, it } from 'vitest';
import { isClientError } from '../errors.js';
import { childPath, shownPath, wirePath } from './wirePath.js';

const refusal = (path: string | URL, argument?: 'source'): string => {
  try {
    wirePath(path, argument);
  } catch (error) {
    if (!isClientError(error)) throw error;
    expect(error.code).toBe('INVALID_ARGUMENT');
    expect(error.data.argument).toBe(argument ?? 'path');
    return error.message;
  }
  throw new Error(`${String(path)} was not refused`);
};

describe('a path on its way to the server', () => {
  it.each([
    ['/srv/a.txt', 'file:///srv/a.txt'],
    ['/', 'file:///'],
    ['/a b/ä#?%41', 'file:///a%20b/%C3%A4%23%3F%2541'],
    ["/$&+,:=@!~*'()", "file:///$&+,:=@!~*'()"],
    ['/new\nline', 'file:///new%0Aline'],
    ['file:///srv/%FF', 'file:///srv/%FF'],
    ['file:/srv/a b', 'file:///srv/a%20b'],
    ['FILE://LOCALHOST/srv', 'file:///srv'],
    ['file:///100%', 'file:///100%25'],
    ['file://', 'file:///'],
    [new URL('file:///srv/../a b'), 'file:///a%20b'],
  ])('%s is sent as %s', (path, uri) => {
    expect(wirePath(path)).toBe(uri);
  });

  it('is refused where it names no file of the host, and the refusal names the argument', () => {
    expect(refusal('')).toContain('empty');
    expect(refusal('a/b', 'source')).toMatch(/^source cannot be used: `a\/b` is relative/);
    expect(refusal('file:a')).toContain('relative');
    expect(refusal('~/x')).toContain('home folder');
    expect(refusal('https://host/x')).toContain('scheme `https`');
    expect(refusal(new URL('ssh://me@host/x'))).toContain('scheme `ssh`');
    expect(refusal('file://me@host/x')).toContain('user');
    expect(refusal('file://host/x')).toContain('host `host`');
    expect(refusal('file:///x?y')).toContain('query');
    expect(refusal(new URL('file:///x#y'))).toContain('fragment');
    expect(refusal('/\ud800')).toContain('surrogate');
  });

  it('comes back as text where it is UTF-8, and as a URI that can be sent again where it is not', () => {
    expect(shownPath('file:///a%20b/%C3%A4')).toBe('/a b/ä');
    expect(shownPath('/a%20b')).toBe('/a%20b');
    expect(shownPath('file:///a/%FF')).toBe('file:///a/%FF');
    expect(wirePath(shownPath('file:///a/%FF'))).toBe('file:///a/%FF');
  });

  it('goes on with the name of an entry', () => {
    expect(childPath('/', 'a%')).toBe('/a%');
    expect(childPath('/srv', 'ä')).toBe('/srv/ä');
    expect(childPath('file:///srv/%FF', 'a#')).toBe('file:///srv/%FF/a%23');
  });
});

describe('what is no path', () => {
  it.each([undefined, null, 7, {}])('is refused by a typed error: %s', (value) => {
    const call = Reflect.apply.bind(undefined, wirePath, undefined, [value]);
    expect(call).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }) as Error);
  });
});
