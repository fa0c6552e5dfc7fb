import { ErrorCode } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import type { ProcessEvent } from './events.js';
import { connectFake, foreignReply, settle, startFake } from './testSupport/connectFake.js';
import { chunk, extendedReply, type FakeConnection, readResult } from './testSupport/fakeServer.js';

const reply = extendedReply('s1', { resumed: true });

function summary(processId: string): object {
  const listed = { processId, argv: ['x'], tty: false, state: 'running', startedAtMs: 1, outputBytes: 0 };
  return { ...listed, retainedBytes: 0, firstRetainedSeq: 1, nextSeq: 1, stdinBytes: 0 };
}

async function list(connection: FakeConnection, ...processIds: string[]): Promise<void> {
  connection.answer(await connection.next('process/list'), { processes: processIds.map(summary), epoch: 'epoch-1' });
}

/** Answers so many reads by process id; undefined refuses as unknown. */
async function answerReads(connection: FakeConnection, answers: Readonly<Record<string, object>>): Promise<object> {
  const cursors: Record<string, unknown> = {};
  for (let reads = 0; reads < Object.keys(answers).length; reads++) {
    const read = await connection.next('process/read');
    const { processId, afterSeq } = read.params;
    cursors[String(processId)] = afterSeq;
    const answer = answers[String(processId)];
    if (answer === undefined) throw new Error(`a read of ${String(processId)}`);
    if ('reason' in answer) connection.refuse(read, ErrorCode.invalidRequest, 'gone', answer);
    else connection.answer(read, answer);
  }
  return cursors;
}

async function collect(events: AsyncIterable<ProcessEvent> | undefined): Promise<number[]> {
  const seen: number[] = [];
  for await (const event of events ?? []) seen.push(event.type === 'gap' ? -event.throughSeq : event.seq);
  return seen;
}

