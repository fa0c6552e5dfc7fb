import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { hasMethod } from './faultPlan.js';
import { type FaultEvent, type FaultProxy, type FaultProxyOptions, startFaultProxy } from './faultProxy.js';

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  const open = (): string[] => process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP'));
  // Closed handles stay listed until the loop has turned.
  for (let turn = 0; turn < 5 && open().length > 0; turn += 1) await new Promise(setImmediate);
  expect(open()).toEqual([]);
});

/** A proxy with its events, and a way to wait for one of them. */
async function proxyOf(options: FaultProxyOptions) {
  const events: FaultEvent[] = [];
  const waiting: { type: FaultEvent['type']; resolve: () => void }[] = [];
  const proxy = await startFaultProxy({
    ...options,
    onEvent: (event) => {
      events.push(event);
      for (const { type, resolve } of waiting) if (type === event.type) resolve();
    },
  });
  cleanups.push(() => proxy.close());
  const happened = async (type: FaultEvent['type']): Promise<FaultEvent[]> => {
    if (!events.some((event) => event.type === type)) {
      await new Promise<void>((resolve) => waiting.push({ type, resolve }));
    }
    return events.filter((event) => event.type === type);
  };
  return { proxy, events, happened };
}

function portOf(server: { address(): ReturnType<Server['address']> | string }): number {
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the server does not listen on a port');
  return address.port;
}

async function webSocketServer(onSocket: (socket: WebSocket) => void): Promise<string> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  server.on('connection', (socket) => {
    socket.on('error', () => socket.terminate());
    onSocket(socket);
  });
  await once(server, 'listening');
  cleanups.push(async () => {
    for (const socket of server.clients) socket.terminate();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return `ws://127.0.0.1:${portOf(server)}`;
}

const echoServer = (): Promise<string> =>
  webSocketServer((socket) => socket.on('message', (data, binary) => socket.send(data, { binary })));

async function rawServer(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => socket.destroy());
    onSocket(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return `ws://127.0.0.1:${portOf(server)}`;
}

/** A WebSocket client that keeps what it gets. */
async function clientOf(proxy: FaultProxy) {
  const socket = new WebSocket(proxy.url, { perMessageDeflate: false });
  const messages: string[] = [];
  const errors: string[] = [];
  let wake = (): void => {};
  socket.on('message', (data: Buffer) => {
    messages.push(data.toString());
    wake();
  });
  socket.on('error', (error) => errors.push(error.message));
  const closed = new Promise<number>((resolve) => {
    socket.on('close', (code) => {
      resolve(code);
      wake();
    });
  });
  cleanups.push(async () => {
    socket.terminate();
    await closed;
  });
  await Promise.race([once(socket, 'open'), closed]);
  /** Waits for so many messages in all, or for the close. */
  const received = async (count: number): Promise<string[]> => {
    while (messages.length < count && socket.readyState === WebSocket.OPEN) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return messages;
  };
  return { socket, messages, errors, closed, received };
}

/** `once` would reject with the error of a reset. */
const closeOf = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once('close', () => resolve()));

async function rawClient(proxy: FaultProxy): Promise<Socket> {
  const socket = connect({ port: Number(new URL(proxy.url).port), host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => socket.destroy());
  cleanups.push(async () => {
    if (!socket.closed) await closeOf(socket.destroy());
  });
  await once(socket, 'connect');
  return socket;
}

test('passes an echo exactly, at any split', async () => {
  const target = await echoServer();
  const { proxy } = await proxyOf({ target });
  // A rule that never matches keeps the scanner inspecting.
  proxy.addRule({ when: { direction: 'up', beforeMessage: () => false }, do: 'cut' });
  proxy.addRule({ when: { direction: 'down', afterMessage: () => false }, do: 'cut' });
  const client = await clientOf(proxy);
  let sent = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          fc.string({ maxLength: 300 }),
          fc.integer({ min: 1, max: 5000 }).map((n) => 'x'.repeat(n)),
        ),
        {
          maxLength: 5,
        },
      ),
      fc.integer({ min: 1, max: 700 }),
      async (list, splitBytes) => {
        proxy.setShape('up', { splitBytes });
        proxy.setShape('down', { splitBytes: splitBytes * 2 });
        for (const message of list) client.socket.send(message);
        sent += list.length;
        const got = await client.received(sent);
        expect(got.slice(sent - list.length)).toEqual(list.map((value) => Buffer.from(value).toString()));
      },
    ),
    { numRuns: 25 },
  );
  expect(proxy.counters).toMatchObject({ connections: 1, open: 1, cuts: 0, refused: 0 });
});

