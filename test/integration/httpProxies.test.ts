import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HttpFixture } from '../support/httpFixture.js';
import { ProxyFixture } from '../support/proxyFixture.js';
import type { RawMessage } from '../support/raw.js';
import { RawServed } from '../support/rawServed.js';
import { TcpFixture } from '../support/tcpFixture.js';
import { until } from '../support/until.js';

let web: HttpFixture;
beforeAll(async () => {
  web = await HttpFixture.start();
});
afterAll(() => web[Symbol.asyncDispose]());

interface Asking {
  readonly proxy: ProxyFixture;
  readonly served: RawServed;
  readonly ask: (url: string, more?: object) => Promise<RawMessage>;
  readonly end: () => Promise<void>;
}

/** A server in whose environment `{proxy}` stands for host and port of a proxy. */
async function through(env: Readonly<Record<string, string>>): Promise<Asking> {
  const proxy = await ProxyFixture.start();
  const filled = Object.entries(env).map(([name, value]) => [
    name,
    value.replace('{proxy}', `127.0.0.1:${proxy.port}`),
  ]);
  const served = new RawServed('memory', { env: Object.fromEntries(filled) as Record<string, string> });
  const raw = await served.ready();
  return {
    proxy,
    served,
    ask: (url, more = {}) => raw.call('http/request', { method: 'GET', url, requestId: 'r', ...more }),
    end: async () => {
      await served.expectClean();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

const valuesOf = (rawHeaders: readonly string[], name: string): string[] =>
  rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);

describe('HTTP_PROXY', () => {
  it('is asked for hosts on loopback, too, in the order and number of the headers given', async () => {
    const { proxy, ask, end } = await through({ HTTP_PROXY: 'http://us%20er:pa%3Ass@{proxy}' });
    const headers = [
      { name: 'X-B', value: '1' },
      { name: 'X-A', value: '2' },
      { name: 'X-B', value: '3' },
    ];
    const { result } = await ask(`${web.url}/hello?a=1`, { headers });
    expect(result).toMatchObject({ status: 200, bodyBase64: Buffer.from('hello').toString('base64') });
    const [seen] = proxy.seen;
    expect(seen).toMatchObject({ method: 'GET', target: `${web.url}/hello?a=1` });
    const raw = seen?.rawHeaders ?? [];
    expect(valuesOf(raw, 'host')).toEqual([web.url.slice('http://'.length)]);
    expect(valuesOf(raw, 'proxy-authorization')).toEqual([`Basic ${Buffer.from('us er:pa:ss').toString('base64')}`]);
    const given = raw.filter((name, at) => at % 2 === 0 && name.startsWith('X-'));
    expect([given, valuesOf(raw, 'x-b')]).toEqual([
      ['X-B', 'X-A', 'X-B'],
      ['1', '3'],
    ]);
    await end();
  });

  it('does not learn of the password where the client names its own, or of hosts in NO_PROXY', async () => {
    const { proxy, ask, end } = await through({ http_proxy: 'http://a:b@{proxy}', NO_PROXY: 'localhost' });
    await ask(`${web.url}/hello`, { headers: [{ name: 'Proxy-Authorization', value: 'mine' }] });
    expect(valuesOf(proxy.seen[0]?.rawHeaders ?? [], 'proxy-authorization')).toEqual(['mine']);
    const { result } = await ask(`${web.url.replace('127.0.0.1', 'localhost')}/hello`);
    expect([result?.['status'], proxy.seen.length]).toEqual([200, 1]);
    await end();
  });

  it('is asked at each redirect, and answers with what it says itself', async () => {
    const { proxy, ask, end } = await through({ ALL_PROXY: '{proxy}' });
    expect((await ask(`${web.url}/redirect`)).result).toMatchObject({ status: 200 });
    expect(proxy.seen.map(({ target }) => target)).toEqual([`${web.url}/redirect`, `${web.url}/hello`]);
    expect((await ask('http://127.0.0.1:1/')).result).toMatchObject({ status: 502 });
    await end();
  });

  it('fails where there is no proxy, or one of another kind', async () => {
    for (const [value, cause] of [
      ['http://127.0.0.1:1', 'ECONNREFUSED'],
      ['socks5://127.0.0.1:1', 'proxies of the kind socks5 are not supported'],
    ] as const) {
      const { ask, end } = await through({ HTTP_PROXY: value, HTTPS_PROXY: value });
      for (const url of [web.url, 'https://127.0.0.1:1/']) {
        expect((await ask(url)).error?.data).toMatchObject({
          reason: 'httpFailed',
          cause: expect.stringContaining(cause) as unknown,
        });
      }
      await end();
    }
  });
});

describe('HTTPS_PROXY', () => {
  it('opens a tunnel, in which the host is spoken to with encryption', async () => {
    const firstBytes: number[] = [];
    const host = await TcpFixture.start((socket) => {
      socket.once('data', (hello: Buffer) => {
        firstBytes.push(hello[0] ?? -1);
        socket.destroy();
      });
    });
    const { proxy, ask, end } = await through({ HTTPS_PROXY: 'http://a:b@{proxy}', HTTP_PROXY: 'http://127.0.0.1:1' });
    const { error } = await ask(`https://127.0.0.1:${host.port}/secret`, {
      headers: [{ name: 'authorization', value: 'x' }],
    });
    expect(error?.data?.['reason']).toBe('httpFailed');
    // A handshake of TLS begins so.
    expect(firstBytes).toEqual([0x16]);
    const [seen] = proxy.seen;
    expect(seen).toMatchObject({ method: 'CONNECT', target: `127.0.0.1:${host.port}` });
    expect(valuesOf(seen?.rawHeaders ?? [], 'proxy-authorization')).toEqual(['Basic YTpi']);
    expect(valuesOf(seen?.rawHeaders ?? [], 'authorization')).toEqual([]);
    await end();
    await host[Symbol.asyncDispose]();
  });

  it('says that a tunnel was refused', async () => {
    const { proxy, ask, end } = await through({ HTTPS_PROXY: '{proxy}' });
    proxy.refusal = 'HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n';
    const { error } = await ask('https://127.0.0.1:1/');
    expect(error?.data).toEqual({ reason: 'httpFailed', cause: 'the proxy answered CONNECT with 407' });
    proxy.refusal = 'HTTP/1.1 200 OK\r\n\r\nearly';
    expect((await ask('https://127.0.0.1:1/')).error?.data?.['reason']).toBe('httpFailed');
    await end();
  });

  it('leaves nothing open when the time is over before the proxy or the host has answered', async () => {
    const silent = await TcpFixture.start(() => {});
    const asProxy = await through({ HTTPS_PROXY: `http://127.0.0.1:${silent.port}` });
    expect((await asProxy.ask('https://127.0.0.1:1/', { timeoutMs: 100 })).error?.data?.['reason']).toBe(
      'httpTimedOut',
    );
    await until(() => silent.open.size === 0, 'the connection to the proxy to end');
    await asProxy.end();
    const asHost = await through({ HTTPS_PROXY: '{proxy}' });
    const { error } = await asHost.ask(`https://127.0.0.1:${silent.port}/`, { timeoutMs: 200 });
    expect(error?.data?.['reason']).toBe('httpTimedOut');
    expect(asHost.proxy.seen).toHaveLength(1);
    await until(() => silent.open.size === 0, 'the tunnel to end');
    await asHost.end();
    await silent[Symbol.asyncDispose]();
  });
});
