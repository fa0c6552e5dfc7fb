import { randomBytes } from 'node:crypto';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect } from '@exec-server/client';
import { subprotocolsFor } from '@exec-server/protocol';
import { capabilityToken, createExecServer, type ExecServer } from '@exec-server/server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';

let server: ExecServer;
let url: string;
beforeEach(async () => {
  server = createExecServer();
  ({ url } = await server.listen());
});
afterEach(() => server.close());

interface Raw {
  readonly socket: WebSocket;
  readonly closed: Promise<number>;
  next(): Promise<Record<string, unknown>>;
}

async function open(): Promise<Raw> {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  const inbox: Record<string, unknown>[] = [];
  const waiting: ((message: Record<string, unknown>) => void)[] = [];
  socket.on('error', () => {});
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Record<string, unknown>;
    const taker = waiting.shift();
    if (taker === undefined) inbox.push(message);
    else taker(message);
  });
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  await new Promise((resolve) => socket.once('open', resolve));
  return {
    socket,
    closed,
    next: () => {
      const message = inbox.shift();
      return message === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(message);
    },
  };
}

/** A client on a second connection, which nothing on the first one may disturb. */
async function expectUndisturbed(work: () => Promise<void>): Promise<void> {
  const client = await connect({ url });
  const handle = await client.start({ argv: ['cat'], stdin: 'pipe' });
  await work();
  await handle.end('still here');
  let output = '';
  for await (const piece of handle.text()) output += piece;
  expect(output).toBe('still here');
  expect(client.state).toBe('ready');
  await client.close();
}

/** A frame as a client sends it, with a mask of zeros. */
function frameHeader(opcode: number, length: number): Buffer {
  const header = Buffer.alloc(14);
  header[0] = 0x80 | opcode;
  header[1] = 0x80 | 127;
  header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}

