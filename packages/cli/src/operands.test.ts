import { describe, expect, it } from 'vitest';
import { meansContents, parseOperand, parseRemote, remotePath, shownName, shownUri } from './operands.js';

describe('operands', () => {
  it('are of the server where they say so', () => {
    expect(parseOperand('remote:/a')).toEqual({ text: 'remote:/a', side: 'remote', path: '/a' });
    expect(parseOperand('./remote:/a')).toMatchObject({ side: 'local', path: './remote:/a' });
    expect(parseOperand('a:b')).toMatchObject({ side: 'local', path: 'a:b' });
    expect(parseRemote('a')).toMatchObject({ side: 'remote', path: 'a' });
    expect(parseRemote('remote:a')).toMatchObject({ path: 'a' });
    for (const parse of [parseOperand, parseRemote]) expect(() => parse('')).toThrow('empty');
  });

  it('begin at the working directory of the server where they are relative', () => {
    expect(remotePath('a b/c', 'file:///srv/x%20y')).toBe('file:///srv/x%20y/a%20b/c');
    expect(remotePath('a b', '/')).toBe('/a b');
    for (const path of ['/a', 'file:///a']) expect(remotePath(path, 'file:///srv')).toBe(path);
  });

  it('mean the contents of a folder with a dot at the end', () => {
    for (const path of ['.', './', 'a/.', 'a/./', '..', 'a/..']) expect(meansContents(path)).toBe(true);
    for (const path of ['a', 'a/', '.a', 'a.', 'a/.b', '...']) expect(meansContents(path)).toBe(false);
  });
});

describe('names on a terminal', () => {
  it('do nothing to it, and stay apart from each other', () => {
    expect(shownName('a\nb\u001b[31m\\n')).toBe('a\\nb\\x1b[31m\\\\n');
    expect(shownName('\u202eevil\u200b')).toBe('\\u{202e}evil\\u{200b}');
    expect(shownName('é 文 😀')).toBe('é 文 😀');
  });

  it('show the bytes that are no UTF-8', () => {
    expect(shownUri('file:///x/f%FFg%0A')).toBe('f\\xffg\\n');
    expect(shownUri('file:///x/caf%C3%A9')).toBe('café');
  });
});
