import { WireError } from '@exec-server/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytePath, fileUri, nativeBytes, nativePath, pathUri } from './paths.js';

function refusal(path: string, field = 'cwd'): WireError {
  try {
    nativePath(path, field);
  } catch (error) {
    if (error instanceof WireError) return error;
    throw error;
  }
  throw new Error(`${path} was taken`);
}

describe('a path on the wire', () => {
  it.each([
    ['file:///a/b', '/a/b'],
    ['file:/a/b', '/a/b'],
    ['file://localhost/a/b', '/a/b'],
    ['FILE:///a/b', '/a/b'],
    ['file:///', '/'],
    ['file:///a%20b/%C3%A4', '/a b/ä'],
    ['file:///a%2Fb', '/a/b'],
    ['file:///100%', '/100%'],
    ['file:///a/./b/../c', '/a/c'],
    ['file:///../../a', '/a'],
    ['file:///a/%2e%2e/b', '/b'],
    ['file:///a/b/', '/a/b'],
    ['file:///a//b', '/a/b'],
    ['/a/b', '/a/b'],
    ['/a/../b', '/b'],
    ['/a b%20c', '/a b%20c'],
    ['/what?#', '/what?#'],
  ])('%s means %s', (wire, native) => {
    expect(nativePath(wire, 'cwd')).toBe(native);
  });

  it.each([
    ['', 'invalid URI: relative URL without a base'],
    ['a/b', 'invalid URI: relative URL without a base'],
    ['./a', 'invalid URI: relative URL without a base'],
    ['http://x/tmp', 'unsupported path URI scheme `http`'],
    ['HTTPS://x/tmp', 'unsupported path URI scheme `https`'],
    ['file:///tmp?x=1', 'query parameters are not allowed in path URIs'],
    ['file:///tmp#x', 'fragments are not allowed in path URIs'],
    [
      'file://host/tmp',
      "cwd URI `file://host/tmp` is not valid on this exec-server host: 'file://host/tmp' is invalid on 'linux'",
    ],
    [
      'file:///C:/x',
      "cwd URI `file:///C:/x` is not valid on this exec-server host: 'file:///C:/x' is invalid on 'linux'",
    ],
    ['file://me@localhost/tmp', 'user names are not allowed in path URIs: `me`'],
    ['file:///a%00b', "'file:///a%00b' is invalid on 'linux'"],
    ['/a\0b', "'/a\0b' is invalid on 'linux'"],
  ])('%j is refused', (wire, message) => {
    const error = refusal(wire);
    expect(error.message).toBe(message);
    expect(error).toMatchObject({ code: -32602, data: { reason: 'invalidPath', field: 'cwd', path: wire } });
  });

  it('names the host in shorter words outside of cwd, under the code the file methods have for it', () => {
    const error = refusal('file://host/tmp', 'path');
    expect(error.message).toBe("'file://host/tmp' is invalid on 'linux'");
    expect(error).toMatchObject({ code: -32600, data: { reason: 'foreignPath' } });
  });

  it('keeps names that are not UTF-8, and refuses them where only text can be used', () => {
    const path = bytePath('file:///a/f%FFg', 'path');
    expect(nativeBytes(path)).toEqual(Buffer.from([0x2f, 0x61, 0x2f, 0x66, 0xff, 0x67]));
    expect(pathUri(path)).toBe('file:///a/f%FFg');
    expect(refusal('file:///a/f%FFg').message).toBe(
      "invalid URI: 'file:///a/f%FFg' is not UTF-8 after percent decoding",
    );
  });

  it('comes back from its URI', () => {
    const segment = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !/^\.{1,2}$|[/\0]/.test(text));
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), (segments) => {
        const path = `/${segments.join('/')}`;
        fc.pre(!/^\/[A-Za-z]:(\/|$)/.test(path));
        expect(nativePath(fileUri(path), 'path')).toBe(path);
      }),
    );
  });
});
