/** The server as raw messages see it, without a client. */
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { PassThrough } from 'node:stream';
import { byteTransport, limits, memoryTransportPair, WireError } from '@exec-server/protocol';
import { createExecServer, type ExecServer, type ExecServerOptions } from '@exec-server/server';
import { afterEach, describe, expect, it } from 'vitest';
import { FakePlatform } from '../support/fakePlatform.js';
import { ManualClock } from '../support/manualClock.js';
import { Raw } from '../support/raw.js';
import { command } from '../support/rawServed.js';

const servers: ExecServer[] = [];

function serve(options: ExecServerOptions = {}): ExecServer {
  const server = createExecServer(options);
  servers.push(server);
  return server;
}

function dial(server: ExecServer): Raw {
  const [mine, theirs] = memoryTransportPair();
  // `accept` never rejects.
  void server.accept(theirs);
  return new Raw(mine);
}

async function ready(server: ExecServer, params: object = {}): Promise<Raw> {
  const raw = dial(server);
  await raw.initialize(params);
  return raw;
}

afterEach(async () => {
  for (const server of servers.splice(0)) {
    await server.close();
    expect(server.gauges()).toMatchObject({ connections: 0, sessions: 0, processes: 0, pendingRequests: 0 });
  }
});

/** Lets everything run that waits for nothing but turns of the event loop. */
async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

const status = { result: { status: 'ready' } };

