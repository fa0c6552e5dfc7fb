import { encodeBase64, limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import type { Client } from '../client.js';
import { connectFake, settle } from '../testSupport/connectFake.js';
import { extendedReply, type FakeConnection, type FakeRequest, FakeServer } from '../testSupport/fakeServer.js';
import { connect } from '../connect.js';
import { isClientError } from '../errors.js';

const allowed = extendedReply('s1', { extensions: { flowControl: true, http: true } });
const head = { status: 200, headers: [{ name: 'a', value: '1' }], bodyBase64: '' };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

class Answering {
  readonly #connection: FakeConnection;
  readonly request: FakeRequest;
  #seq = 0;

  constructor(connection: FakeConnection, request: FakeRequest) {
    this.#connection = connection;
    this.request = request;
  }

  static async next(connection: FakeConnection): Promise<Answering> {
    return new Answering(connection, await connection.next('http/request'));
  }

  head(): void {
    this.#connection.answer(this.request, head);
  }

  delta(part: Uint8Array, more: object = {}): void {
    this.#seq += 1;
    const { requestId } = this.request.params;
    const deltaBase64 = encodeBase64(part);
    this.#connection.notify('http/request/bodyDelta', {
      requestId,
      seq: this.#seq,
      deltaBase64,
      done: false,
      error: null,
      ...more,
    });
  }

  end(error: string | null = null): void {
    this.delta(new Uint8Array(), { done: true, error });
  }
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return isClientError(error) ? { code: error.code, reason: error.data.reason } : error;
}

async function asked(client: Client, connection: FakeConnection): Promise<[ReturnType<Client['http']>, Answering]> {
  const asking = client.http('http://h/');
  return [asking, await Answering.next(connection)];
}