test('passes bulk both ways and drips', async () => {
  const target = await echoServer();
  const { proxy } = await proxyOf({ target });
  const client = await clientOf(proxy);
  const big = 'abcdefgh'.repeat(256 * 1024);
  client.socket.send(big);
  expect((await client.received(1))[0]).toBe(big);
  expect(proxy.counters.bytesUp).toBeGreaterThan(big.length);
  proxy.setShape('up', { drip: { bytes: 5, pauseMs: 1 }, delayMs: 2 });
  client.socket.send('drop by drop');
  expect((await client.received(2))[1]).toBe('drop by drop');
});

test('cuts inside a frame, at the byte that was asked for', async () => {
  const payload = 'y'.repeat(10_000);
  const target = await webSocketServer((socket) => socket.on('message', () => socket.send(payload)));
  const { proxy, happened } = await proxyOf({ target });
  const client = await clientOf(proxy);
  client.socket.send('go');
  await client.received(1);
  const before = proxy.counters.bytesDown;
  proxy.cutAfterBytes('down', 5000);
  client.socket.send('go');
  expect(await client.closed).toBe(1006);
  expect(client.messages).toEqual([payload]);
  expect(proxy.counters.bytesDown).toBe(before + 5000);
  expect(await happened('cut')).toEqual([
    { type: 'cut', connection: 1, hard: true, bytesUp: proxy.counters.bytesUp, bytesDown: before + 5000 },
  ]);
  await happened('closed');
  expect(proxy.counters).toMatchObject({ open: 0, cuts: 1 });
});

test('the same seed cuts at the same bytes', async () => {
  const target = await rawServer((socket) => socket.pipe(socket));
  const points: number[][] = [];
  for (const seed of [9, 9, 10]) {
    const { proxy, events, happened } = await proxyOf({
      target,
      seed,
      rules: [{ when: { direction: 'up', aboutEveryBytes: 20_000 }, do: 'cut', times: 3 }],
    });
    for (let round = 0; round < 3; round += 1) {
      const socket = await rawClient(proxy);
      await happened('connected');
      socket.resume().write(Buffer.alloc(300_000));
      await closeOf(socket);
    }
    points.push(events.flatMap((event) => (event.type === 'cut' ? [event.bytesUp] : [])));
  }
  expect(points[0]).toHaveLength(3);
  expect(points[0]).toEqual(points[1]);
  expect(points[0]).not.toEqual(points[2]);
});

test('a message trigger cuts before or after the message', async () => {
  const say = (method: string): string => JSON.stringify({ jsonrpc: '2.0', method, params: {} });
  const target = await webSocketServer((socket) => {
    for (const method of ['process/output', 'process/exited', 'process/closed']) socket.send(say(method));
  });
  for (const [when, expected] of [
    [{ direction: 'down', beforeMessage: hasMethod('process/exited') }, ['process/output']],
    [{ direction: 'down', afterMessage: hasMethod('process/exited') }, ['process/output', 'process/exited']],
  ] as const) {
    const { proxy, events } = await proxyOf({ target, rules: [{ when, do: 'cut' }] });
    const client = await clientOf(proxy);
    expect(await client.closed).toBe(1006);
    expect(client.messages).toEqual(expected.map(say));
    expect(events).toContainEqual({ type: 'fault', connection: 1, action: { type: 'cut' } });
    // The rule is used up: the next connection lives.
    const next = await clientOf(proxy);
    expect(await next.received(3)).toHaveLength(3);
  }
});