describe('bad input is answered, and the connection goes on', () => {
  it.each([
    ['process/read', 'exec'],
    ['environment/info', 'environment info'],
    ['environment/status', 'environment status'],
  ])('%s before initialize', async (method, family) => {
    const raw = dial(serve());
    const { error } = await raw.call(method, method === 'process/read' ? { processId: 'p' } : undefined);
    expect(error).toMatchObject({
      code: -32600,
      message: `client must call initialize before using ${family} methods`,
      data: { reason: 'notInitialized' },
    });
    await raw.initialize();
    expect(await raw.call('environment/status')).toMatchObject(status);
  });

  it('a method before initialized', async () => {
    const raw = dial(serve());
    await raw.result('initialize', { clientName: 'raw' });
    expect((await raw.call('environment/status')).error).toMatchObject({
      code: -32600,
      message: 'client must send initialized before using environment status methods',
      data: { reason: 'notReady' },
    });
  });

  it('params that do not decode, before the order of the handshake is looked at', async () => {
    const raw = dial(serve());
    expect((await raw.call('process/read', {})).error?.message).toBe('missing field `processId`');
  });

  it('an initialize that fails, which may be sent again', async () => {
    const raw = dial(serve());
    expect((await raw.call('initialize')).error?.code).toBe(-32602);
    const unknown = await raw.call('initialize', { clientName: 'x', resumeSessionId: 'no-such-session' });
    expect(unknown.error).toMatchObject({
      code: -32600,
      message: 'unknown session id no-such-session',
      data: { reason: 'unknownSession' },
    });
    await raw.initialize({ resumeSessionId: null, extra: true });
    expect(await raw.call('environment/status')).toMatchObject(status);
  });

  it('a second initialize', async () => {
    const raw = await ready(serve());
    expect((await raw.call('initialize', { clientName: 'x' })).error).toMatchObject({
      code: -32600,
      message: 'initialize may only be sent once per connection',
      data: { reason: 'alreadyInitialized' },
    });
    expect(await raw.call('environment/status')).toMatchObject(status);
  });

  it.each(['awaitingInitialize', 'ready'])('an unknown method, when %s', async (state) => {
    const raw = state === 'ready' ? await ready(serve()) : dial(serve());
    for (const method of ['fs/nothing', '', 'toString', '__proto__', '$/cancelRequest']) {
      expect((await raw.call(method)).error).toMatchObject({
        code: -32601,
        message: `exec-server stub does not implement \`${method}\` yet`,
      });
    }
  });

  it.each([
    ['{"id":1,"method":', /: EOF while parsing/],
    ['not json', /: expected ident|: expected value/],
    ['', /: EOF while parsing/],
    ['[]', /: expected a JSON-RPC object$/],
    ['[{"id":1,"method":"environment/status"}]', /: expected a JSON-RPC object$/],
    ['5', /: expected a JSON-RPC object$/],
    ['{}', /: missing field `error`$/],
    ['{"id":1,"id":2,"method":"x"}', /duplicate JSON object key `id`/],
    ['{"id":{"a":1},"method":"environment/status"}', /RequestId$/],
    ['{"id":null,"method":"environment/status"}', /RequestId$/],
    ['{"id":1.5,"method":"environment/status"}', /RequestId$/],
    ['{"id":1,"method":7}', /: invalid type: number, expected a string$/],
    [`{"id":1,"method":"x","params":${'['.repeat(100_000)}`, /recursion limit exceeded/],
    [`{"id":1,"method":"x","params":${'{"a":'.repeat(100_000)}`, /recursion limit exceeded/],
    [`{"id":1,"method":"x","params":[${'0,'.repeat(300_000)}0]}`, /exceeds the limit of 262144 JSON values/],
  ])('%.40s', async (text, words) => {
    const raw = await ready(serve());
    raw.send(text);
    const { error, id } = await raw.next();
    expect(id).toBe(-1);
    expect(error).toMatchObject({ code: -32600, data: { reason: 'malformedMessage' } });
    expect(error?.message).toMatch(/^failed to parse JSON-RPC message from exec-server memory: /);
    expect(error?.message).toMatch(words);
    expect(await raw.call('environment/status')).toMatchObject(status);
  });

  it('ids of every allowed kind, echoed as they came', async () => {
    const [mine, theirs] = memoryTransportPair();
    const texts: string[] = [];
    let seen: () => void = () => {};
    mine.start({
      message: (text) => {
        texts.push(text);
        seen();
      },
      drained: () => {},
      ended: () => {},
      closed: () => {},
    });
    void serve().accept(theirs);
    const ids = ['"7"', '7', '""', '0', '-1', '9223372036854775807', '-9223372036854775808'];
    for (const id of ids) mine.send(`{"id":${id},"method":"nothing"}`);
    while (texts.length < ids.length) {
      await new Promise<void>((resolve) => {
        seen = resolve;
      });
    }
    expect(texts.map((text) => /"id":(.*)\}$/.exec(text)?.[1])).toEqual(ids);
  });

  it('two requests in flight with the same id, both of them', async () => {
    const platform = new FakePlatform();
    const server = serve({ platform });
    const raw = await ready(server);
    await raw.result('process/start', command('p', ['x']));
    const poll = { id: 'same', method: 'process/read', params: { processId: 'p', afterSeq: 0, waitMs: 60_000 } };
    raw.send(poll);
    raw.send(poll);
    expect(await raw.call('environment/status')).toMatchObject(status);
    expect(server.gauges().pendingRequests).toBe(2);
    platform.children[0]?.exit();
    const answers = [await raw.next(), await raw.next(), await raw.next()].filter(({ id }) => id !== undefined);
    expect(answers.map(({ id }) => id)).toEqual(['same', 'same']);
    platform.children[0]?.endOutputs();
  });

  it.each([1000, 10_000])('%i pipelined requests, in their order', async (count) => {
    const raw = await ready(serve());
    for (let id = 1; id <= count; id += 1) raw.send({ id, method: 'environment/status' });
    const answers = await raw.until(count);
    expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  });

  it('requests in a flood, which are read no faster than they are served', async () => {
    const raw = await ready(serve());
    for (let id = 1; id <= 10_000; id += 1) raw.send({ id, method: 'environment/status' });
    const sentBytes = raw.transport.queuedBytes;
    await turns(2);
    expect(raw.transport.queuedBytes).toBeGreaterThan(sentBytes / 2);
    await raw.until(10_000);
    expect(raw.transport.queuedBytes).toBe(0);
  });

  it('requests pipelined behind initialize and initialized', async () => {
    const raw = dial(serve());
    raw.send({ id: 1, method: 'initialize', params: { clientName: 'x' } });
    raw.send({ id: 2, method: 'environment/status' });
    raw.send({ method: 'initialized' });
    raw.send({ id: 3, method: 'environment/status' });
    const answers = await raw.until(3);
    expect(answers.map(({ id }) => id)).toEqual([1, 2, 3]);
    expect(answers[1]?.error?.data?.['reason']).toBe('notReady');
    expect(answers[2]).toMatchObject(status);
  });
});

