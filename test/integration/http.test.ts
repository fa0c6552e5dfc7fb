import { type AddressInfo, createServer } from 'node:net';
import { createExecServer } from '@exec-server/server';
import { memoryTransportPair } from '@exec-server/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { floodText, HttpFixture } from '../support/httpFixture.js';
import { ManualClock } from '../support/manualClock.js';
import { Raw, type RawMessage } from '../support/raw.js';
import { RawServed, rawLinks } from '../support/rawServed.js';
import { until } from '../support/until.js';

let web: HttpFixture;
beforeAll(async () => {
  web = await HttpFixture.start();
});
afterAll(() => web[Symbol.asyncDispose]());

const env = { SOME_TOKEN: 'tok', ODD: 'a\nb', OPENAI_API_KEY: 'sk' };
const text = (value: unknown): string => Buffer.from(String(value), 'base64').toString();
const base64 = (value: string): string => Buffer.from(value).toString('base64');

interface Echo {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

/** Deltas of one stream, up to its last. */
async function stream(raw: Raw, requestId: string): Promise<{ body: string; seqs: number[]; error: unknown }> {
  let body = '';
  const seqs: number[] = [];
  for (;;) {
    const { method, params } = await raw.next();
    if (method !== 'http/request/bodyDelta' || params?.['requestId'] !== requestId) continue;
    body += text(params['deltaBase64']);
    seqs.push(Number(params['seq']));
    if (params['done'] === true) return { body, seqs, error: params['error'] };
  }
}

async function deadPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // It listens on TCP.
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe.each(rawLinks)('http/request over %s', (link) => {
  it('answers with status, headers in order and body', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const result = await raw.result('http/request', { method: 'GET', url: `${web.url}/hello`, requestId: 'r' });
    expect(result).toMatchObject({ status: 200, bodyBase64: base64('hello') });
    expect(result['headers']).toEqual(
      expect.arrayContaining([
        { name: 'content-type', value: 'text/plain' },
        { name: 'x-multi', value: 'a' },
        { name: 'x-multi', value: 'b' },
      ]),
    );
    const missing = await raw.result('http/request', { method: 'GET', url: `${web.url}/none`, requestId: 'r' });
    expect([missing['status'], text(missing['bodyBase64'])]).toEqual([404, 'nf']);
    await served.expectClean();
  });

  it('sends method, headers and body as they were given', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const posted = await raw.result('http/request', {
      method: 'POST',
      url: `${web.url}/echo?a=1#fragment`,
      requestId: 'r',
      bodyBase64: base64('payload'),
      headers: [
        { name: 'X-B', value: '1' },
        { name: 'x-a', value: 'é' },
        { name: 'X-B', value: '2' },
        { name: 'authorization', value: 'Bearer ', valueEnvVar: 'SOME_TOKEN' },
      ],
    });
    const echo = JSON.parse(text(posted['bodyBase64'])) as Echo;
    expect(echo).toMatchObject({ method: 'POST', url: '/echo?a=1', body: 'payload' });
    const pairs = echo.rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, echo.rawHeaders[at + 1]]] : []));
    expect(pairs.filter(([name]) => !['host', 'connection', 'content-length'].includes(name ?? ''))).toEqual([
      ['X-B', '1'],
      ['x-a', Buffer.from('é').toString('latin1')],
      ['X-B', '2'],
      ['authorization', 'Bearer tok'],
      ['accept', '*/*'],
      ['accept-encoding', 'gzip'],
    ]);
    await served.expectClean();
  });

  it('sends a method as it is written', async () => {
    const lines: string[] = [];
    const server = createServer((socket) => {
      socket.once('data', (head) => {
        lines.push(head.toString().split('\r\n', 1)[0] ?? '');
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // It listens on TCP.
    const { port } = server.address() as AddressInfo;
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const params = { method: 'get', url: `http://127.0.0.1:${port}/a b?c#d`, requestId: 'r' };
    expect(await raw.result('http/request', params)).toMatchObject({ status: 200, bodyBase64: '' });
    expect(lines).toEqual(['get /a%20b?c HTTP/1.1']);
    await served.expectClean();
    await new Promise((resolve) => server.close(resolve));
  });

  it('decodes gzip, and says nothing of it any more', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const ask = (method: string, path: string, more: object = {}): Promise<RawMessage> =>
      raw.call('http/request', { method, url: web.url + path, requestId: 'r', ...more });
    const { result } = await ask('GET', '/gzip');
    expect(text(result?.['bodyBase64'])).toBe('hello '.repeat(100));
    const names = (message: RawMessage): string[] =>
      ((message.result ?? {})['headers'] as { name: string }[]).map(({ name }) => name);
    expect(names({ result: result ?? {} })).toContain('x-a');
    expect(names({ result: result ?? {} })).not.toEqual(expect.arrayContaining(['content-encoding']));
    const head = await ask('HEAD', '/gzip');
    expect([names(head).includes('content-encoding'), head.result?.['bodyBase64']]).toEqual([true, '']);
    expect((await ask('GET', '/gzip-empty')).result).toMatchObject({ status: 200, bodyBase64: '' });
    expect((await ask('GET', '/gzip-cut')).error).toMatchObject({
      code: -32603,
      message: 'failed to read http/request response body: error decoding response body',
      data: { reason: 'httpFailed', cause: 'unexpected end of file' },
    });
    raw.send({
      id: 5,
      method: 'http/request',
      params: { method: 'GET', url: `${web.url}/gzip-cut`, requestId: 's', streamResponse: true },
    });
    const cut = await stream(raw, 's');
    expect(cut.error).toBe('error decoding response body');
    await served.expectClean();
  });

  it('leaves out header values that are not UTF-8', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const result = await raw.result('http/request', { method: 'GET', url: `${web.url}/latin1`, requestId: 'r' });
    const headers = (result['headers'] as { name: string; value: string }[]).filter(({ name }) =>
      name.startsWith('x-'),
    );
    expect(headers).toEqual([
      { name: 'x-b', value: 'é' },
      { name: 'x-c', value: 'padded' },
    ]);
    await served.expectClean();
  });

  it('follows redirects to the end, or not at all', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const ask = async (path: string, more: object = {}): Promise<RawMessage> =>
      raw.call('http/request', { method: 'GET', url: web.url + path, requestId: 'r', ...more });
    expect(text((await ask('/redirect')).result?.['bodyBase64'])).toBe('hello');
    const stopped = (await ask('/redirect', { redirectPolicy: 'stop' })).result;
    expect(stopped).toMatchObject({ status: 302, bodyBase64: '' });
    const before = web.seen.length;
    expect((await ask('/circle')).error).toMatchObject({
      code: -32603,
      message: 'http/request failed: too many redirects',
      data: { reason: 'httpFailed' },
    });
    expect(web.seen.length - before).toBe(11);
    const again = await ask('/redirect?status=307&to=/echo', { method: 'POST', bodyBase64: base64('payload') });
    const echo = JSON.parse(text(again.result?.['bodyBase64'])) as Echo;
    expect(echo).toMatchObject({ method: 'POST', body: 'payload' });
    expect(echo.rawHeaders).toEqual(expect.arrayContaining(['referer', `${web.url}/redirect?status=307&to=/echo`]));
    await served.expectClean();
  });

  it('does not take credentials to another host', async () => {
    const other = await HttpFixture.start();
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const { result } = await raw.call('http/request', {
      method: 'GET',
      url: `${web.url}/redirect?to=${other.url}/echo`,
      requestId: 'r',
      headers: [
        { name: 'Authorization', value: 'Bearer x' },
        { name: 'Cookie', value: 'a=1' },
        { name: 'X-Api-Key', value: '', valueEnvVar: 'SOME_TOKEN' },
        { name: 'X-Kept', value: '1' },
      ],
    });
    const { rawHeaders } = JSON.parse(text(result?.['bodyBase64'])) as Echo;
    const names = rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
    expect(names).toContain('x-kept');
    for (const name of ['authorization', 'cookie', 'x-api-key']) expect(names).not.toContain(name);
    await served.expectClean();
    await other[Symbol.asyncDispose]();
  });

  it('refuses what cannot be sent, in the words of the reference', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const refusal = async (params: object): Promise<unknown> => {
      const { error } = await raw.call('http/request', {
        method: 'GET',
        url: `${web.url}/hello`,
        requestId: 'r',
        ...params,
      });
      return [error?.code, error?.message];
    };
    const header = (name: string, value: string, valueEnvVar?: string): object => ({
      headers: [{ name, value, valueEnvVar }],
    });
    const cases: [object, number, string][] = [
      [{ url: 'nope' }, -32602, 'http/request url is invalid: relative URL without a base'],
      [{ url: 'ftp://x/' }, -32602, 'http/request only supports http and https URLs, got ftp'],
      [{ method: 'G T' }, -32602, 'http/request method is invalid: invalid HTTP method'],
      [header('a b', '1'), -32602, 'http/request header name is invalid: invalid HTTP header name'],
      [header('a', '1\n2'), -32602, 'http/request header value is invalid for a: failed to parse header value'],
      [header('a', '', 'ODD'), -32602, 'http/request header value is invalid for a: failed to parse header value'],
      [header('a', '', 'NO_SUCH'), -32602, 'http/request header a requires executor environment variable NO_SUCH'],
      [
        header('a', '', 'OPENAI_API_KEY'),
        -32602,
        'http/request header a cannot use executor environment variable OPENAI_API_KEY',
      ],
      [header('transfer-encoding', 'x'), -32602, 'http/request cannot be sent: invalid transfer-encoding header'],
      [{ bodyBase64: '***' }, -32602, 'Invalid symbol 42, offset 0.'],
      [{ redirectPolicy: 'never' }, -32602, 'unknown variant `never`, expected `follow` or `stop`'],
      [{ requestId: undefined }, -32602, 'missing field `requestId`'],
      [{ method: undefined }, -32602, 'missing field `method`'],
    ];
    for (const [params, code, message] of cases) expect(await refusal(params)).toEqual([code, message]);
    await served.expectClean();
  });

  it('says what went wrong where there is no answer, or half of one', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const ask = async (url: string, more: object = {}): Promise<RawMessage['error']> =>
      (await raw.call('http/request', { method: 'GET', url, requestId: 'r', ...more })).error;
    const dead = `http://127.0.0.1:${await deadPort()}/`;
    expect(await ask(dead)).toMatchObject({
      code: -32603,
      message: `http/request failed: error sending request for url (${dead})`,
      data: { reason: 'httpFailed', cause: expect.stringContaining('ECONNREFUSED') as unknown },
    });
    expect(await ask(`${web.url}/cut`)).toMatchObject({
      code: -32603,
      message: 'failed to read http/request response body: error decoding response body',
      data: { reason: 'httpFailed' },
    });
    expect(await ask(`${web.url}/hang`, { timeoutMs: 50 })).toMatchObject({
      code: -32603,
      message: `http/request failed: error sending request for url (${web.url}/hang)`,
      data: { reason: 'httpTimedOut', timeoutMs: 50 },
    });
    expect(await ask(`${web.url}/hang-body`, { timeoutMs: 50 })).toMatchObject({
      message: 'failed to read http/request response body: error decoding response body',
      data: { reason: 'httpTimedOut' },
    });
    await until(() => web.hanging === 0, 'the requests to end');
    await served.expectClean();
  });

  it('bounds a buffered body, and answers with one that fits', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    const limitBytes = 9_436_160;
    const params = (bytes: number): object => ({ method: 'GET', url: `${web.url}/big?bytes=${bytes}`, requestId: 'r' });
    raw.send({ id: 1, method: 'http/request', params: params(limitBytes) });
    raw.send({ id: 2, method: 'http/request', params: params(limitBytes + 1) });
    const answers = [await raw.next(), await raw.next()];
    const [fits, large] = [1, 2].map((id) => answers.find((answer) => answer.id === id));
    expect(Buffer.from(String(fits?.result?.['bodyBase64']), 'base64').length).toBe(limitBytes);
    expect(large?.error).toMatchObject({ code: -32603, data: { reason: 'replyTooLarge', limitBytes } });
    expect((await raw.call('http/request', params(10))).result).toMatchObject({ status: 200 });
    await served.expectClean();
  });
});

