import { ErrorCode, limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { connectWith } from './connect.js';
import type { CommonOptions } from './options.js';
import { type Connected, connectFake, foreignReply, settle, startFake } from './testSupport/connectFake.js';
import { chunk, extendedReply, type FakeRequest, FakeServer, readResult } from './testSupport/fakeServer.js';

const observeReply = extendedReply('s1', { observeId: 'o1', resumed: true });

/** A client that observes session `s1`. */
function observe(options: CommonOptions = {}): Promise<Connected> {
  return connectFake({ options: { attach: 'observe', resumeSessionId: 's1', ...options }, reply: observeReply });
}

/** The next connection of a client that was cut, and how it introduces itself. */
async function redial({ server, connection }: Connected, reply: unknown): Promise<FakeRequest> {
  connection.cut();
  return await (await server.accept()).handshake(reply);
}

describe('how a client attaches', () => {
  it.each([
    ['attach', { attach: 'observe' }],
    ['takeOver', { takeOver: true }],
    ['epoch', { epoch: 'e' }],
  ] as const)('%s without a session to attach to is refused before anything is dialed', async (name, options) => {
    const server = new FakeServer();
    await expect(connectWith({ ...options, transport: server.dial }, {})).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      message: expect.stringContaining(name) as unknown,
    });
    expect(server.dials).toBe(0);
  });

  it.each([undefined, null, 'ws://127.0.0.1:9', {}, { url: undefined }, { transport: undefined }])(
    'is refused without a server to connect to: %j',
    async (options) => {
      await expect(connectWith(options as never, {})).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(/`url`, `command` or `transport`/) as unknown,
      });
    },
  );

  it('takes the way that is given, whatever else is there and undefined', async () => {
    const server = new FakeServer();
    const connecting = connectWith({ url: undefined, command: undefined, transport: server.dial }, {});
    await (await server.accept()).handshake(extendedReply('s1'));
    await (await connecting).close();
  });

  it('cannot be as an observer that takes over', async () => {
    const server = new FakeServer();
    const options = { attach: 'observe', takeOver: true, resumeSessionId: 's1', transport: server.dial } as const;
    await expect(connectWith(options, {})).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(server.dials).toBe(0);
  });

  it('says nothing of it unless it is told to, so that every server understands', async () => {
    const server = new FakeServer();
    const connecting = connectWith({ transport: server.dial, attach: 'control', takeOver: false }, {});
    const { params } = await (await server.accept()).handshake(foreignReply);
    expect(params).not.toHaveProperty('attach');
    expect(params).not.toHaveProperty('takeOver');
    await (await connecting).close();
  });
});

describe('a take-over', () => {
  it('is asked for once, and not again after a cut', async () => {
    const server = new FakeServer();
    const options = { transport: server.dial, takeOver: true, resumeSessionId: 's1' } as const;
    const connecting = connectWith(options, { random: () => 0 });
    const connection = await server.accept();
    const reply = extendedReply('s1', { resumed: true });
    const first = await connection.handshake(reply);
    expect(first.params).toMatchObject({ takeOver: true, resumeSessionId: 's1' });
    const client = await connecting;
    const second = await redial({ server, client, connection }, reply);
    expect(second.params).not.toHaveProperty('takeOver');
    expect(second.params['attachId']).toBe(first.params['attachId']);
    await client.close();
  });

  it('ends the recovery of the client that lost the session, and everything it waited for', async () => {
    const connected = await connectFake();
    const { client, connection, server } = connected;
    const handle = await startFake(client, connection, 'p');
    const waiting = handle.wait();
    waiting.catch(() => undefined);
    connection.cut();
    const next = await server.accept();
    const refused = await next.next('initialize');
    const text = `session ${client.sessionId} was taken over`;
    next.refuse(refused, ErrorCode.attachedElsewhere, text, { reason: 'takenOver' });
    await expect(waiting).rejects.toMatchObject({ code: 'TAKEN_OVER', data: { processId: 'p', cursor: 0 } });
    expect(client.state).toBe('failed');
    expect(client.failure).toMatchObject({ code: 'TAKEN_OVER', data: { reason: 'takenOver', retryable: false } });
    for (let error: unknown = client.failure; error instanceof Error; error = error.cause) {
      expect(error.message).not.toContain(client.sessionId);
    }
    await expect(client.start({ argv: ['x'] })).rejects.toMatchObject({ code: 'TAKEN_OVER' });
    await settle();
    expect(server.dials).toBe(2);
    await client.close();
  });
});

