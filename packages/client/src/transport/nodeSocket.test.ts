import { limits } from '@exec-server/protocol';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Client } from '../client.js';
import { connect, connectWith } from '../connect.js';
import { LOOK_EVERY_MS } from '../liveness.js';
import type { ClientState } from '../options.js';
import { FakeClock } from '../testSupport/fakeClock.js';
import { extendedReply, readResult } from '../testSupport/fakeServer.js';
import { listen, stopListening } from '../../../../test/support/listening.js';

afterEach(stopListening);

/** A server that shakes hands and answers nothing else. */
async function serve(
  onUpgrade: (request: IncomingMessage) => void = () => {},
  autoPong = true,
  /** Whether an upgrade is accepted; one that is not was answered. */
  admits: (request: IncomingMessage, socket: Duplex) => boolean = () => true,
): Promise<{ url: string; sockets: WebSocket[]; seen: unknown[] }> {
  const http = createServer();
  const sockets: WebSocket[] = [];
  const seen: unknown[] = [];
  const server = new WebSocketServer({ noServer: true, autoPong });
  http.on('upgrade', (request, socket, head) => {
    if (!admits(request, socket)) return;
    server.handleUpgrade(request, socket, head, (accepted) => server.emit('connection', accepted, request));
  });
  server.on('connection', (socket, request) => {
    onUpgrade(request);
    sockets.push(socket);
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString('utf8')) as { id?: number; method: string };
      seen.push(message.method);
      const reply = { initialize: extendedReply('s1'), 'process/read': readResult(), 'session/close': {} }[
        message.method
      ];
      if (message.id !== undefined && reply !== undefined)
        socket.send(JSON.stringify({ id: message.id, result: reply }));
    });
  });
  return { url: await listen(http), sockets, seen };
}

function refuseWith(status: number, body: string): Promise<string> {
  const http = createServer();
  http.on('upgrade', (_request, socket) => {
    socket.end(
      `HTTP/1.1 ${status} Refused\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  });
  return listen(http);
}

/** A server that answers an upgrade with the status `judge` gives for its token, and lets it in without one. */
async function guard(
  judge: (authorization: string) => number | undefined,
): Promise<{ url: string; tokens: string[]; sockets: WebSocket[] }> {
  const tokens: string[] = [];
  const { url, sockets } = await serve(
    () => {},
    true,
    ({ headers: { authorization = '' } }, socket) => {
      tokens.push(authorization);
      const status = judge(authorization);
      if (status !== undefined) socket.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\n\r\n`);
      return status === undefined;
    },
  );
  return { url, tokens, sockets };
}

function reaching(client: Client, state: ClientState): Promise<void> {
  return new Promise((resolve) => {
    client.onState((now) => {
      if (now === state) resolve();
    });
  });
}

describe('a WebSocket server', () => {
  it('is given the token, and no origin, compression or subprotocol', async () => {
    let headers: IncomingMessage['headers'] = {};
    const { url } = await serve((request) => (headers = request.headers));
    const client = await connect({ url, token: 'secret' });
    expect(headers.authorization).toBe('Bearer secret');
    for (const header of ['origin', 'sec-websocket-extensions', 'sec-websocket-protocol'])
      expect(headers).not.toHaveProperty(header);
    await client.close();
  });

  it('is dialed again after a cut, with a new token', async () => {
    const tokens: string[] = [];
    const { url, sockets } = await serve((request) => tokens.push(request.headers.authorization ?? ''));
    let asked = 0;
    const client = await connect({ url, token: () => `t${(asked += 1)}` });
    const ready = new Promise<void>((resolve) => {
      client.onState((state) => {
        if (state === 'ready') resolve();
      });
    });
    sockets[0]?.terminate();
    await ready;
    expect(tokens).toEqual(['Bearer t1', 'Bearer t2']);
    await client.close();
  });

  it('is taken for dead when it answers no ping, and dialed again', async () => {
    const clock = new FakeClock();
    const { url } = await serve(() => {}, false);
    const errors: string[] = [];
    const client = await connect({ url, clock, onLog: (text) => errors.push(text) });
    const states: string[] = [];
    const ready = new Promise<void>((resolve) => {
      client.onState((state) => {
        states.push(state);
        if (state === 'ready') resolve();
      });
    });
    // The first look finds the answer to `initialize`.
    clock.advance(limits.SUSPECT_MS);
    expect(client.state).toBe('ready');
    clock.advance(LOOK_EVERY_MS);
    await ready;
    expect(states).toEqual(['recovering', 'ready']);
    expect(errors.join('\n')).toMatch(/ready -> waiting: .*no sign of life for 25 s/);
    await client.close();
  });

  it('is told of the end of the session before the close', async () => {
    const { url, seen, sockets } = await serve();
    const client = await connect({ url });
    const code = new Promise((resolve) => sockets[0]?.once('close', resolve));
    await client.close();
    expect(await code).toBe(1000);
    expect(seen).toEqual(['initialize', 'initialized', 'session/close']);
  });
});