describe('attaching to all processes of a session', () => {
  it('gives a handle for each, beginning behind its cursor or at its first event', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attachAll({ after: { old: 7 } });
    await list(connection, 'old', 'fresh');
    const cursors = await answerReads(connection, {
      old: readResult({ chunks: [chunk(8, 'eight')], nextSeq: 9 }),
      fresh: readResult({ chunks: [chunk(1, 'one')], nextSeq: 2 }),
    });
    expect(cursors).toEqual({ old: 7, fresh: 0 });
    const all = await attaching;
    expect([...all.keys()].sort()).toEqual(['fresh', 'old']);
    const reading = [...all].map(async ([id, handle]) => [id, await collect(handle)]);
    connection.closedEvent('old', 9);
    connection.closedEvent('fresh', 2);
    expect(Object.fromEntries(await Promise.all(reading))).toEqual({ old: [8, 9], fresh: [1, 2] });
    await client.close();
  });

  it('acknowledges nothing before the caller could begin to read', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attachAll();
    await list(connection, 'a', 'b');
    const big = readResult({ chunks: [chunk(1, 'x'.repeat(300_000))], nextSeq: 2 });
    const first = await connection.next('process/read');
    const second = await connection.next('process/read');
    connection.answer(first, big);
    // The answer is large, so there may be more.
    connection.answer(await connection.next('process/read'), readResult({ nextSeq: 2 }));
    await settle();
    expect(connection.count('process/ack')).toBe(0);
    connection.answer(second, readResult());
    const all = await attaching;
    const events = all.get(String(first.params['processId']))?.events();
    const next = events?.next();
    expect((await next)?.value).toMatchObject({ seq: 1 });
    await settle();
    expect(connection.count('process/ack')).toBe(0);
    events?.next().catch(() => undefined);
    expect((await connection.next('process/ack')).params).toMatchObject({ seq: 1 });
    await client.close();
  });

  it('reports what the server has let go of, with its exit where that is known, and never skips it', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attachAll({ after: { expired: 3, never: 5 } });
    await list(connection, 'running');
    const exit = { exitCode: 4, signal: null, reason: 'exited' };
    await answerReads(connection, {
      running: readResult(),
      expired: { reason: 'expiredProcess', exit },
      never: { reason: 'unknownProcess' },
    });
    const all = await attaching;
    expect(all.size).toBe(3);
    expect(await all.get('expired')?.wait()).toMatchObject({ exitCode: 4, reason: 'exited' });
    const lost = { code: 'OUTPUT_LOST', data: { processId: 'expired', cursor: 3, reason: 'expiredProcess' } };
    await expect(all.get('expired')?.events().next()).rejects.toMatchObject(lost);
    const unknown = { code: 'OUTPUT_LOST', data: { processId: 'never', cursor: 5, reason: 'unknownProcess' } };
    await expect(all.get('never')?.wait()).rejects.toMatchObject(unknown);
    expect(client.gauges().processes).toBe(1);
    await client.close();
  });

  it('shares the records of processes this client follows already', async () => {
    const { client, connection } = await connectFake();
    const started = await startFake(client, connection, 'p');
    const attaching = client.attachAll();
    await list(connection, 'p');
    const attached = (await attaching).get('p');
    connection.output('p', 1, 'one');
    connection.closedEvent('p', 2);
    expect(attached === undefined ? [] : await collect(attached)).toEqual([1, 2]);
    expect(await collect(started)).toEqual([1, 2]);
    await client.close();
  });

  it('leaves nothing behind when it fails', async () => {
    const { client, connection } = await connectFake({ reply });
    const abort = new AbortController();
    const attaching = client.attachAll({ signal: abort.signal });
    await list(connection, 'a', 'b');
    connection.answer(await connection.next('process/read'), readResult());
    await connection.next('process/read');
    await settle();
    abort.abort();
    await expect(attaching).rejects.toMatchObject({ code: 'ABORTED' });
    expect(client.gauges().processes).toBe(0);
    await client.close();
  });

  it('fails the handle alone whose cursor lies behind the last event, and gives the others', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attachAll({ after: { ahead: 1_000 } });
    await list(connection, 'ahead', 'other');
    await answerReads(connection, { ahead: readResult({ nextSeq: 3 }), other: readResult() });
    const all = await attaching;
    const error = { code: 'OUTPUT_LOST', data: { processId: 'ahead', lastSeq: 2 } };
    await expect(all.get('ahead')?.wait()).rejects.toMatchObject(error);
    await expect(all.get('ahead')?.events().next()).rejects.toMatchObject(error);
    connection.closedEvent('other', 1);
    expect(await collect(all.get('other'))).toEqual([1]);
    expect(connection.received.filter(({ params }) => params['seq'] === 1_000)).toEqual([]);
    await client.close();
  });

  it('gives a closed handle for what was read to its close, though the server has let go of it', async () => {
    const { client, connection } = await connectFake({ reply });
    const attaching = client.attachAll({ after: { whole: 3, part: 2 } });
    await list(connection);
    const expired = { reason: 'expiredProcess', closedSeq: 3, exit: { exitCode: 4, signal: null, reason: 'exited' } };
    await answerReads(connection, { whole: expired, part: expired });
    const all = await attaching;
    expect(await collect(all.get('whole'))).toEqual([]);
    expect(await all.get('whole')?.wait()).toMatchObject({ exitCode: 4 });
    expect(await all.get('whole')?.closed()).toEqual({});
    await all.get('whole')?.flush();
    await expect(all.get('part')?.events().next()).rejects.toMatchObject({ code: 'OUTPUT_LOST', data: { cursor: 2 } });
    expect(client.gauges().processes).toBe(0);
    await client.close();
  });

  it('waits for a start that is under way', async () => {
    const { client, connection } = await connectFake();
    const starting = client.start({ argv: ['x'], processId: 'p' });
    const start = await connection.next('process/start');
    const attaching = client.attachAll();
    await list(connection, 'p');
    await settle();
    expect(connection.count('process/read')).toBe(0);
    connection.answer(start, { processId: 'p', sandboxType: 'none', pid: 1 });
    const [handle, all] = await Promise.all([starting, attaching]);
    connection.closedEvent('p', 1);
    expect(await collect(handle)).toEqual([1]);
    expect(await collect(all.get('p'))).toEqual([1]);
    await client.close();
  });

  it('does not take away what somebody else follows when it fails', async () => {
    const { client, connection } = await connectFake({ reply });
    const abort = new AbortController();
    const attaching = client.attachAll({ signal: abort.signal });
    attaching.catch(() => undefined);
    await list(connection, 'a', 'b');
    connection.answer(await connection.next('process/read'), readResult());
    await settle();
    const other = await client.attach('a');
    abort.abort();
    await expect(attaching).rejects.toMatchObject({ code: 'ABORTED' });
    connection.exited('a', 1, 3);
    expect(await other.wait()).toMatchObject({ exitCode: 3 });
    expect(client.gauges().processes).toBe(1);
    await client.close();
  });

  it('is not supported by a foreign server, which has no list', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    await expect(client.attachAll()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(connection.count('process/list')).toBe(0);
    await client.close();
  });
});