describe('the id for observers', () => {
  it('is shown apart from what is known of the server, which goes into logs', async () => {
    const { client } = await connectFake({ reply: extendedReply('s1', { observeId: 'o1' }) });
    expect(client.observeId).toBe('o1');
    expect(JSON.stringify(client.serverInfo)).not.toContain('o1');
    await client.close();
  });

  it.each([foreignReply, extendedReply('s1')])('is undefined where the server has none', async (reply) => {
    const { client } = await connectFake({ reply });
    expect(client.observeId).toBeUndefined();
    await client.close();
  });

  it('does not give control, which is final', async () => {
    const server = new FakeServer();
    const connecting = connectWith({ transport: server.dial, resumeSessionId: 'o1' }, {});
    connecting.catch(() => undefined);
    const connection = await server.accept();
    connection.refuse(await connection.next('initialize'), ErrorCode.invalidRequest, 'o1 admits observers', {
      reason: 'observeOnly',
    });
    await expect(connecting).rejects.toMatchObject({
      code: 'SERVER_ERROR',
      data: { reason: 'observeOnly', retryable: false },
      message: expect.not.stringContaining('o1') as unknown,
    });
  });
});

describe('an observer', () => {
  it('says so each time it connects, and leaves the lease to the client in control', async () => {
    const connected = await observe({ leaseMs: 5 });
    const [first] = connected.connection.received;
    const second = await redial(connected, observeReply);
    for (const initialize of [first, second]) {
      expect(initialize?.params).toMatchObject({ attach: 'observe', resumeSessionId: 's1' });
      expect(initialize?.params).not.toHaveProperty('leaseMs');
    }
    await connected.client.close();
  });

  it.each([foreignReply, extendedReply('s1')])('does not stay where the server has no observers', async (reply) => {
    const server = new FakeServer();
    const connecting = connectWith({ transport: server.dial, attach: 'observe', resumeSessionId: 's1' }, {});
    connecting.catch(() => undefined);
    const connection = await server.accept();
    connection.answer(await connection.next('initialize'), reply);
    await expect(connecting).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await connection.closed;
  });

  it('never acknowledges: on arrival, at the end of a process, and after a cut', async () => {
    const connected = await observe();
    const { client, connection, server } = connected;
    const attaching = client.attach('p');
    connection.answer(await connection.next('process/read'), readResult({ chunks: [chunk(1, 'one')], nextSeq: 2 }));
    const handle = await attaching;
    const big = 'b'.repeat(limits.ACK_EVERY_BYTES);
    connection.output('p', 2, big);
    connection.exited('p', 3);
    await handle.wait();
    connection.cut();
    const next = await server.accept();
    await next.handshake(observeReply);
    next.answer(await next.next('process/read'), readResult({ nextSeq: 4, exited: true, exitCode: 0, exitedSeq: 3 }));
    next.closedEvent('p', 4);
    await handle.closed();
    await settle();
    expect(connection.count('process/ack') + next.count('process/ack')).toBe(0);
    await client.close();
  });

  it('that is slow reads back what it let go, and is told what the server has let go too', async () => {
    const { client, connection } = await observe();
    const attaching = client.attach('p');
    connection.answer(await connection.next('process/read'), readResult());
    const handle = await attaching;
    const events = handle.events();
    const first = events.next();
    connection.output('p', 1, 'one');
    await first;
    const big = 'b'.repeat(limits.CLIENT_TAIL_BYTES / 2);
    for (const seq of [2, 3, 4, 5]) connection.output('p', seq, big);
    await settle();
    expect(client.gauges().tailBytes).toBeLessThanOrEqual(limits.CLIENT_TAIL_BYTES);
    const second = events.next();
    const read = await connection.next('process/read');
    expect(read.params).toMatchObject({ afterSeq: 1 });
    const gap = { fromSeq: 2, throughSeq: 2, bytes: 9 };
    connection.answer(read, readResult({ chunks: [chunk(3, 'again')], gap, nextSeq: 4, firstRetainedSeq: 3 }));
    expect((await second).value).toEqual({ type: 'gap', ...gap });
    expect(client.gauges().backlogBytes).toBe(5);
    expect((await events.next()).value).toMatchObject({ seq: 3 });
    expect(client.gauges().backlogBytes).toBe(0);
    await client.close();
  });

  it('asks the server for everything else, and shows its refusal', async () => {
    const { client, connection } = await observe();
    const writing = client.call('process/terminate', { processId: 'p' });
    connection.refuse(await connection.next('process/terminate'), ErrorCode.invalidRequest, 'an observer may not', {
      reason: 'readOnly',
    });
    await expect(writing).rejects.toMatchObject({ code: 'SERVER_ERROR', data: { reason: 'readOnly' } });
    await client.close();
  });

  it('only leaves when it is closed', async () => {
    const { client, connection } = await observe();
    const attaching = client.attach('p');
    connection.answer(await connection.next('process/read'), readResult());
    await attaching;
    await client.close();
    await connection.closed;
    const methods = connection.received.map(({ method }) => method);
    expect(methods).toEqual(['initialize', 'initialized', 'process/read']);
  });
});