describe.each(rawLinks)('a streamed body over %s', (link) => {
  const streamed = (path: string, requestId: string, more: object = {}): object => ({
    method: 'GET',
    url: web.url + path,
    requestId,
    streamResponse: true,
    ...more,
  });

  it('comes behind the answer, numbered from 1, and ends with an empty delta', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    raw.send({ id: 1, method: 'http/request', params: streamed('/drip', 's') });
    const answer = await raw.next();
    expect(answer).toMatchObject({ id: 1, result: { status: 200, bodyBase64: '' } });
    const { body, seqs, error } = await stream(raw, 's');
    expect([body, error]).toEqual(['abc', null]);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    expect(raw.received.at(-1)?.params).toEqual({
      requestId: 's',
      seq: seqs.length,
      deltaBase64: '',
      done: true,
      error: null,
    });
    await served.expectClean();
  });

  it('carries what came of a body that was cut, and says so', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    raw.send({ id: 1, method: 'http/request', params: streamed('/cut', 's') });
    expect(await stream(raw, 's')).toMatchObject({ body: 'part', error: 'error decoding response body' });
    raw.send({ id: 2, method: 'http/request', params: streamed('/hang-body', 's', { timeoutMs: 100 }) });
    expect(await stream(raw, 's')).toMatchObject({ body: 'begun', error: 'error decoding response body' });
    await until(() => web.hanging === 0, 'the request to end');
    await served.expectClean();
  });

  it('has its id to itself until its last delta', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    raw.send({ id: 1, method: 'http/request', params: streamed('/drip', 's') });
    raw.send({ id: 2, method: 'http/request', params: streamed('/drip', 's') });
    raw.send({ id: 3, method: 'http/request', params: { ...streamed('/hello', 's'), streamResponse: false } });
    expect((await raw.answerTo(2)).error).toMatchObject({
      code: -32602,
      message: 'http/request streamResponse requestId `s` is already active',
      data: { reason: 'httpInvalid', field: 'requestId' },
    });
    await stream(raw, 's');
    expect(raw.received.find(({ id }) => id === 3)?.result).toMatchObject({ status: 200 });
    expect((await raw.call('http/request', streamed('/none', 's'))).result).toMatchObject({ status: 404 });
    expect((await stream(raw, 's')).body).toBe('nf');
    const failing = streamed('/x', 'f', { url: `http://127.0.0.1:${await deadPort()}/` });
    for (let round = 0; round < 2; round += 1) {
      expect((await raw.call('http/request', failing)).error?.data).toMatchObject({ reason: 'httpFailed' });
    }
    await served.expectClean();
  });

  it('leaves the connection to other requests, and is bounded in number', async () => {
    const served = new RawServed(link, { env });
    const raw = await served.ready();
    for (let index = 0; index < 64; index += 1) {
      expect((await raw.call('http/request', streamed('/hang-body', `s${index}`))).result).toBeDefined();
    }
    expect((await raw.call('environment/status')).result).toEqual({ status: 'ready' });
    expect((await raw.call('http/request', streamed('/hello', 'more'))).error?.data).toMatchObject({
      reason: 'tooManyRequests',
      limit: 64,
    });
    expect(
      (await raw.call('http/request', { ...streamed('/hello', 'x'), streamResponse: false })).result,
    ).toBeDefined();
    raw.transport.abort();
    await until(() => web.hanging === 0, 'the streams to end with their connection');
    await served.expectClean();
  });
});

