import { describe, expect, it } from 'vitest';
import { httpInput } from './httpInput.js';

const params = (changes: object = {}): Parameters<typeof httpInput>[0] => ({
  method: 'GET',
  url: 'http://h/',
  requestId: 'r',
  ...changes,
});
const header = (name: string, value: string, valueEnvVar?: string): object => ({
  headers: [{ name, value, ...(valueEnvVar === undefined ? {} : { valueEnvVar }) }],
});

describe('httpInput', () => {
  it('keeps method, headers and body as they are', () => {
    const hop = httpInput(params({ method: 'pUt', ...header('X-A', 'é'), bodyBase64: 'AQI=' }), {});
    expect(hop).toEqual({
      method: 'pUt',
      url: new URL('http://h/'),
      headers: [{ name: 'X-A', value: 'Ã©', secret: false }],
      body: new Uint8Array([1, 2]),
    });
  });

  it('puts a variable behind the value, and knows it for a secret', () => {
    const { headers } = httpInput(params(header('a', 'Bearer ', 'T')), { T: 'x' });
    expect(headers).toEqual([{ name: 'a', value: 'Bearer x', secret: true }]);
    expect(httpInput(params(header('a', 'v', 'EMPTY')), { EMPTY: '' }).headers[0]?.value).toBe('v');
  });

  it.each(['OPENAI_API_KEY', 'CODEX_API_KEY', 'ANTHROPIC_API_KEY', 'anthropic_api_key', 'GEMINI_API_KEY'])(
    'never gives out %s, and shows no value in a refusal',
    (name) => {
      expect(() => httpInput(params(header('a', '', name)), { [name]: 'sk' })).toThrow(
        `http/request header a cannot use executor environment variable ${name}`,
      );
    },
  );

  it('takes no variable of the language for one of the environment', () => {
    expect(() => httpInput(params(header('a', '', 'constructor')), {})).toThrow(
      'http/request header a requires executor environment variable constructor',
    );
  });

  it('makes a header of the credentials of an address, unless there is one', () => {
    const hop = httpInput(params({ url: 'http://u%20x:p%ff@h/' }), {});
    expect(hop.url.href).toBe('http://h/');
    expect(hop.headers).toEqual([
      { name: 'authorization', value: `Basic ${Buffer.from('u x:p%ff').toString('base64')}`, secret: false },
    ]);
    const given = httpInput(params({ url: 'http://u:p@h/', ...header('Authorization', 'mine') }), {});
    expect(given.headers.map(({ value }) => value)).toEqual(['mine']);
  });

  it.each([
    [{ method: '' }, 'http/request method is invalid: invalid HTTP method'],
    [{ method: 'CONNECT' }, 'http/request method is invalid: CONNECT opens a tunnel'],
    [{ url: '' }, 'http/request url is invalid: relative URL without a base'],
    [{ url: 'http://' }, 'http/request url is invalid: empty host'],
    [{ url: 'http://h:x/' }, 'http/request url is invalid: host or port cannot be parsed'],
    [header('', 'x'), 'http/request header name is invalid: invalid HTTP header name'],
    [header('a', 'x\0'), 'http/request header value is invalid for a: failed to parse header value'],
    [{ bodyBase64: 'A' }, 'Invalid input length: 1'],
    [{ requestId: 'x'.repeat(4097), streamResponse: true }, 'http/request requestId is longer than 4096 bytes'],
  ])('refuses %o', (changes, message) => {
    expect(() => httpInput(params(changes), {})).toThrow(message);
  });
});