test('an upward message is judged although it is masked', async () => {
  const seen: string[] = [];
  let gone = (): void => {};
  const serverClosed = new Promise<void>((resolve) => {
    gone = resolve;
  });
  const target = await webSocketServer((socket) => {
    socket.on('message', (data: Buffer) => seen.push(data.toString())).on('close', gone);
  });
  const { proxy } = await proxyOf({
    target,
    rules: [
      { when: { direction: 'up', beforeMessage: (text) => text === 'second' }, do: { type: 'cut', hard: false } },
    ],
  });
  const client = await clientOf(proxy);
  for (const message of ['first', 'second', 'third']) client.socket.send(message);
  expect(await client.closed).toBe(1006);
  await serverClosed;
  expect(seen).toEqual(['first']);
});

test('refuses the next dials, then all, then none, and can stop listening', async () => {
  const { proxy } = await proxyOf({ target: await echoServer() });
  proxy.refuse(2);
  expect((await clientOf(proxy)).errors).toHaveLength(1);
  expect((await clientOf(proxy)).errors).toHaveLength(1);
  const third = await clientOf(proxy);
  third.socket.send('through');
  expect(await third.received(1)).toEqual(['through']);
  proxy.refuse(true);
  expect((await clientOf(proxy)).errors).toHaveLength(1);
  proxy.refuse(false);
  expect((await clientOf(proxy)).errors).toEqual([]);
  const { url } = proxy;
  proxy.stopListening();
  expect((await clientOf(proxy)).errors.join()).toContain('ECONNREFUSED');
  third.socket.send('still open');
  expect(await third.received(2)).toEqual(['through', 'still open']);
  await proxy.startListening();
  expect(proxy.url).toBe(url);
  expect((await clientOf(proxy)).errors).toEqual([]);
  expect(proxy.counters.refused).toBe(3);
});

test('a stall holds everything back and a release delivers it in order', async () => {
  const { proxy } = await proxyOf({ target: await echoServer() });
  const client = await clientOf(proxy);
  proxy.stall('down');
  const sent = Array.from({ length: 200 }, (_, index) => `${index}:${'z'.repeat(index * 10)}`);
  const before = proxy.counters;
  for (const message of sent) client.socket.send(message);
  client.socket.ping();
  while (proxy.counters.bytesUp - before.bytesUp < sent.join('').length) await new Promise(setImmediate);
  expect(proxy.counters.bytesDown).toBe(before.bytesDown);
  expect(client.messages).toEqual([]);
  proxy.release();
  expect(await client.received(sent.length)).toEqual(sent);
});

test('a reader that does not read stops the writer', async () => {
  const servers: Socket[] = [];
  const target = await rawServer((socket) => servers.push(socket.pause()));
  const { proxy, happened } = await proxyOf({ target });
  const client = await rawClient(proxy);
  await happened('connected');
  const total = 64 * 1024 * 1024;
  const chunk = Buffer.alloc(64 * 1024);
  let written = 0;
  // Writes on until nothing has moved for 200 turns of the loop.
  for (let idle = 0, last = -1; idle < 200 && written < total; ) {
    while (!client.writableNeedDrain && written < total) {
      client.write(chunk);
      written += chunk.length;
    }
    await new Promise(setImmediate);
    const moved = written - client.writableLength;
    idle = moved === last ? idle + 1 : 0;
    last = moved;
  }
  expect(written).toBeLessThan(total);
  const arrived = new Promise<void>((resolve) => {
    let count = 0;
    servers[0]?.on('data', (bytes) => {
      count += bytes.length;
      if (count === written) resolve();
    });
  });
  servers[0]?.resume();
  await arrived;
  expect(proxy.counters.bytesUp).toBe(written);
});

