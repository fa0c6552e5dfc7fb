/** Requests that the server makes for its client, on whatever server. */
import { isClientError } from '@exec-server/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { floodText, HttpFixture } from '../httpFixture.js';
import { until } from '../until.js';
import type { Subject } from './subject.js';

async function failure(promise: Promise<unknown>): Promise<unknown> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return isClientError(error) ? { code: error.code, reason: error.data.reason } : error;
}

export function httpBodies({ extended, join }: Subject): void {
  /** What a foreign server does not tell. */
  const told = <T>(value: T): T | undefined => (extended ? value : undefined);
  let web: HttpFixture;
  beforeAll(async () => {
    web = await HttpFixture.start();
  });
  afterAll(() => web[Symbol.asyncDispose]());

  it('asks from where the server stands', async () => {
    const joined = await join();
    const { client } = joined;
    expect(client.serverInfo?.http).toBe(told(true));
    const response = await client.http(`${web.url}/hello`);
    expect(response.status).toBe(200);
    expect(response.headers.filter(([name]) => name === 'x-multi')).toEqual([
      ['x-multi', 'a'],
      ['x-multi', 'b'],
    ]);
    expect(await response.text()).toBe('hello');
    const posted = await client.http(`${web.url}/echo`, { method: 'POST', body: 'payload', headers: { 'x-a': '1' } });
    expect(JSON.parse(await posted.text())).toMatchObject({ method: 'POST', body: 'payload' });
    expect((await client.http(`${web.url}/redirect`, { redirect: 'stop' })).status).toBe(302);
    expect((await client.http(`${web.url}/none`)).status).toBe(404);
    await joined.expectClean();
  });

  it('carries a long body whole and in order, beside other work', async () => {
    const joined = await join();
    const { client } = joined;
    const bytes = 12 * 1024 * 1024;
    const [first, second, run] = await Promise.all([
      client.http(`${web.url}/flood?bytes=${bytes}`).then((response) => response.text()),
      client.http(`${web.url}/gzip`).then((response) => response.text()),
      client.run(['echo', 'hi']),
    ]);
    expect(first === floodText(bytes)).toBe(true);
    expect([second, run.text()]).toEqual(['hello '.repeat(100), 'hi\n']);
    await joined.expectClean();
  });

  it('tells failures apart', async () => {
    const joined = await join();
    const { client } = joined;
    expect(await failure(client.http('nope'))).toEqual({ code: 'SERVER_ERROR', reason: told('httpInvalid') });
    expect(await failure(client.http(`${web.url}/circle`))).toEqual({
      code: 'HTTP_FAILED',
      reason: told('httpFailed'),
    });
    expect(await failure(client.http(`${web.url}/hang`, { timeoutMs: 50 }))).toMatchObject({ code: 'REQUEST_TIMEOUT' });
    const cut = await client.http(`${web.url}/cut`);
    expect(await failure(cut.bytes())).toEqual({ code: 'HTTP_FAILED', reason: 'httpFailed' });
    await joined.expectClean();
    await until(() => web.hanging === 0, 'the request that timed out to end');
  });

  it('can be given up at any step, and takes no more of the body then', async () => {
    const joined = await join();
    const { client } = joined;
    expect(await failure(client.http(`${web.url}/hello`, { signal: AbortSignal.abort() }))).toMatchObject({
      code: 'ABORTED',
    });
    // A foreign server does nothing else until the host has answered.
    if (extended) {
      const asked = new AbortController();
      const asking = failure(client.http(`${web.url}/hang`, { signal: asked.signal }));
      await until(() => web.hanging === 1, 'the host to be asked');
      asked.abort();
      expect(await asking).toMatchObject({ code: 'ABORTED' });
    }
    const answered = new AbortController();
    const size = 24 * 1024 * 1024;
    const response = await client.http(`${web.url}/flood?bytes=${size}`, { signal: answered.signal });
    const reader = response.body.getReader();
    await reader.read();
    answered.abort();
    expect(await failure(reader.read())).toMatchObject({ code: 'ABORTED' });
    const dropped = await client.http(`${web.url}/flood?bytes=${size}`);
    await dropped.body.cancel();
    const whole = new AbortController();
    const read = await client.http(`${web.url}/hello`, { signal: whole.signal });
    expect(await read.text()).toBe('hello');
    whole.abort();
    // What nobody wants passes by.
    const unread = await client.http(`${web.url}/flood?bytes=${size}`);
    await until(() => client.gauges().httpQueuedBytes > 0, 'some of it to wait');
    await until(() => client.gauges().httpQueuedBytes === 0, 'all of it to be given up');
    expect(await failure(unread.bytes())).toEqual({ code: 'HTTP_FAILED', reason: 'overflow' });
    expect(await (await client.http(`${web.url}/hello`)).text()).toBe('hello');
    expect(client.gauges().httpQueuedBytes).toBeLessThanOrEqual(16 * 1024 * 1024);
    await joined.expectClean();
    await until(() => web.hanging === 0, 'the request that was given up to end');
  });

  it('ends what the server asks when it closes', async () => {
    const joined = await join();
    const { client } = joined;
    const response = await client.http(`${web.url}/hang-body`);
    const hanging = failure(client.http(`${web.url}/hang`));
    await until(() => web.hanging === 2, 'both to be asked');
    const reading = failure(response.bytes());
    await joined.expectClean();
    expect(await reading).toMatchObject({ code: 'HTTP_FAILED' });
    expect(await hanging).toMatchObject({
      code: expect.stringMatching(/CLOSED|OUTCOME_UNKNOWN|SESSION_EXPIRED/) as unknown,
    });
    await until(() => web.hanging === 0, 'both to end');
  });
}