describe('a refused upgrade', () => {
  it.each([401, 403, 404, 302, 200])('with status %i is final and carries the start of the body', async (status) => {
    const url = await refuseWith(status, `no entry ${'x'.repeat(3_000)}`);
    const connecting = connect({ url });
    await expect(connecting).rejects.toMatchObject({ code: 'REFUSED', data: { status, url: `${url}/` } });
    await expect(connecting).rejects.toMatchObject({
      data: { body: expect.stringMatching(/^no entry x{1000,1020}$/) as unknown },
    });
  });

  it.each([408, 429, 500, 503])('with status %i passes', async (status) => {
    const connecting = connect({ url: await refuseWith(status, 'later') });
    await expect(connecting).rejects.toMatchObject({
      code: 'CONNECT_FAILED',
      data: { status, body: 'later', retryable: true },
    });
  });

  it('is final also when the body it announced does not come', async () => {
    const http = createServer();
    http.on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 403 Refused\r\nContent-Length: 100\r\n\r\nno entry');
    });
    const connecting = connect({ url: await listen(http) });
    await expect(connecting).rejects.toMatchObject({ code: 'REFUSED', data: { status: 403, body: 'no entry' } });
  });

  it('with 401 asks once for another token', async () => {
    const tokens: unknown[] = [];
    const url = await refuseWith(401, 'expired');
    const contexts: boolean[] = [];
    const token = ({ refused }: { refused: boolean }): string => {
      contexts.push(refused);
      tokens.push(refused);
      return 'old';
    };
    await expect(connect({ url, token })).rejects.toMatchObject({ code: 'REFUSED', data: { status: 401 } });
    expect(contexts).toEqual([false, true]);
  });

  it('with 401 goes on with the token that is asked for next', async () => {
    const { url, tokens } = await guard((token) => (token === 'Bearer new' ? undefined : 401));
    const client = await connect({ url, token: ({ refused }) => (refused ? 'new' : 'old') });
    expect(tokens).toEqual(['Bearer old', 'Bearer new']);
    await client.close();
  });

  it('is final for a token that is no function, and for none', async () => {
    const { url, tokens } = await guard(() => 401);
    for (const token of ['old', undefined]) {
      await expect(connect({ url, token })).rejects.toMatchObject({ code: 'REFUSED', data: { status: 401 } });
    }
    expect(tokens).toEqual(['Bearer old', '']);
  });

  it('does not show the query, which may hold secrets', async () => {
    const url = await refuseWith(404, '');
    const connecting = connect({ url: `${url}/path?token=hidden` });
    await expect(connecting).rejects.toMatchObject({
      message: expect.not.stringContaining('hidden') as unknown,
      data: { url: `${url}/path` },
    });
  });
});

