import { describe, expect, it } from 'vitest';
import {
  baseName,
  bytesOf,
  bytesOfWire,
  isEntryName,
  joinBytes,
  parentName,
  textOf,
  uriOf,
  withoutDots,
  withoutSlash,
} from './bytePath.js';

describe('bytes of names', () => {
  it('go to URIs and back, whatever the bytes are', () => {
    const all = Array.from({ length: 255 }, (_, index) => String.fromCharCode(index + 1)).join('');
    expect(bytesOfWire(uriOf(`/x/${all}`))).toBe(`/x/${all}`);
    expect(uriOf(bytesOf('/é %#?'))).toBe('file:///%C3%A9%20%25%23%3F');
  });

  it('are text where they are UTF-8, a byte order mark included', () => {
    expect(textOf(bytesOf('é\ufeff😀'))).toBe('é\ufeff😀');
    expect(textOf('f\xff')).toBeUndefined();
  });

  it('are taken from every form of a path', () => {
    for (const path of ['/a/é', 'file:///a/%C3%A9', 'file:/a/é', 'FILE://localhost/a/%c3%a9']) {
      expect(bytesOfWire(path)).toBe('/a/\xc3\xa9');
    }
    for (const path of ['a/b', 'http:///a', 'file://host/a']) expect(bytesOfWire(path)).toBeUndefined();
  });
});

describe('parts of paths', () => {
  it('are found with a slash at the end and without', () => {
    expect([baseName('/a/b'), baseName('/a/b/'), baseName('b'), baseName('/')]).toEqual(['b', 'b', 'b', '']);
    expect([parentName('/a/b'), parentName('/a'), parentName('a/b'), parentName('a')]).toEqual(['/a', '/', 'a', '']);
    expect([joinBytes('/', 'a'), joinBytes('/a', ''), joinBytes('', 'a')]).toEqual(['/a', '/a', 'a']);
    expect([withoutDots('/a/./b//../c/'), withoutDots('/..'), withoutDots('/a/..')]).toEqual(['/a/c/', '/', '/']);
    expect([withoutSlash('//'), withoutSlash('/a//')]).toEqual(['/', '/a']);
  });

  it('are names only where they lead nowhere else', () => {
    for (const name of ['', '.', '..', 'a/b', '/', 'a\0']) expect(isEntryName(name)).toBe(false);
    for (const name of ['...', 'a\nb', '\xff']) expect(isEntryName(name)).toBe(true);
  });
});