describe('client.http', () => {
  it('sends what it was given and streams the answer', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const asking = client.http(new URL('http://h/p?q'), {
      method: 'POST',
      headers: [
        ['X-A', '1'],
        ['X-A', '2', 'TOKEN'],
      ],
      body: 'grüße',
      timeoutMs: 1_000,
      redirect: 'stop',
    });
    const answering = await Answering.next(connection);
    expect(answering.request.params).toEqual({
      method: 'POST',
      url: 'http://h/p?q',
      headers: [
        { name: 'X-A', value: '1' },
        { name: 'X-A', value: '2', valueEnvVar: 'TOKEN' },
      ],
      bodyBase64: encodeBase64(bytes('grüße')),
      timeoutMs: 1_000,
      redirectPolicy: 'stop',
      requestId: expect.any(String) as unknown,
      streamResponse: true,
    });
    // Deltas may be read ahead of the answer.
    answering.delta(bytes('one '));
    answering.head();
    answering.delta(bytes('two'));
    answering.end();
    const response = await asking;
    expect([response.status, response.headers]).toEqual([200, [['a', '1']]]);
    expect(await response.text()).toBe('one two');
    expect(client.gauges().httpQueuedBytes).toBe(0);
    await client.close();
  });

  it('takes headers by name, and empty bodies', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const asking = client.http('http://h/', { headers: { a: '1' } });
    const answering = await Answering.next(connection);
    expect(answering.request.params).toMatchObject({ method: 'GET', headers: [{ name: 'a', value: '1' }] });
    expect(answering.request.params).not.toHaveProperty('bodyBase64');
    answering.head();
    answering.end();
    expect(await (await asking).bytes()).toEqual(new Uint8Array());
    await client.close();
  });

  it('delivers what came of a body that was cut, then fails', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const [asking, answering] = await asked(client, connection);
    answering.head();
    answering.delta(bytes('part'));
    answering.end('error decoding response body');
    const reader = (await asking).body.getReader();
    expect((await reader.read()).value).toEqual(bytes('part'));
    expect(await failure(reader.read())).toEqual({ code: 'HTTP_FAILED', reason: 'httpFailed' });
    await client.close();
  });

  it('fails at a hole, and lets later deltas pass', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const [asking, answering] = await asked(client, connection);
    answering.head();
    answering.delta(bytes('a'));
    answering.delta(bytes('c'), { seq: 3 });
    answering.delta(bytes('d'));
    expect(await failure((await asking).bytes())).toEqual({ code: 'HTTP_FAILED', reason: 'hole' });
    expect(client.gauges().httpQueuedBytes).toBe(0);
    expect(client.state).toBe('ready');
    await client.close();
  });

  it('ends the connection at a delta that does not decode', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    connection.notify('http/request/bodyDelta', { requestId: 'x', seq: 1, deltaBase64: '*', done: false, error: null });
    await connection.closed;
    await client.close();
  });

  it('gives up the response that fills the client, and no other', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const [first, quiet] = await asked(client, connection);
    const [second, loud] = await asked(client, connection);
    quiet.head();
    loud.head();
    quiet.delta(bytes('quiet'));
    const piece = new Uint8Array(1024 * 1024);
    for (let sent = 0; sent <= limits.HTTP_QUEUED_BYTES_PER_CLIENT; sent += piece.length) loud.delta(piece);
    loud.end();
    quiet.end();
    expect(await failure((await second).bytes())).toEqual({ code: 'HTTP_FAILED', reason: 'overflow' });
    expect(await (await first).text()).toBe('quiet');
    expect(client.gauges().httpQueuedBytes).toBe(0);
    await client.close();
  });

  it('is not filled by responses whose bodies nobody reads', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const piece = new Uint8Array(1024 * 1024);
    const unread: Awaited<ReturnType<Client['http']>>[] = [];
    for (let sent = 0; sent < 2 * limits.HTTP_QUEUED_BYTES_PER_CLIENT; sent += piece.length) {
      const [asking, answering] = await asked(client, connection);
      answering.head();
      answering.delta(piece);
      answering.end();
      unread.push(await asking);
    }
    const [asking, answering] = await asked(client, connection);
    answering.head();
    const reading = (await asking).bytes();
    for (let pieces = 0; pieces < 3; pieces += 1) answering.delta(piece);
    answering.end();
    expect((await reading).length).toBe(3 * piece.length);
    expect(client.gauges().httpQueuedBytes).toBeLessThanOrEqual(limits.HTTP_QUEUED_BYTES_PER_CLIENT);
    const [oldest] = unread;
    if (oldest === undefined) throw new Error('there are responses');
    expect(await failure(oldest.bytes())).toEqual({ code: 'HTTP_FAILED', reason: 'overflow' });
    await client.close();
  });

  it('counts what the pieces take besides their bytes', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const [asking, answering] = await asked(client, connection);
    answering.head();
    for (let pieces = 0; pieces < 1000; pieces += 1) answering.delta(new Uint8Array(1));
    await settle();
    expect(client.gauges().httpQueuedBytes).toBeGreaterThan(100_000);
    answering.end();
    expect((await (await asking).bytes()).length).toBe(1000);
    expect(client.gauges().httpQueuedBytes).toBe(0);
    await client.close();
  });

  it('lets go of a body that its reader cancels or aborts', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const [asking, cancelled] = await asked(client, connection);
    cancelled.head();
    cancelled.delta(bytes('a'));
    await (await asking).body.cancel();
    cancelled.delta(bytes('b'));
    cancelled.end();
    const abort = new AbortController();
    const second = client.http('http://h/', { signal: abort.signal });
    const aborted = await Answering.next(connection);
    aborted.head();
    aborted.delta(bytes('a'));
    const response = await second;
    abort.abort();
    expect(await failure(response.bytes())).toMatchObject({ code: 'ABORTED' });
    aborted.end();
    await settle();
    expect([client.gauges().httpQueuedBytes, client.state]).toEqual([0, 'ready']);
    await client.close();
  });

  it('fails once at a cut, and takes nothing up again', async () => {
    const server = new FakeServer();
    const connecting = connect({ transport: server.dial });
    const connection = await server.accept();
    await connection.handshake(allowed);
    const client = await connecting;
    const [answered, answering] = await asked(client, connection);
    answering.head();
    answering.delta(bytes('a'));
    const reader = (await answered).body.getReader();
    await reader.read();
    const [unanswered] = await asked(client, connection);
    const [racing, late] = await asked(client, connection);
    // The answer is read, and the loss is told before whoever asked has seen it.
    late.head();
    connection.cut();
    expect(await failure(unanswered)).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(await failure(reader.read())).toEqual({ code: 'HTTP_FAILED', reason: 'lost' });
    expect(await failure(racing.then((response) => response.bytes()))).toMatchObject({
      code: expect.stringMatching(/^(HTTP_FAILED|OUTCOME_UNKNOWN)$/) as unknown,
    });
    const next = await server.accept();
    await next.handshake({ ...allowed, resumed: true });
    const [again, fresh] = await asked(client, next);
    fresh.head();
    fresh.end();
    expect((await again).status).toBe(200);
    expect(next.count('http/request')).toBe(1);
    await client.close();
  });

  it('says what a refusal is', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const refusals = [
      ['httpFailed', 'HTTP_FAILED'],
      ['httpTimedOut', 'REQUEST_TIMEOUT'],
      ['httpInvalid', 'SERVER_ERROR'],
      ['httpDisabled', 'NOT_SUPPORTED'],
    ] as const;
    for (const [reason, code] of refusals) {
      const [asking, answering] = await asked(client, connection);
      connection.refuse(answering.request, -32603, 'no', { reason });
      expect(await failure(asking)).toEqual({ code, reason });
    }
    await client.close();
  });

  it('is refused where the server makes no requests, and tried on a foreign one', async () => {
    const { client, connection } = await connectFake({ reply: extendedReply('s1') });
    expect(await failure(client.http('http://h/'))).toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(connection.count('http/request')).toBe(0);
    await client.close();
    const foreign = await connectFake({ reply: { sessionId: 's1' } });
    const [asking, answering] = await asked(foreign.client, foreign.connection);
    foreign.connection.refuse(answering.request, -32601, 'unknown');
    expect(await failure(asking)).toMatchObject({ code: 'NOT_SUPPORTED' });
    await foreign.client.close();
  });

  it('tells by the code of a foreign server that there was no answer', async () => {
    const { client, connection } = await connectFake({ reply: { sessionId: 's1' } });
    for (const [wireCode, code] of [
      [-32603, 'HTTP_FAILED'],
      [-32602, 'SERVER_ERROR'],
    ] as const) {
      const [asking, answering] = await asked(client, connection);
      connection.refuse(answering.request, wireCode, 'no');
      expect(await failure(asking)).toMatchObject({ code });
    }
    await client.close();
  });

  it('has no time limit of its own, and keeps the one it is given', async () => {
    const { client, connection } = await connectFake({ reply: allowed });
    const asking = client.http('http://h/', { timeoutMs: 20 });
    await connection.next('http/request');
    expect(await failure(asking)).toMatchObject({ code: 'REQUEST_TIMEOUT' });
    await client.close();
  });
});