describe('the end of a connection', () => {
  it('ends requests and streams at once, and a resume does not wait for them', async () => {
    const served = new RawServed('websocket', { env });
    const raw = await served.dial();
    const sessionId = await raw.initialize();
    raw.send({ id: 1, method: 'http/request', params: { method: 'GET', url: `${web.url}/hang`, requestId: 'r' } });
    raw.send({
      id: 2,
      method: 'http/request',
      params: { method: 'GET', url: `${web.url}/hang-body`, requestId: 's', streamResponse: true },
    });
    await raw.answerTo(2);
    await until(() => web.hanging === 2, 'both to be asked');
    raw.transport.abort();
    await until(() => web.hanging === 0, 'both to end');
    const next = await served.dial();
    await until(() => served.server.gauges().attachedSessions === 0, 'the session to be free');
    expect(await next.initialize({ resumeSessionId: sessionId })).toBe(sessionId);
    await served.expectClean();
  });

  it('leaves no connection to an http server behind when the server closes', async () => {
    const own = await HttpFixture.start();
    const served = new RawServed('memory', { env });
    const raw = await served.ready();
    await raw.result('http/request', { method: 'GET', url: `${own.url}/hello`, requestId: 'r' });
    expect(await own.connections).toBe(1);
    await raw.result('http/request', { method: 'GET', url: `${own.url}/hello`, requestId: 'r' });
    expect(await own.connections).toBe(1);
    await served.expectClean();
    await until(async () => (await own.connections) === 0, 'the kept connection to close');
    await own[Symbol.asyncDispose]();
  });
});