describe('what breaks the order ends the connection, and that one alone', () => {
  const breaches: readonly (readonly [name: string, params: object, message: string | object])[] = [
    ['an unexpected notification', {}, { method: 'nothing/known' }],
    ['the name of a request as a notification', {}, { method: 'environment/status' }],
    ['a cancellation', {}, { method: '$/cancelRequest', params: { id: 1 } }],
    ['a trace setting', {}, { method: '$/setTrace', params: { value: 'off' } }],
    ['an answer to nothing', {}, { id: 1, result: {} }],
    ['an error answer to nothing', {}, { id: 1, error: { code: 1, message: 'x' } }],
    ['an acknowledgement without flow control', {}, { method: 'process/ack', params: { processId: 'p', seq: 1 } }],
    [
      'an acknowledgement that does not decode',
      { protocolVersion: 1, extensions: { flowControl: true } },
      { method: 'process/ack', params: { processId: 'p' } },
    ],
  ];

  it.each(breaches)('%s', async (_name, params, message) => {
    const server = serve();
    const other = await ready(server);
    const raw = await ready(server, params);
    raw.send(message);
    expect((await raw.closed).kind).toBe('cut');
    expect(await other.call('environment/status')).toMatchObject(status);
    expect(server.gauges()).toMatchObject({ connections: 1, sessions: 2, attachedSessions: 1 });
  });

  it('initialized before initialize', async () => {
    const raw = dial(serve());
    raw.send({ method: 'initialized' });
    expect((await raw.closed).kind).toBe('cut');
  });

  it('initialized behind an initialize that fails', async () => {
    const raw = dial(serve());
    raw.send({ id: 1, method: 'initialize', params: { clientName: 'x', resumeSessionId: 'none' } });
    raw.send({ method: 'initialized' });
    expect((await raw.closed).kind).toBe('cut');
  });

  it('initialized twice does not', async () => {
    const raw = await ready(serve());
    raw.send({ method: 'initialized', params: [1, 'anything'] });
    expect(await raw.call('environment/status')).toMatchObject(status);
  });

  it('what was sent behind it is not looked at', async () => {
    const server = serve({ platform: new FakePlatform() });
    const raw = dial(server);
    raw.send({ method: 'nothing/known' });
    raw.send({ id: 1, method: 'initialize', params: { clientName: 'x' } });
    await raw.closed;
    await turns();
    expect(server.gauges().sessions).toBe(0);
  });

  it('a message over the limit of a byte transport', async () => {
    const server = serve();
    const toServer = new PassThrough();
    const fromServer = new PassThrough();
    const accepted = server.accept(byteTransport(toServer, fromServer, { label: 'pipe', maxMessageBytes: 200 }));
    toServer.write('{"id":1,"method":"initialize","params":{"clientName":"x"}}\n');
    const [answer] = (await once(fromServer, 'data')) as [Buffer];
    expect(answer.toString()).toContain('"id":1');
    toServer.write(`{"id":2,"method":"environment/status","params":"${'x'.repeat(200)}"}\n`);
    expect(await accepted).toMatchObject({ kind: 'violation', detail: 'a line is longer than 200 bytes' });
    expect(server.gauges()).toMatchObject({ connections: 0, sessions: 1, attachedSessions: 0 });
  });
});