async function upgradedSocket(): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connectTcp(Number(port), hostname);
  socket.write(
    `GET / HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once('data', resolve));
  return socket;
}

describe('a bad peer costs its own connection and no other', () => {
  it('when a text frame is not UTF-8', async () => {
    await expectUndisturbed(async () => {
      const socket = await upgradedSocket();
      const gone = new Promise((resolve) => socket.once('close', resolve));
      socket.resume();
      socket.write(Buffer.concat([frameHeader(1, 2), Buffer.from([0xff, 0xfe])]));
      await gone;
    });
  });

  it('when a binary frame is not UTF-8', async () => {
    await expectUndisturbed(async () => {
      const raw = await open();
      raw.socket.send(Buffer.from([0xff, 0xfe]));
      expect(await raw.closed).toBe(1006);
    });
  });

  it('when a message announces more than the limit', async () => {
    await expectUndisturbed(async () => {
      const socket = await upgradedSocket();
      const gone = new Promise((resolve) => socket.once('close', resolve));
      socket.resume();
      socket.write(frameHeader(1, 64 * 1024 * 1024 + 1));
      await gone;
    });
  });

  it('when it never reads while thousands of answers wait for it', async () => {
    await expectUndisturbed(async () => {
      const raw = await open();
      raw.socket.send(JSON.stringify({ id: 1, method: 'initialize', params: { clientName: 'x' } }));
      raw.socket.send(JSON.stringify({ method: 'initialized' }));
      await raw.next();
      raw.socket.pause();
      for (let id = 2; id < 5_000; id += 1) raw.socket.send(JSON.stringify({ id, method: 'environment/info' }));
      raw.socket.terminate();
      await raw.closed;
    });
  });
});

describe('a good peer', () => {
  it('may send its JSON in binary frames', async () => {
    const raw = await open();
    raw.socket.send(Buffer.from(JSON.stringify({ id: 1, method: 'initialize', params: { clientName: 'x' } })));
    expect(await raw.next()).toMatchObject({ id: 1, result: { sessionId: expect.any(String) as string } });
    raw.socket.terminate();
  });

  it('gets an answer to each of 1,000 pipelined requests', async () => {
    const raw = await open();
    raw.socket.send(JSON.stringify({ id: 0, method: 'initialize', params: { clientName: 'x' } }));
    await raw.next();
    raw.socket.send(JSON.stringify({ method: 'initialized' }));
    for (let id = 1; id <= 1_000; id += 1)
      raw.socket.send(JSON.stringify({ id, method: 'process/read', params: { processId: 'none' } }));
    const answered = new Set<unknown>();
    for (let count = 0; count < 1_000; count += 1) answered.add((await raw.next())['id']);
    expect(answered.size).toBe(1_000);
    raw.socket.terminate();
  });
});

describe('admission', () => {
  const attempt = (options: {
    headers?: Record<string, string>;
    path?: string;
    url?: string;
  }): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`${options.url ?? url}${options.path ?? '/'}`, { headers: options.headers ?? {} });
      socket.once('open', () => {
        socket.terminate();
        resolve({ status: 101, body: '' });
      });
      socket.once('unexpected-response', (_request, response) => {
        let body = '';
        response.on('data', (chunk: Buffer) => (body += chunk.toString()));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      });
      socket.on('error', reject);
    });

  it('refuses pages by their Origin, rebound names by their Host, and other paths', async () => {
    expect(await attempt({})).toMatchObject({ status: 101 });
    expect(await attempt({ headers: { origin: 'https://example.org' } })).toMatchObject({ status: 403 });
    expect(await attempt({ headers: { origin: 'null' } })).toMatchObject({ status: 403 });
    expect(await attempt({ headers: { host: 'attacker.example:80' } })).toMatchObject({ status: 403 });
    expect(await attempt({ headers: { host: 'localhost:80' } })).toMatchObject({ status: 101 });
    expect(await attempt({ path: '/other' })).toMatchObject({ status: 404 });
    expect(await attempt({ path: '/?token=x' })).toMatchObject({ status: 101 });
  });

  it('tells who runs the server what was refused, and which option admits it', async () => {
    const lines: unknown[][] = [];
    const logging = createExecServer({
      log: (level, message, fields) => lines.push([level, message, fields?.['reason']]),
    });
    const { url: at } = await logging.listen({});
    await attempt({ url: at, headers: { origin: `https://${'o'.repeat(1_000)}` } });
    await attempt({ url: at, headers: { host: 'name.example' } });
    await attempt({ url: at, path: '/other' });
    await logging.close();
    expect(lines.filter(([level]) => level === 'warn')).toEqual([
      [
        'warn',
        'connection refused',
        expect.stringMatching(/^origin https:\/\/o{192} is not allowed; .*--allow-origin/),
      ],
      ['warn', 'connection refused', expect.stringMatching(/^host name\.example is not allowed; .*--allow-host/)],
    ]);
  });

  it('admits what is allow-listed', async () => {
    const listener = await server.listen({ allowedOrigins: ['https://app.example'], allowedHosts: ['exec.example'] });
    expect(
      await attempt({ url: listener.url, headers: { origin: 'https://app.example', host: 'exec.example' } }),
    ).toMatchObject({ status: 101 });
    expect(await attempt({ url: listener.url, headers: { origin: 'https://app.example.evil' } })).toMatchObject({
      status: 403,
    });
  });

  it('wants the token before anything else happens', async () => {
    const listener = await server.listen({ authenticate: capabilityToken(' right ') });
    const wrong = { status: 401, body: 'invalid websocket bearer token' };
    expect(await attempt({ url: listener.url })).toEqual({ status: 401, body: 'missing websocket bearer token' });
    expect(await attempt({ url: listener.url, headers: { authorization: 'Basic x' } })).toEqual({
      status: 401,
      body: 'invalid authorization header',
    });
    expect(await attempt({ url: listener.url, headers: { authorization: 'Bearer wrong' } })).toEqual(wrong);
    expect(await attempt({ url: listener.url, headers: { authorization: 'bearer   right ' } })).toMatchObject({
      status: 101,
    });
  });

  describe('of a page, which cannot set headers', () => {
    /** What the server selected of the offers, or the status with which it refused. */
    const offer = async (address: string, offers: string[], authorization?: string): Promise<string | number> => {
      const headers = authorization === undefined ? {} : { authorization };
      const socket = new WebSocket(address, offers, { headers });
      return await new Promise((resolve, reject) => {
        socket.once('open', () => {
          resolve(socket.protocol);
          socket.terminate();
        });
        socket.once('unexpected-response', (_request, response) => {
          resolve(response.statusCode ?? 0);
          response.resume();
        });
        socket.on('error', reject);
      });
    };

    it('takes the token as a subprotocol, and never says it again', async () => {
      const listener = await server.listen({ authenticate: capabilityToken('right/töken') });
      const right = [...subprotocolsFor('right/töken')];
      expect(await offer(listener.url, right)).toBe('exec-server.v1');
      expect(await offer(listener.url, right.toReversed())).toBe('exec-server.v1');
      expect(await offer(listener.url, [...subprotocolsFor('wrong')])).toBe(401);
      expect(await offer(listener.url, ['exec-server.v1', 'bearer.a'])).toBe(401);
      expect(await offer(listener.url, ['exec-server.v1'])).toBe(401);
      // A header is the plainer word.
      expect(await offer(listener.url, right, 'Bearer wrong')).toBe(401);
      // What a browser adds for a proxy in between is no token.
      expect(await offer(listener.url, right, 'Basic dXNlcjpwYXNz')).toBe('exec-server.v1');
      expect(await offer(listener.url, ['exec-server.v1'], 'Basic dXNlcjpwYXNz')).toBe(401);
    });

    it('selects its own name among others, also without a token', async () => {
      expect(await offer(url, ['chat', 'exec-server.v1'])).toBe('exec-server.v1');
      await expect(offer(url, ['chat'])).rejects.toThrow('no subprotocol');
    });
  });

  it('does not listen beyond loopback without authentication unless told to', async () => {
    await expect(server.listen({ host: '0.0.0.0' })).rejects.toThrow('without authentication');
    const listener = await server.listen({ host: '0.0.0.0', allowUnauthenticated: true });
    expect(listener.url).toMatch(/^ws:\/\/0\.0\.0\.0:\d+$/);
  });
});
