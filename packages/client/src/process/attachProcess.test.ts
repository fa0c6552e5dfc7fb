import { ErrorCode } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import type { ProcessEvent } from '../events.js';
import { connectFake, settle, startFake } from '../testSupport/connectFake.js';
import { chunk, extendedReply, type FakeConnection, type FakeRequest, readResult } from '../testSupport/fakeServer.js';

const reply = extendedReply('s1', { resumed: true });

async function collect(events: AsyncIterable<ProcessEvent>): Promise<unknown[]> {
  const seen: unknown[] = [];
  for await (const event of events) {
    seen.push(event.type === 'gap' ? { from: event.fromSeq, through: event.throughSeq } : event.seq);
  }
  return seen;
}

function read(connection: FakeConnection): Promise<FakeRequest> {
  return connection.next('process/read');
}

describe('attaching to a process that somebody is attaching to', () => {
  it('waits for the first read and shares it', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = Promise.all([client.attach('p'), client.attach('p')]);
    connection.answer(await read(connection), readResult({ chunks: [chunk(1, 'one')], nextSeq: 2 }));
    const handles = await attaching;
    connection.closedEvent('p', 2);
    expect(await Promise.all(handles.map(collect))).toEqual([
      [1, 2],
      [1, 2],
    ]);
    expect(connection.count('process/read')).toBe(1);
    await client.close();
  });

  it('reads by itself when the first caller gives up', async () => {
    const { client, connection } = await connectFake({ reply });
    const abort = new AbortController();
    const first = client.attach('p', { signal: abort.signal });
    const others = Promise.all([client.attach('p'), client.attach('p')]);
    await read(connection);
    abort.abort();
    await expect(first).rejects.toMatchObject({ code: 'ABORTED' });
    connection.answer(await read(connection), readResult());
    const [second, third] = await others;
    connection.exited('p', 1, 7);
    expect(await second.wait()).toMatchObject({ exitCode: 7 });
    expect(await third.wait()).toMatchObject({ exitCode: 7 });
    expect(connection.count('process/read')).toBe(2);
    await client.close();
  });

  it('can be given up alone', async () => {
    const { client, connection } = await connectFake({ reply });
    const abort = new AbortController();
    const first = client.attach('p');
    const second = client.attach('p', { signal: abort.signal });
    abort.abort();
    await expect(second).rejects.toMatchObject({ code: 'ABORTED' });
    connection.answer(await read(connection), readResult());
    await first;
    await client.close();
  });

  it('fails with the client, and waits no longer', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = [client.attach('p'), client.attach('p')];
    for (const pending of attaching) pending.catch(() => undefined);
    await read(connection);
    await client.close();
    for (const pending of attaching) await expect(pending).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

describe('attaching to a process that is being started here', () => {
  it('waits for the start', async () => {
    const { client, connection } = await connectFake();
    const starting = client.start({ argv: ['x'], processId: 'p' });
    const start = await connection.next('process/start');
    const attaching = client.attach('p');
    connection.answer(start, { processId: 'p', sandboxType: 'none', pid: 42 });
    const [, attached] = await Promise.all([starting, attaching]);
    expect(attached.pid).toBe(42);
    expect(connection.count('process/read')).toBe(0);
    await client.close();
  });

  it('asks the server when the start failed', async () => {
    const { client, connection } = await connectFake();
    const starting = client.start({ argv: ['x'], processId: 'p' });
    const start = await connection.next('process/start');
    const attaching = client.attach('p');
    connection.refuse(start, ErrorCode.invalidRequest, 'taken', { reason: 'duplicateProcess' });
    await expect(starting).rejects.toMatchObject({ code: 'DUPLICATE_PROCESS' });
    connection.answer(await read(connection), readResult({ chunks: [chunk(1, 'one')], nextSeq: 2 }));
    expect((await (await attaching).events().next()).value).toMatchObject({ seq: 1 });
    await client.close();
  });
});

describe('attaching to a process that is followed from a later cursor', () => {
  it('reads what lies before it back from the server, and tells what is gone as a gap', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attach('p', { afterSeq: 4 });
    connection.answer(await read(connection), readResult({ chunks: [chunk(5, 'five')], nextSeq: 6 }));
    const late = await attaching;
    const early = await client.attach('p');
    const seen = Promise.all([collect(early), collect(late)]);
    const back = await read(connection);
    expect(back.params).toMatchObject({ afterSeq: 0 });
    const gap = { fromSeq: 1, throughSeq: 2, bytes: 9 };
    connection.answer(back, readResult({ chunks: [chunk(3, 'three')], gap, nextSeq: 4, firstRetainedSeq: 3 }));
    const more = await read(connection);
    expect(more.params).toMatchObject({ afterSeq: 3 });
    connection.answer(more, readResult({ chunks: [chunk(4, 'four'), chunk(5, 'five')], nextSeq: 6 }));
    connection.closedEvent('p', 6);
    expect(await seen).toEqual([
      [{ from: 1, through: 2 }, 3, 4, 5, 6],
      [5, 6],
    ]);
    await client.close();
  });
});

describe('attaching with a cursor behind the last event', () => {
  it('is refused before anything is acknowledged, and leaves nothing behind', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attach('p', { afterSeq: 1_000 });
    connection.answer(await read(connection), readResult({ chunks: [], nextSeq: 3 }));
    await expect(attaching).rejects.toMatchObject({
      code: 'OUTPUT_LOST',
      message: expect.stringContaining('has no event 1000 yet, its last is 2') as unknown,
      data: { processId: 'p', cursor: 1_000, lastSeq: 2 },
    });
    await settle();
    expect(connection.count('process/ack')).toBe(0);
    expect(client.gauges().processes).toBe(0);
    await client.close();
  });

  it('is refused as well where the process is followed already, which goes on', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const attaching = client.attach('p', { afterSeq: 7 });
    connection.answer(await read(connection), readResult());
    await expect(attaching).rejects.toMatchObject({ code: 'OUTPUT_LOST', data: { lastSeq: 0 } });
    connection.closedEvent('p', 1);
    expect(await collect(handle)).toEqual([1]);
    await client.close();
  });

  it('is not when it lies at the last event', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attach('p', { afterSeq: 2 });
    connection.answer(await read(connection), readResult({ nextSeq: 3 }));
    const handle = await attaching;
    connection.closedEvent('p', 3);
    expect(await collect(handle)).toEqual([3]);
    await client.close();
  });
});

describe('attaching to a process the server has let go of', () => {
  const expired = { reason: 'expiredProcess', closedSeq: 3, exit: { exitCode: 4, signal: null, reason: 'exited' } };

  it('gives a handle that is closed when the cursor lies at the close', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attach('p', { afterSeq: 3 });
    connection.refuse(await read(connection), ErrorCode.invalidRequest, 'gone', expired);
    const handle = await attaching;
    expect(await collect(handle)).toEqual([]);
    expect(await handle.wait()).toMatchObject({ exitCode: 4, reason: 'exited' });
    await handle.closed();
    await client.close();
  });

  it('fails when something is missing', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attach('p', { afterSeq: 2 });
    connection.refuse(await read(connection), ErrorCode.invalidRequest, 'gone', expired);
    await expect(attaching).rejects.toMatchObject({ code: 'SERVER_ERROR', data: { reason: 'expiredProcess' } });
    await client.close();
  });
});