describe('a start that fails is an error reply, and its id stays free', () => {
  it.each([
    ['an empty argv', { argv: [] }, -32602, 'argv must not be empty', undefined],
    ['an empty program', { argv: [''] }, -32603, 'missing program for pipe spawn', 'spawnFailed'],
    ['an unknown program', { argv: ['/no/such'] }, -32603, 'No such file or directory (os error 2)', 'spawnNotFound'],
    ['an unknown name', { argv: ['no-such'] }, -32603, 'No such file or directory (os error 2)', 'spawnNotFound'],
    ['a folder', { argv: ['/usr'] }, -32603, 'Permission denied (os error 13)', 'spawnPermissionDenied'],
    ['a missing cwd', { cwd: '/no/such' }, -32603, 'No such file or directory (os error 2)', 'spawnNotFound'],
    ['a cwd that is a file', { cwd: '/etc/passwd' }, -32603, 'Not a directory (os error 20)', 'spawnFailed'],
    ['a NUL', { argv: ['/bin/echo', 'a\0b'] }, -32603, 'nul byte found in provided data', 'spawnFailed'],
    ['a relative cwd', { cwd: 'tmp' }, -32602, 'invalid URI: relative URL without a base', undefined],
  ])('%s', async (_name, changes, code, message, kind) => {
    const server = serve();
    const raw = await ready(server);
    const { error } = await raw.call('process/start', command('p', ['/bin/true'], changes));
    expect(error).toMatchObject({ code, message });
    expect(error?.data?.['kind']).toBe(kind);
    expect(server.gauges().processes).toBe(0);
    expect((await raw.call('process/read', { processId: 'p' })).error?.data?.['reason']).toBe('unknownProcess');
    expect(await raw.result('process/start', command('p', ['/bin/true']))).toMatchObject({ processId: 'p' });
  });

  it.each(['sandbox', 'managedNetwork', 'networkProxy', 'shellSnapshot', 'enforceManagedNetwork'])(
    'a request for confinement by %s, which is never run',
    async (field) => {
      const platform = new FakePlatform();
      const raw = await ready(serve({ platform }));
      const values: Record<string, unknown> = {
        sandbox: { permissions: { type: 'managed' } },
        enforceManagedNetwork: true,
      };
      const { error } = await raw.call('process/start', command('p', ['x'], { [field]: values[field] ?? {} }));
      expect(error).toMatchObject({ code: -32603, data: { kind: 'sandboxUnavailable', field } });
      expect(platform.children).toEqual([]);
    },
  );

  it('a call that waited for it says that there is no such process', async () => {
    const platform = new FakePlatform({ manual: true });
    const raw = await ready(serve({ platform }));
    raw.send({ id: 1, method: 'process/start', params: command('p', ['x'], { pipeStdin: true }) });
    raw.send({ id: 2, method: 'process/read', params: { processId: 'p', waitMs: 60_000 } });
    raw.send({ id: 3, method: 'process/write', params: { processId: 'p', chunk: 'eA==', writeId: '1' } });
    raw.send({ id: 4, method: 'process/signal', params: { processId: 'p', signal: 'interrupt' } });
    await turns();
    expect(raw.received.length).toBe(1);
    platform.starting[0]?.fail(new WireError('programNotFound', 'No such file or directory (os error 2)'));
    const answers = new Map((await raw.until(4)).map((message) => [message.id, message]));
    expect(answers.get(1)?.error?.code).toBe(-32603);
    expect(answers.get(2)?.error?.message).toBe('unknown process id p');
    expect(answers.get(3)?.result).toEqual({ status: 'unknownProcess' });
    expect(answers.get(4)?.result).toEqual({ delivered: false });
  });
});

