/** What those who follow a process get when the connection is cut: every way a stream can end, and where to go on from. */
import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import type { Client } from '../client.js';
import { isClientError } from '../errors.js';
import type { ProcessHandle } from '../process/processHandle.js';
import { type Connected, connectFake, settle, startFake } from '../testSupport/connectFake.js';
import { chunk, extendedReply, type FakeConnection, readResult } from '../testSupport/fakeServer.js';

async function resume({ connection, server }: Connected): Promise<FakeConnection> {
  connection.cut();
  const next = await server.accept();
  await next.handshake(extendedReply('s1', { resumed: true }));
  return next;
}

async function drain(readable: AsyncIterable<unknown>): Promise<void> {
  for await (const piece of readable) void piece;
}

async function drainStream(stream: ReadableStream<Uint8Array>): Promise<void> {
  const reader = stream.getReader();
  while (!(await reader.read()).done);
}

/** Every way to follow a process; each resolves at its end. */
const ways: Readonly<Record<string, (handle: ProcessHandle) => Promise<unknown>>> = {
  'an iterator': (handle) => drain(handle),
  'its text': (handle) => drain(handle.text()),
  'its stdout': (handle) => drainStream(handle.stdout),
  'its stderr': (handle) => drainStream(handle.stderr),
  'a wait': (handle) => handle.wait(),
  'its close': (handle) => handle.closed(),
};

/** The errors of all ways together, each told by its name, its code and where to go on from. */
async function endings(handle: ProcessHandle, cut: () => Promise<void> | void): Promise<unknown[]> {
  const following = Object.entries(ways).map(async ([name, follow]) => {
    const error: unknown = await follow(handle).then(
      () => 'a success',
      (thrown: unknown) => thrown,
    );
    return isClientError(error)
      ? [name, error.code, error.data.processId, error.data.cursor, error.data.retryable]
      : error;
  });
  await settle();
  await cut();
  return await Promise.all(following);
}

const all = (...rest: unknown[]): unknown[] => Object.keys(ways).map((name) => [name, ...rest]);

describe('a cut that is not mended', () => {
  it('is the end of every stream where reconnecting is off, with the cursor, and never a success', async () => {
    const { client, connection, server } = await connectFake({ options: { reconnect: false } });
    const handle = await startFake(client, connection, 'p');
    for (const seq of [1, 2, 3]) connection.output('p', seq, 'x');
    const ended = await endings(handle, () => connection.cut());
    expect(ended).toEqual(all('RECOVERY_FAILED', 'p', 3, true));
    expect(server.dials).toBe(1);
    await client.close();
  });

  it('is the end of every stream once the attempts are used up, with how many there were', async () => {
    const { client, connection, server } = await connectFake({ options: { maxReconnects: 3 } });
    const handle = await startFake(client, connection, 'p');
    for (const seq of [1, 2]) connection.output('p', seq, 'x');
    server.refusal = new Error('nobody there');
    const ended = await endings(handle, () => connection.cut());
    expect(ended).toEqual(all('RECOVERY_FAILED', 'p', 2, true));
    expect(server.dials).toBe(4);
    expect(client.failure).toMatchObject({
      data: { attempts: 3 },
      message: expect.stringContaining('nobody there') as unknown,
    });
    await client.close();
  });

  it('is no result of a run, whatever has come of it', async () => {
    const { client, connection } = await connectFake({ options: { reconnect: false } });
    const running = client.run(['x'], { processId: 'p' });
    running.catch(() => undefined);
    await connection.start();
    connection.output('p', 1, 'half of it');
    connection.exited('p', 2, 0);
    await settle();
    connection.cut();
    await expect(running).rejects.toMatchObject({ code: 'RECOVERY_FAILED', data: { processId: 'p', cursor: 2 } });
    await client.close();
  });

  it('and a client that is closed here are told apart', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    connection.output('p', 1, 'x');
    const ended = await endings(handle, () => client.close());
    expect(ended).toEqual(all('CLOSED', 'p', 1, undefined));
  });
});