describe('a client that does not read', () => {
  it('holds the http server back, and misses nothing in the end', async () => {
    const own = await HttpFixture.start();
    const bytes = 24 * 1024 * 1024;
    const server = createExecServer({ env });
    const [mine, theirs] = memoryTransportPair();
    void server.accept(theirs);
    const raw = new Raw(mine);
    await raw.initialize();
    raw.send({
      id: 1,
      method: 'http/request',
      params: { method: 'GET', url: `${own.url}/flood?bytes=${bytes}`, requestId: 's', streamResponse: true },
    });
    await raw.answerTo(1);
    mine.pause();
    let last = -1;
    await until(async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const still = own.floodedBytes === last;
      last = own.floodedBytes;
      return still && last > 0;
    }, 'the writer to be held');
    // Buffers of two sockets, what is read ahead, and what one message holds.
    expect(own.floodedBytes).toBeLessThan(bytes - 8 * 1024 * 1024);
    expect(server.gauges().queuedBytes).toBeLessThan(2 * 1024 * 1024);
    mine.resume();
    const { body, error } = await stream(raw, 's');
    expect(error).toBeNull();
    expect(body === floodText(bytes)).toBe(true);
    mine.close();
    await server.close();
    await own[Symbol.asyncDispose]();
  });
});

describe('large buffered answers', () => {
  it('wait for a client that does not read, whatever time their requests had', async () => {
    const clock = new ManualClock();
    const server = createExecServer({ env, clock });
    const [mine, theirs] = memoryTransportPair();
    void server.accept(theirs);
    const raw = new Raw(mine);
    await raw.initialize();
    const timers = clock.pending;
    mine.pause();
    const bytes = 4 * 1024 * 1024;
    const params = { method: 'GET', url: `${web.url}/big?bytes=${bytes}`, requestId: 'r', timeoutMs: 1_000 };
    for (const id of [1, 2, 3]) raw.send({ id, method: 'http/request', params });
    await until(() => server.gauges().pendingRequests > 0 && clock.pending > timers, 'the requests to begin');
    await until(() => clock.pending === timers, 'the bodies to be there');
    clock.advance(10_000);
    mine.resume();
    for (let answers = 0; answers < 3; answers += 1) expect((await raw.next()).result).toMatchObject({ status: 200 });
    mine.close();
    await server.close();
  });
});

describe('whether http is allowed', () => {
  it('is said by the handshake and kept to', async () => {
    for (const [http, given, allowed] of [
      [undefined, undefined, true],
      [undefined, false, false],
      [false, true, false],
      [true, undefined, true],
    ] as const) {
      const server = createExecServer({ env, http });
      const [mine, theirs] = memoryTransportPair();
      void server.accept(theirs, { http: given });
      const raw = new Raw(mine);
      const reply = await raw.result('initialize', { clientName: 'raw' });
      raw.send({ method: 'initialized' });
      expect(reply['extensions']).toMatchObject({ http: allowed });
      const capabilities = { httpHeaderEnvVars: allowed };
      expect(reply['environmentInfo']).toMatchObject({ capabilities });
      expect(await raw.result('environment/info')).toMatchObject({ capabilities });
      const { result, error } = await raw.call('http/request', {
        method: 'GET',
        url: `${web.url}/hello`,
        requestId: 'r',
      });
      expect([result?.['status'], error?.data?.['reason']]).toEqual(
        allowed ? [200, undefined] : [undefined, 'httpDisabled'],
      );
      mine.close();
      await server.close();
    }
  });
});