describe('a refused upgrade on the way back', () => {
  it('with a token that ran out meanwhile is mended by asking for another one', async () => {
    let valid = 't1';
    const { url, tokens, sockets } = await guard((token) => (token === `Bearer ${valid}` ? undefined : 401));
    let asked = 0;
    const client = await connect({ url, token: () => `t${(asked += 1)}` });
    const ready = reaching(client, 'ready');
    valid = 't3';
    sockets[0]?.terminate();
    await ready;
    expect(tokens).toEqual(['Bearer t1', 'Bearer t2', 'Bearer t3']);
    await client.close();
  });

  it('that passes is tried again: 503, and a token function that fails once', async () => {
    const answers = [undefined, 503, undefined];
    const { url, tokens, sockets } = await guard(() => answers.shift());
    let asked = 0;
    const token = (): string => {
      asked += 1;
      if (asked === 2) throw new Error('the issuer is away');
      return `t${asked}`;
    };
    const client = await connectWith({ url, token }, { random: () => 0 });
    const ready = reaching(client, 'ready');
    sockets[0]?.terminate();
    await ready;
    expect(tokens).toEqual(['Bearer t1', 'Bearer t3', 'Bearer t4']);
    await client.close();
  });

  it.each([401, 403, 404])('with %i ends the recovery', async (status) => {
    const answers = [undefined, status];
    const { url, tokens, sockets } = await guard(() => answers.shift());
    const client = await connect({ url, token: 'secret' });
    const failed = reaching(client, 'failed');
    sockets[0]?.terminate();
    await failed;
    expect(client.failure).toMatchObject({ code: 'REFUSED', data: { status } });
    expect(tokens).toHaveLength(2);
    await client.close();
  });
});

describe('something that is no WebSocket server', () => {
  it.each([
    ['a URL with a fragment', { url: 'ws://127.0.0.1:9/#part' }],
    ['a token with the line break of its file', { url: 'ws://127.0.0.1:9/', token: 'secret\n' }],
  ])('is not asked, and never will be, by %s', async (_what, options) => {
    const error: unknown = await connect(options).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'REFUSED', data: { url: 'ws://127.0.0.1:9/' } });
    expect(String(error)).not.toContain('secret');
  });

  it.each(['no url', 'ftp://127.0.0.1', ''])('has no address to connect to: %j', async (url) => {
    await expect(connect({ url })).rejects.toMatchObject({ code: 'REFUSED' });
  });

  it('is final when it answers in another protocol', async () => {
    const tcp = createTcpServer((socket) => socket.end('220 mail.example ESMTP\r\n'));
    await expect(connect({ url: await listen(tcp) })).rejects.toMatchObject({ code: 'REFUSED' });
  });

  it('is final when it is a web server', async () => {
    const answer: RequestListener = (_request, response) => response.end('<html>hello</html>');
    await expect(connect({ url: await listen(createServer(answer)) })).rejects.toMatchObject({
      code: 'REFUSED',
      data: { status: 200, body: '<html>hello</html>' },
    });
  });

  it('speaks no TLS: said in one line', async () => {
    const url = (await refuseWith(200, '')).replace('ws:', 'wss:');
    await expect(connect({ url })).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(
        /^wss:\S* does not speak TLS, which wss: asks for \(\w+\); use ws: .*, or check the URL$/,
      ) as unknown,
    });
  });

  it('is not there: refused connections pass', async () => {
    const url = await listen(createServer());
    await stopListening();
    await expect(connect({ url })).rejects.toMatchObject({ code: 'CONNECT_FAILED', data: { retryable: true } });
  });

  it('does not answer: the attempt ends in time, and names the URL', async () => {
    const url = await listen(createTcpServer(() => {}));
    await expect(connect({ url, connectTimeoutMs: 50 })).rejects.toMatchObject({
      code: 'CONNECT_FAILED',
      message: expect.stringMatching(new RegExp(`${url}.*50 ms`)) as unknown,
    });
  });
});
