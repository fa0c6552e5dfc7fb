import { describe, expect, it } from 'vitest';
import { HOLE_MS } from '../registry/catchUp.js';
import { connectFake, foreignReply, IDLE_TIMERS, settle, startFake } from '../testSupport/connectFake.js';
import { FakeClock } from '../testSupport/fakeClock.js';
import { chunk, extendedReply, readResult } from '../testSupport/fakeServer.js';

/** Whether a promise has resolved by now. */
async function isDone(promise: Promise<void>): Promise<boolean> {
  let done = false;
  void promise.then(() => (done = true));
  await settle();
  return done;
}

describe('a flush', () => {
  it('resolves when the answer finds everything there', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const flushing = handle.flush();
    const request = await connection.next('process/flush');
    expect(request.params).toEqual({ processId: 'p' });
    connection.output('p', 1, 'one');
    connection.output('p', 2, 'two');
    connection.answer(request, { throughSeq: 2 });
    await flushing;
    const events = handle.events();
    expect([(await events.next()).value, (await events.next()).value]).toMatchObject([{ seq: 1 }, { seq: 2 }]);
    await client.close();
  });

  it('waits while a hole is mended', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const handle = await startFake(client, connection, 'p');
    const flushing = handle.flush();
    connection.output('p', 2, 'two');
    connection.answer(await connection.next('process/flush'), { throughSeq: 2 });
    expect(await isDone(flushing)).toBe(false);
    connection.output('p', 1, 'one');
    await flushing;
    expect(clock.pending).toBe(IDLE_TIMERS + 1);
    clock.advance(HOLE_MS);
    await settle();
    expect([clock.pending, connection.count('process/read')]).toEqual([IDLE_TIMERS, 0]);
    await client.close();
  });

  it('reads what no push has brought, although nothing beyond it is known', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const handle = await startFake(client, connection, 'p');
    const flushing = handle.flush();
    connection.answer(await connection.next('process/flush'), { throughSeq: 1 });
    expect(await isDone(flushing)).toBe(false);
    clock.advance(HOLE_MS);
    connection.answer(await connection.next('process/read'), readResult({ chunks: [chunk(1, 'one')], nextSeq: 2 }));
    await flushing;
    await client.close();
  });

  it('asks again after a cut', async () => {
    const connected = await connectFake();
    const handle = await startFake(connected.client, connected.connection, 'p');
    const flushing = handle.flush();
    await connected.connection.next('process/flush');
    connected.connection.cut();
    const next = await connected.server.accept();
    await next.handshake(extendedReply('s1', { resumed: true }));
    next.answer(await next.next('process/read'), readResult({ chunks: [chunk(1, 'one')], nextSeq: 2 }));
    next.answer(await next.next('process/flush'), { throughSeq: 1 });
    await flushing;
    await connected.client.close();
  });

  it('is over when the process has closed, which the server may have forgotten', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const flushing = handle.flush();
    connection.answer(await connection.next('process/flush'), { throughSeq: 9 });
    await settle();
    connection.closedEvent('p', 1);
    await flushing;
    await handle.flush();
    expect(connection.count('process/flush')).toBe(1);
    await client.close();
  });

  it('rejects when nothing more comes, when its caller gives up, and when its time is over', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const handle = await startFake(client, connection, 'p');
    const abort = new AbortController();
    const flushes = [handle.flush({ signal: abort.signal }), handle.flush({ timeoutMs: 10 }), handle.flush()] as const;
    for (const flushing of flushes) {
      flushing.catch(() => undefined);
      connection.answer(await connection.next('process/flush'), { throughSeq: 1 });
    }
    await settle();
    abort.abort();
    await expect(flushes[0]).rejects.toMatchObject({ code: 'ABORTED' });
    clock.advance(10);
    await expect(flushes[1]).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' });
    const closing = client.close();
    await expect(flushes[2]).rejects.toMatchObject({ code: 'CLOSED', data: { processId: 'p' } });
    await closing;
    expect(client.gauges().pendingCalls).toBe(0);
  });

  it('is not sent to a foreign server', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    const handle = await startFake(client, connection, 'p');
    await expect(handle.flush()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(connection.count('process/flush')).toBe(0);
    await client.close();
  });
});