describe('a stream that ended by itself', () => {
  it('is not asked for again after a later cut', async () => {
    const connected = await connectFake();
    const { client, connection } = connected;
    const handle = await startFake(client, connection, 'p');
    await startFake(client, connection, 'other');
    connection.exited('p', 1, 3);
    connection.closedEvent('p', 2);
    await drain(handle);
    const next = await resume(connected);
    const read = await next.next('process/read');
    expect(read.params['processId']).toBe('other');
    next.answer(read, readResult());
    await settle();
    expect(next.count('process/read')).toBe(1);
    expect(await handle.wait()).toMatchObject({ exitCode: 3 });
    await client.close();
  });

  it('by the caller is no cut: the loop is over, and nothing else is', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    for (const seq of [1, 2]) connection.output('p', seq, 'x');
    for await (const event of handle) if (event.type === 'output') break;
    expect([client.state, handle.cursor]).toEqual(['ready', 1]);
    await client.close();
  });
});

describe('a cut that is mended', () => {
  it('goes on behind a gap, which is told once', async () => {
    const connected = await connectFake();
    const { client, connection } = connected;
    const handle = await startFake(client, connection, 'p');
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const event of handle) seen.push(event.type === 'gap' ? [event.fromSeq, event.throughSeq] : event.seq);
    })();
    connection.output('p', 1, 'x');
    connection.notify('process/gap', { processId: 'p', fromSeq: 2, throughSeq: 900, bytes: 9 });
    await settle();
    const next = await resume(connected);
    const read = await next.next('process/read');
    expect(read.params).toMatchObject({ afterSeq: 900 });
    next.answer(read, readResult({ chunks: [chunk(901, 'y')], nextSeq: 902 }));
    next.closedEvent('p', 902);
    await reading;
    expect(seen).toEqual([1, [2, 900], 901, 902]);
    await client.close();
  });

  it('is not seen by a wait, nor by a reader that is awaited between events, which loses none', async () => {
    const connected = await connectFake();
    const { client, connection } = connected;
    const handle = await startFake(client, connection, 'p');
    const exit = handle.wait();
    let next: FakeConnection | undefined;
    const seen: number[] = [];
    const piece = 'x'.repeat(limits.ACK_EVERY_BYTES);
    connection.output('p', 1, piece);
    connection.output('p', 2, piece);
    for await (const event of handle) {
      // Whoever works on an event holds the stream back: it is not acknowledged, and comes to nobody twice.
      if (event.type === 'output' && event.seq === 1) {
        await settle();
        expect(connection.count('process/ack')).toBe(0);
        next = await resume(connected);
        const read = await next.next('process/read');
        expect(read.params).toMatchObject({ afterSeq: 2 });
        next.answer(read, readResult({ chunks: [chunk(3, 'last')], nextSeq: 4 }));
        next.exited('p', 4, 6);
        next.closedEvent('p', 5);
        await settle();
        expect(next.count('process/ack')).toBe(0);
      }
      seen.push(event.type === 'gap' ? -1 : event.seq);
    }
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    expect((await next?.next('process/ack'))?.params).toMatchObject({ seq: 1 });
    expect(await exit).toMatchObject({ exitCode: 6 });
    await client.close();
  });

  it.each(['control', 'observe'] as const)('closes no stdin by itself, with %s', async (attach) => {
    const reply = extendedReply('s1', { resumed: true, observeId: 'o1' });
    const connected = await connectFake({ options: { attach, resumeSessionId: 's1' }, reply });
    const { client, connection, server } = connected;
    const attaching = client.attach('p');
    connection.answer(await connection.next('process/read'), readResult());
    await attaching;
    connection.cut();
    const next = await server.accept();
    const { params } = await next.handshake(reply);
    expect(params['attach']).toBe(attach === 'observe' ? attach : undefined);
    next.answer(await next.next('process/read'), readResult());
    await settle();
    expect([connection, next].map((each) => each.count('process/write'))).toEqual([0, 0]);
    await client.close();
  });
});

describe('the states of a client', () => {
  it('are told in order, each once, with the reason of the last', async () => {
    const told: unknown[] = [];
    const onState = (state: Client['state'], error?: unknown): void => void told.push([state, isClientError(error)]);
    const connected = await connectFake({ options: { onState, maxReconnects: 2 } });
    await resume(connected);
    await settle();
    connected.server.refusal = new Error('down');
    const failed = new Promise<void>((resolve) => {
      connected.client.onState((state) => {
        if (state === 'failed') resolve();
      });
    });
    connected.server.connections.at(-1)?.cut();
    await failed;
    expect(told).toEqual([
      ['ready', false],
      ['recovering', false],
      ['ready', false],
      ['recovering', false],
      ['failed', true],
    ]);
    await connected.client.close();
  });
});