describe('a start in progress', () => {
  it('holds up neither other calls nor other starts beyond their limit', async () => {
    const platform = new FakePlatform({ manual: true });
    const raw = await ready(serve({ platform }));
    const count = 3 * limits.CONCURRENT_REQUESTS;
    for (let id = 1; id <= count; id += 1) {
      raw.send({ id, method: 'process/start', params: command(`p${id}`, ['x']) });
      raw.send({ id: `read ${id}`, method: 'process/read', params: { processId: `p${id}` } });
    }
    expect(await raw.call('environment/info')).toHaveProperty('result');
    expect(platform.starting.length).toBe(limits.CONCURRENT_STARTS);
    while (platform.children.length < count) {
      for (const start of platform.starting.splice(0)) start.fork();
      await turns(1);
    }
    await raw.until(`read ${count}`);
    for (const child of platform.children) {
      child.exit();
      child.endOutputs();
    }
  });

  it('keeps the writes behind it in their order', async () => {
    const platform = new FakePlatform({ manual: true });
    const raw = await ready(serve({ platform }));
    raw.send({ id: 'start', method: 'process/start', params: command('p', ['x'], { pipeStdin: true }) });
    const send = (from: number, through: number): void => {
      for (let id = from; id <= through; id += 1) {
        const chunk = Buffer.from(`${id},`).toString('base64');
        raw.send({ id, method: 'process/write', params: { processId: 'p', chunk, writeId: String(id) } });
      }
    };
    send(1, 150);
    await turns(200);
    const child = platform.starting[0]?.fork();
    send(151, 200);
    await raw.until(200);
    child?.stdin?.takeAll();
    expect(child?.stdin?.taken.join('')).toBe(Array.from({ length: 200 }, (_, index) => `${index + 1},`).join(''));
    child?.exit();
    child?.endOutputs();
  });

  it('is cancelled by terminate', async () => {
    const platform = new FakePlatform({ manual: true });
    const server = serve({ platform });
    const raw = await ready(server);
    raw.send({ id: 1, method: 'process/start', params: command('p', ['x']) });
    expect(await raw.result('process/terminate', { processId: 'p' })).toEqual({ running: true });
    platform.starting[0]?.fork();
    expect((await raw.answerTo(1)).error).toMatchObject({
      code: -32600,
      message: 'process p start was cancelled',
      data: { reason: 'startCancelled' },
    });
    expect(server.gauges().processes).toBe(0);
    expect(await raw.result('process/terminate', { processId: 'p' })).toEqual({ running: false });
  });

  it('is settled before a resume is answered, and its process is there', async () => {
    const platform = new FakePlatform({ manual: true });
    const server = serve({ platform });
    const first = dial(server);
    const resumeSessionId = await first.initialize();
    first.send({ id: 1, method: 'process/start', params: command('p', ['x']) });
    await turns();
    first.transport.abort();
    await turns();
    const second = dial(server);
    second.send({ id: 1, method: 'initialize', params: { clientName: 'x', resumeSessionId } });
    await turns();
    expect(second.received).toEqual([]);
    const child = platform.starting[0]?.fork();
    expect((await second.answerTo(1)).result).toMatchObject({ sessionId: resumeSessionId, resumed: true });
    second.send({ method: 'initialized' });
    expect(await second.result('process/read', { processId: 'p' })).toMatchObject({ chunks: [], nextSeq: 1 });
    child?.exit();
    child?.endOutputs();
  });

  it('does not survive the end of its session', async () => {
    const platform = new FakePlatform({ manual: true });
    const server = serve({ platform });
    const raw = await ready(server);
    raw.send({ id: 1, method: 'process/start', params: command('p', ['x']) });
    raw.send({ id: 2, method: 'session/close' });
    await raw.until(2);
    platform.starting[0]?.fork();
    expect((await raw.answerTo(1)).error?.data?.['reason']).toBe('startCancelled');
    expect(await raw.closed).toMatchObject({ kind: 'ended' });
    expect(platform.children).toEqual([]);
  });

  it('when the connection and the server are gone leaves no child', async () => {
    const platform = new FakePlatform({ manual: true });
    const server = serve({ platform });
    const raw = await ready(server);
    raw.send({ id: 1, method: 'process/start', params: command('p', ['x']) });
    await turns();
    const closing = server.close();
    platform.starting[0]?.fork();
    await closing;
    expect(platform.children).toEqual([]);
  });
});

