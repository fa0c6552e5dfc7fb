import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { ping, pingWith } from './ping.js';
import { settle } from './testSupport/connectFake.js';
import { FakeClock } from './testSupport/fakeClock.js';
import { extendedReply } from './testSupport/fakeServer.js';
import { listen, stopListening } from '../../../test/support/listening.js';

afterEach(stopListening);

/** A WebSocket server that answers by method, and what it was sent. */
async function serve(
  answers: Readonly<Record<string, unknown>>,
): Promise<{ url: string; seen: string[]; ended: Promise<void> }> {
  const http = createServer();
  const seen: string[] = [];
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  new WebSocketServer({ server: http }).on('connection', (socket) => {
    socket.on('close', () => end());
    socket.on('message', (data: Buffer) => {
      const { id, method } = JSON.parse(data.toString('utf8')) as { id?: number; method: string };
      seen.push(method);
      if (id !== undefined && method in answers) socket.send(JSON.stringify({ id, result: answers[method] }));
    });
  });
  return { url: await listen(http), seen, ended };
}

function answering(status: number): Promise<string> {
  const http = createServer((_request, response) => response.writeHead(status).end('no'));
  http.on('upgrade', (_request, socket) => socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`));
  return listen(http);
}

describe('a ping', () => {
  it('is true where an exec server answers, and ends the session it made', async () => {
    const { url, seen, ended } = await serve({ initialize: extendedReply('s1'), 'session/close': {} });
    expect(await ping(url)).toBe(true);
    await ended;
    expect(seen).toEqual(['initialize', 'initialized', 'session/close']);
  });

  it('is true although the goodbye is not answered, and ends in time', async () => {
    const clock = new FakeClock();
    const { url, seen, ended } = await serve({ initialize: extendedReply('s1') });
    const pinging = pingWith(url, {}, { clock });
    while (!seen.includes('session/close')) await settle();
    clock.advance(5_000);
    expect(await pinging).toBe(true);
    await ended;
  });

  it('asks for a session that ends with its connection, and shows the token', async () => {
    const http = createServer();
    let authorization: string | undefined;
    let params: unknown;
    new WebSocketServer({ server: http }).on('connection', (socket, request) => {
      ({ authorization } = request.headers);
      socket.once('message', (data: Buffer) => {
        ({ params } = JSON.parse(data.toString('utf8')) as { params: unknown });
        socket.close();
      });
    });
    expect(await ping(await listen(http), { token: () => 'secret' })).toBe(false);
    expect(authorization).toBe('Bearer secret');
    expect(params).toMatchObject({ leaseMs: 1 });
  });

  it.each([401, 403, 404, 500, 200])('is false where the answer is %i', async (status) => {
    expect(await ping(await answering(status), { token: 'wrong' })).toBe(false);
  });

  it('is false where nobody listens', async () => {
    const url = await listen(createServer());
    await stopListening();
    expect(await ping(url)).toBe(false);
  });

  it.each(['no url', 'ftp://127.0.0.1', 'ws://127.0.0.1:1/#part', ''])('is false for the address %j', async (url) => {
    expect(await ping(url)).toBe(false);
  });

  it('is false where another protocol is spoken', async () => {
    expect(await ping(await listen(createTcpServer((socket) => socket.end('220 mail.example ESMTP\r\n'))))).toBe(false);
    const { url } = await serve({ initialize: { hello: 'world' } });
    expect(await ping(url)).toBe(false);
  });

  it('is false, and leaves no connection, where a server that was upgraded says nothing', async () => {
    const clock = new FakeClock();
    const { url, seen, ended } = await serve({});
    const pinging = pingWith(url, null, { clock });
    while (seen.length === 0) await settle();
    clock.advance(5_000);
    expect(await pinging).toBe(false);
    await ended;
    await settle();
    expect(clock.pending).toBe(0);
  });

  it('is false where the token function fails', async () => {
    const { url } = await serve({ initialize: extendedReply('s1') });
    const token = (): string => {
      throw new Error('no token');
    };
    expect(await ping(url, { token })).toBe(false);
  });

  it('is false after 5 s of silence, before the upgrade and behind it', async () => {
    const clock = new FakeClock();
    const connected = new Promise<string>((resolve) => {
      const tcp = createTcpServer((socket) => socket.once('data', () => resolve('')));
      void listen(tcp).then((url) => void (silent = pingWith(url, {}, { clock })));
    });
    let silent: Promise<boolean> | undefined;
    const { url, seen } = await serve({});
    const initializing = pingWith(url, {}, { clock });
    await connected;
    while (seen.length === 0) await settle();
    clock.advance(4_999);
    await settle();
    clock.advance(1);
    expect(await Promise.all([silent, initializing])).toEqual([false, false]);
  });

  it('takes no longer than it is given, whatever the token function does', async () => {
    const clock = new FakeClock();
    const pinging = pingWith(
      'ws://127.0.0.1:1',
      { token: () => new Promise<string>(() => {}), timeoutMs: 100 },
      { clock },
    );
    await settle();
    clock.advance(100);
    expect(await pinging).toBe(false);
  });
});
