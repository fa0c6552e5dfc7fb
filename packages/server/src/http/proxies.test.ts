import { describe, expect, it } from 'vitest';
import { Proxies } from './proxies.js';

const chosen = (env: Record<string, string>, url: string): string | undefined =>
  new Proxies(env).for(new URL(url))?.url.href;

describe('Proxies', () => {
  it('takes the one of the scheme, or the one for all', () => {
    const env = { HTTP_PROXY: 'http://h:1', HTTPS_PROXY: 'https://s', ALL_PROXY: 'http://a:3' };
    expect(chosen(env, 'http://x/')).toBe('http://h:1/');
    expect(chosen(env, 'https://x/')).toBe('https://s/');
    expect(chosen({ ALL_PROXY: 'http://a:3' }, 'https://x/')).toBe('http://a:3/');
    expect(chosen({ HTTP_PROXY: 'http://h:1' }, 'https://x/')).toBeUndefined();
    expect(chosen({}, 'http://x/')).toBeUndefined();
  });

  it('reads names in upper case first, and an empty one is one', () => {
    expect(chosen({ HTTP_PROXY: 'a:1', http_proxy: 'b:1' }, 'http://x/')).toBe('http://a:1/');
    expect(chosen({ http_proxy: 'b:1' }, 'http://x/')).toBe('http://b:1/');
    expect(chosen({ HTTP_PROXY: '', http_proxy: 'b:1' }, 'http://x/')).toBeUndefined();
  });

  it('passes over what names no proxy', () => {
    for (const value of ['ftp://h:1', 'http://', 'http://h:99999']) {
      expect(chosen({ HTTP_PROXY: value, ALL_PROXY: 'a:1' }, 'http://x/')).toBe('http://a:1/');
    }
  });

  it('trusts nothing in a CGI program', () => {
    expect(chosen({ HTTP_PROXY: 'a:1', REQUEST_METHOD: 'GET' }, 'http://x/')).toBeUndefined();
  });

  it('takes name and password out of the address', () => {
    const named = new Proxies({ HTTP_PROXY: 'http://u%40x:p@h:1/path' }).for(new URL('http://x/'));
    expect(named?.authorization).toBe(`Basic ${Buffer.from('u@x:p').toString('base64')}`);
    expect(named?.url.username).toBe('');
  });

  it('leaves out the hosts of NO_PROXY', () => {
    const cases: [string, string, boolean][] = [
      ['example.com', 'example.com', true],
      ['example.com', 'WWW.Example.com', true],
      ['.example.com', 'example.com', true],
      ['.example.com', 'a.example.com', true],
      ['example.com', 'notexample.com', false],
      [' a.b , example.com ,', 'example.com', true],
      ['*', 'anything', true],
      ['*', '127.0.0.1', true],
      ['127.0.0.1', '127.0.0.1', true],
      ['127.0.0.1', 'localhost', false],
      ['10.0.0.0/8', '10.200.0.1', true],
      ['10.0.0.0/8', '11.0.0.1', false],
      ['10.0.0.0/33', '10.0.0.1', false],
      ['::1', '[::1]', true],
      ['fd00::/8', '[fd12::1]', true],
      ['fd00::/8', '[fe12::1]', false],
      ['', 'localhost', false],
    ];
    for (const [list, host, exempt] of cases) {
      const proxy = chosen({ HTTP_PROXY: 'p:1', NO_PROXY: list }, `http://${host}:8080/`);
      expect([list, host, proxy === undefined]).toEqual([list, host, exempt]);
    }
  });
});