describe('a resume', () => {
  async function resume(server: ExecServer, resumeSessionId: string, params: object = {}): Promise<Raw> {
    const raw = dial(server);
    await raw.initialize({ resumeSessionId, ...params });
    return raw;
  }

  it('pushes nothing before the first read was answered, and then goes on behind it', async () => {
    const platform = new FakePlatform();
    const server = serve({ platform });
    const first = dial(server);
    const id = await first.initialize();
    await first.result('process/start', command('p', ['x']));
    const output = platform.children[0]?.outputs[0];
    output?.emit('one');
    await first.next();
    first.transport.abort();
    await turns();
    output?.emit('two');
    const second = await resume(server, id);
    output?.emit('three');
    await turns();
    expect(second.received.length).toBe(1);
    second.send({ id: 5, method: 'process/read', params: { processId: 'p', afterSeq: 1 } });
    await turns();
    output?.emit('four');
    const [reply, push] = [await second.next(), await second.next()];
    expect(reply?.result).toMatchObject({ nextSeq: 4, chunks: [{ seq: 2 }, { seq: 3 }] });
    expect(push?.params).toMatchObject({ processId: 'p', seq: 4 });
    platform.children[0]?.exit();
    output?.end();
  });

  it('pushes without a read after a while, to a client that only listens', async () => {
    const clock = new ManualClock();
    const platform = new FakePlatform();
    const server = serve({ platform, clock });
    const first = dial(server);
    const id = await first.initialize();
    await first.result('process/start', command('p', ['x']));
    first.transport.abort();
    await turns();
    platform.children[0]?.outputs[0]?.emit('one');
    const second = await resume(server, id);
    clock.advance(limits.FIRST_READ_WAIT_MS - 1);
    await turns();
    expect(second.received.length).toBe(1);
    clock.advance(1);
    await turns();
    expect(second.received[1]?.params).toMatchObject({ seq: 1 });
    platform.children[0]?.exit();
    platform.children[0]?.outputs[0]?.end();
  });

  it('ends the long polls and takes back the waiting writes of the old connection', async () => {
    const platform = new FakePlatform();
    const server = serve({ platform });
    const first = dial(server);
    const id = await first.initialize();
    await first.result('process/start', command('p', ['x'], { pipeStdin: true }));
    const chunk = Buffer.alloc(limits.STDIN_QUEUE_BYTES, 'a').toString('base64');
    expect(await first.result('process/write', { processId: 'p', chunk, writeId: '1' })).toMatchObject({
      status: 'accepted',
    });
    first.send({ id: 1, method: 'process/write', params: { processId: 'p', chunk: 'Yg==', writeId: '2' } });
    first.send({ id: 2, method: 'process/read', params: { processId: 'p', waitMs: 2 ** 40 } });
    await turns();
    expect(server.gauges().pendingRequests).toBe(2);
    first.transport.abort();
    await turns();
    expect(server.gauges().pendingRequests).toBe(0);
    const second = await resume(server, id);
    const stdin = platform.children[0]?.stdin;
    stdin?.takeAll();
    expect(stdin?.waiting).toEqual([]);
    expect(await second.result('process/write', { processId: 'p', chunk: 'Yg==', writeId: '2' })).toEqual({
      status: 'accepted',
      acceptedOffset: limits.STDIN_QUEUE_BYTES + 1,
    });
    expect(await second.result('process/write', { processId: 'p', chunk: 'Yg==', writeId: '1' })).toEqual({
      status: 'accepted',
      acceptedOffset: limits.STDIN_QUEUE_BYTES + 1,
    });
    platform.children[0]?.exit();
    platform.children[0]?.endOutputs();
  });

  it('holds back a write that came behind a start and a write that found no room', async () => {
    const platform = new FakePlatform({ manual: true });
    const server = serve({ platform });
    const first = dial(server);
    const id = await first.initialize();
    first.send({ id: 1, method: 'process/start', params: command('p', ['x'], { pipeStdin: true }) });
    const chunk = (bytes: number): string => Buffer.alloc(bytes, 'a').toString('base64');
    const sizes = [600_000, 600_000, 10];
    for (const [index, size] of sizes.entries()) {
      const params = { processId: 'p', chunk: chunk(size), writeId: String(index) };
      first.send({ id: 10 + index, method: 'process/write', params });
    }
    await turns();
    first.transport.abort();
    await turns();
    platform.starting[0]?.fork();
    const second = await resume(server, id);
    const stdin = platform.children[0]?.stdin;
    expect(stdin?.waiting).toEqual([]);
    expect(await second.result('process/write', { processId: 'p', chunk: chunk(1), writeId: '0' })).toMatchObject({
      acceptedOffset: 1,
    });
    platform.children[0]?.exit();
    platform.children[0]?.endOutputs();
  });

  it('does not run what was pipelined behind it when its connection was lost while it waited', async () => {
    const platform = new FakePlatform({ manual: true });
    const server = serve({ platform });
    const first = dial(server);
    const id = await first.initialize();
    first.send({ id: 1, method: 'process/start', params: command('p', ['x']) });
    await turns();
    first.transport.abort();
    await turns();
    const lost = dial(server);
    lost.send({ id: 1, method: 'initialize', params: { clientName: 'x', resumeSessionId: id } });
    lost.send({ method: 'initialized' });
    lost.send({ id: 2, method: 'process/start', params: command('q', ['x']) });
    await turns();
    lost.transport.abort();
    await turns();
    platform.starting[0]?.fork();
    await turns();
    expect(platform.starting.length).toBe(1);
    const third = await resume(server, id);
    expect((await third.call('process/read', { processId: 'q' })).error?.data?.['reason']).toBe('unknownProcess');
    platform.children[0]?.exit();
    platform.children[0]?.endOutputs();
  });

  it('is refused while another connection is attached, which goes on undisturbed', async () => {
    const server = serve();
    const first = dial(server);
    const id = await first.initialize();
    const second = dial(server);
    expect((await second.call('initialize', { clientName: 'x', resumeSessionId: id })).error).toMatchObject({
      code: -32010,
      message: `session ${id} is already attached to another connection`,
      data: { reason: 'attachedElsewhere' },
    });
    expect(await first.call('environment/status')).toMatchObject(status);
    await second.initialize();
  });
});