test('silence takes everything, passes nothing, and hides that a side has left', async () => {
  const ends: string[] = [];
  const target = await rawServer((socket) => {
    socket.on('data', (bytes) => socket.write(bytes)).on('close', () => ends.push('close'));
  });
  const { proxy, happened } = await proxyOf({ target });
  const client = await rawClient(proxy);
  client.write('heard');
  expect(String(await once(client, 'data'))).toBe('heard');
  proxy.silence();
  client.write('unheard');
  client.resetAndDestroy();
  await closeOf(client);
  const other = await rawClient(proxy);
  other.write('later connections are healthy');
  await once(other, 'data');
  expect(ends).toEqual([]);
  expect(proxy.counters).toMatchObject({ open: 2, bytesUp: 'heardlater connections are healthy'.length });
  proxy.cut();
  await closeOf(other);
  await happened('closed');
});

test('a half close ends one direction and leaves the other', async () => {
  const target = await rawServer((socket) => {
    socket.resume().on('end', () => socket.end('the end was seen'));
  });
  const { proxy, happened } = await proxyOf({ target });
  const client = await rawClient(proxy);
  await happened('connected');
  client.write('something');
  proxy.halfClose('up');
  expect(String(await once(client, 'data'))).toBe('the end was seen');
});

test.each(['up', 'down'] as const)(
  'a connection of which one direction has ended (%s) can still be cut',
  async (direction) => {
    const { proxy, happened } = await proxyOf({ target: await echoServer() });
    const client = await clientOf(proxy);
    proxy.halfClose(direction);
    proxy.cut();
    expect(await client.closed).toBe(1006);
    expect(await happened('closed')).toMatchObject([{ detail: 'cut' }]);
    expect(proxy.counters).toMatchObject({ open: 0, cuts: 1 });
  },
);

test('a cut can come after a silent while, and an orderly one sends what was taken', async () => {
  const target = await rawServer((socket) => socket.pipe(socket));
  const { proxy, happened } = await proxyOf({ target });
  const client = await rawClient(proxy);
  client.write('echo');
  await once(client, 'data');
  proxy.cut({ hard: false, silentMs: 5 });
  expect(proxy.counters.cuts).toBe(0);
  client.resume();
  await once(client, 'end');
  expect(await happened('cut')).toMatchObject([{ hard: false, bytesUp: 4, bytesDown: 4 }]);
});

test('a target that is not there, and one that moves', async () => {
  const first = await rawServer((socket) => socket.end('first'));
  const { proxy, happened } = await proxyOf({ target: 'ws://127.0.0.1:1' });
  const lost = await rawClient(proxy);
  await closeOf(lost.resume());
  expect(await happened('closed')).toMatchObject([{ detail: expect.stringContaining('ECONNREFUSED') }]);
  proxy.setTarget(`${first}/path?query`);
  expect(proxy.url).toMatch(/\/path\?query$/);
  expect(String(await once(await rawClient(proxy), 'data'))).toBe('first');
  expect(() => proxy.setTarget('wss://127.0.0.1:1')).toThrow(TypeError);
});

test('closing ends connections and timers, twice is fine', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const { proxy, happened } = await proxyOf({ target: await echoServer() });
  const client = await clientOf(proxy);
  const before = timers();
  proxy.stall('up', 60_000);
  proxy.setShape('down', { delayMs: 60_000 });
  proxy.cut({ silentMs: 60_000 });
  await Promise.all([proxy.close(), proxy.close()]);
  expect(await client.closed).toBe(1006);
  await happened('closed');
  expect(proxy.counters.open).toBe(0);
  expect(timers()).toBeLessThanOrEqual(before);
  await expect(proxy.startListening()).rejects.toThrow('closed');
});