describe('flow control', () => {
  const extended = { protocolVersion: 1, extensions: { flowControl: true } };

  it('stops a child whose reader gives no credit, and nobody else', async () => {
    const platform = new FakePlatform();
    const server = serve({ platform });
    const raw = await ready(server, extended);
    await raw.result('process/start', command('slow', ['x']));
    await raw.result('process/start', command('quick', ['x']));
    const [slow, quick] = platform.children.map(({ outputs }) => outputs[0]);
    const piece = new Uint8Array(64 * 1024);
    for (let index = 0; index < 100; index += 1) {
      if (slow?.paused === false) slow.emit(piece);
      await turns(1);
    }
    expect(slow?.paused).toBe(true);
    expect(server.gauges().retainedBytes).toBeLessThanOrEqual(limits.PAUSE_PROCESS_BYTES + piece.length);
    const pushed = raw.received.filter(({ method }) => method === 'process/output').length;
    expect(pushed * piece.length).toBeLessThanOrEqual(limits.CREDIT_BYTES_PER_PROCESS + piece.length);
    quick?.emit('hello');
    await turns();
    expect(raw.received.at(-1)?.params).toMatchObject({ processId: 'quick', seq: 1 });
    raw.send({ method: 'process/ack', params: { processId: 'slow', seq: pushed } });
    await turns();
    expect(slow?.paused).toBe(false);
    for (const child of platform.children) {
      child.exit();
      child.endOutputs();
    }
  });

  it('still delivers the end of a process whose retention is over, when its reader comes back', async () => {
    const clock = new ManualClock();
    const platform = new FakePlatform();
    const server = serve({ platform, clock, exitedRetentionMs: 1000 });
    const raw = await ready(server, extended);
    await raw.result('process/start', command('p', ['x']));
    const child = platform.children[0];
    for (let index = 0; index < 24; index += 1) child?.outputs[0]?.emit(new Uint8Array(64 * 1024));
    child?.exit();
    child?.endOutputs();
    await turns();
    clock.advance(60_000);
    let acked = 0;
    for (let round = 0; round < 10; round += 1) {
      const last = Number(raw.received.at(-1)?.params?.['seq'] ?? 0);
      if (last > acked) raw.send({ method: 'process/ack', params: { processId: 'p', seq: (acked = last) } });
      await turns();
    }
    expect(raw.received.at(-1)).toMatchObject({ method: 'process/closed', params: { seq: 26 } });
    clock.advance(1000);
    expect(server.gauges().processes).toBe(0);
  });
});

describe('the end of a session', () => {
  it('by its client kills its processes and says so to later resumes', async () => {
    const server = serve();
    const raw = dial(server);
    const id = await raw.initialize();
    await raw.result('process/start', command('p', ['sleep', '1000']));
    expect(await raw.result('session/close')).toEqual({});
    expect(await raw.closed).toMatchObject({ kind: 'ended' });
    const next = dial(server);
    expect((await next.call('initialize', { clientName: 'x', resumeSessionId: id })).error).toMatchObject({
      code: -32600,
      data: { reason: 'expiredSession' },
    });
  });

  it('by the server answers what waits, and closes as soon as the children were reaped', async () => {
    const server = serve();
    const raw = await ready(server);
    await raw.result('process/start', command('p', ['sleep', '1000']));
    raw.send({ id: 1, method: 'process/read', params: { processId: 'p', waitMs: 1_000_000 } });
    await turns();
    const begun = performance.now();
    await server.close();
    // Far from the patience with children that cannot be reaped.
    expect(performance.now() - begun).toBeLessThan(2500);
    expect((await raw.answerTo(1)).result).toMatchObject({ closed: false });
    await raw.closed;
  });

  it('does not wait for a peer that has connected and says nothing', async () => {
    const server = serve();
    const { url } = await server.listen();
    const silent = connectSocket(Number(new URL(url).port), '127.0.0.1');
    await once(silent, 'connect');
    silent.resume();
    const gone = once(silent, 'close');
    await server.close();
    await gone;
  });

  it('takes nobody any more', async () => {
    const server = serve();
    await server.close();
    const [mine, theirs] = memoryTransportPair();
    const raw = new Raw(mine);
    expect((await server.accept(theirs)).detail).toBe('the server is shutting down');
    await raw.closed;
  });
});
