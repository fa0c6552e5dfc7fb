import { getEventListeners } from 'node:events';
import { encodeBase64 } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { connectFake, IDLE_TIMERS, settle, startFake } from '../testSupport/connectFake.js';
import { FakeClock } from '../testSupport/fakeClock.js';

const CHUNK = 200_000;

async function started(clock = new FakeClock()) {
  const { client, connection } = await connectFake({ options: { clock } });
  const handle = await startFake(client, connection, 'p');
  return { client, connection, handle, clock };
}

describe('looks at the output of a process', () => {
  it('have what came since the last one, both streams in their order, and how it ended', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const looks = handle.collect();
    connection.output('p', 1, 'one ');
    connection.output('p', 2, 'two ', 'stderr');
    connection.output('p', 3, 'three');
    await settle();
    const more = { omittedBytes: 0, lostEvents: 0, cursor: 3 };
    expect(await looks.look()).toEqual({ text: 'one two three', running: true, exit: undefined, ...more });
    expect(await looks.look()).toEqual({ text: '', running: true, exit: undefined, ...more });
    connection.output('p', 4, 'end');
    connection.exited('p', 5, 3);
    await settle();
    // Others may still write.
    expect(await looks.look()).toMatchObject({ text: 'end', running: true });
    connection.closedEvent('p', 6);
    await settle();
    const exit = { exitCode: 3, signal: undefined, reason: undefined };
    const last = { text: '', running: false, exit, ...more, cursor: 6 };
    expect(await looks.look()).toEqual(last);
    expect(await looks.look()).toEqual(last);
    await client.close();
  });

  it('wait for the end, or for output where that is asked for, and no longer than they may', async () => {
    const { client, connection, handle, clock } = await started();
    const looks = handle.collect();
    const first = looks.look({ waitMs: 1_000 });
    connection.output('p', 1, 'ready?');
    await settle();
    clock.advance(1_000);
    expect(await first).toMatchObject({ text: 'ready?', running: true });
    const second = looks.look({ waitMs: 1_000, until: 'output' });
    connection.output('p', 2, 'yes');
    expect(await second).toMatchObject({ text: 'yes', running: true });
    const last = looks.look({ waitMs: 1_000 });
    connection.exited('p', 3);
    connection.closedEvent('p', 4);
    expect(await last).toMatchObject({ text: '', running: false });
    await client.close();
    expect(clock.pending).toBe(0);
  });

  it('share nothing: of two that wait for output each has its own', async () => {
    const { client, connection, handle, clock } = await started();
    const looks = handle.collect();
    const [one, two] = [1, 2].map(() => looks.look({ waitMs: 1_000, until: 'output' }));
    connection.output('p', 1, 'first');
    await settle();
    connection.output('p', 2, 'second');
    await settle();
    expect([(await one)?.text, (await two)?.text]).toEqual(['first', 'second']);
    await client.close();
    expect(clock.pending).toBe(0);
  });

  it('say what does not fit', async () => {
    const { client, connection, handle } = await started();
    const looks = handle.collect({ maxBytes: 8 });
    connection.output('p', 1, 'beginning, ');
    connection.output('p', 2, 'middle, end');
    await settle();
    expect(await looks.look()).toMatchObject({ text: 'begi\n[14 bytes left out]\n end', omittedBytes: 14 });
    await client.close();
  });

  it('say where something was lost', async () => {
    const { client, connection, handle } = await started();
    const looks = handle.collect();
    connection.output('p', 1, 'a');
    connection.notify('process/gap', { processId: 'p', fromSeq: 2, throughSeq: 4, bytes: 10 });
    connection.output('p', 5, 'b');
    await settle();
    expect(await looks.look()).toMatchObject({ text: 'a\n[events 2 to 4 are lost]\nb', lostEvents: 3 });
    await client.close();
  });

  it('join a character over its chunks, also where the other stream comes between', async () => {
    const { client, connection, handle } = await started();
    const looks = handle.collect();
    const bytes = (seq: number, ...values: number[]): void =>
      connection.notify('process/output', {
        processId: 'p',
        seq,
        stream: 'stdout',
        chunk: encodeBase64(Uint8Array.from(values)),
      });
    bytes(1, 0xe2, 0x82);
    connection.output('p', 2, 'x', 'stderr');
    await settle();
    expect((await looks.look()).text).toBe('x');
    bytes(3, 0xac);
    bytes(4, 0xe2, 0x82);
    await settle();
    expect((await looks.look()).text).toBe('€');
    connection.exited('p', 5);
    connection.closedEvent('p', 6);
    expect((await looks.look({ waitMs: 1 })).text).toBe('\uFFFD');
    await client.close();
  });

  it('hand over what came before a failure, then the failure, each time', async () => {
    const { client, connection, handle } = await started();
    const looks = handle.collect();
    connection.output('p', 1, 'before');
    await settle();
    await client.close();
    await settle();
    expect(await looks.look({ waitMs: 1_000 })).toMatchObject({ text: 'before', running: true, exit: undefined });
    await expect(looks.look()).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(looks.look()).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('never hold back the process, and stop when told to', async () => {
    const { client, connection, handle } = await started();
    const looks = handle.collect({ maxBytes: 10 });
    for (const seq of [1, 2, 3, 4]) connection.output('p', seq, 'x'.repeat(CHUNK));
    let acknowledged: unknown;
    while (acknowledged !== 4) acknowledged = (await connection.next('process/ack')).params['seq'];
    await looks.stop();
    connection.output('p', 5, 'unseen');
    await settle();
    expect(await looks.look({ waitMs: 1_000 })).toMatchObject({ omittedBytes: 4 * CHUNK - 10, running: true });
    // Who looks until the end would otherwise do so for ever, and without a pause.
    await expect(looks.look({ waitMs: 1_000 })).rejects.toMatchObject({ code: 'ABORTED' });
    await client.close();
  });

  it('that wait with one signal have one listener on it', async () => {
    const { client, handle, clock } = await started();
    const abort = new AbortController();
    const looks = handle.collect();
    const waiting = Array.from({ length: 12 }, () => looks.look({ waitMs: 1_000, signal: abort.signal }));
    await settle();
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1);
    abort.abort();
    for (const look of waiting) await expect(look).rejects.toMatchObject({ code: 'ABORTED' });
    expect(clock.pending).toBe(IDLE_TIMERS);
    await client.close();
  });

  it('that wait are over when they are stopped, and a stop behind the end changes nothing', async () => {
    const { client, connection, handle } = await started();
    const [stopped, ended] = [handle.collect(), handle.collect()];
    const waiting = stopped.look({ waitMs: 1_000 });
    await stopped.stop();
    await expect(waiting).rejects.toMatchObject({ code: 'ABORTED' });
    connection.exited('p', 1);
    connection.closedEvent('p', 2);
    await settle();
    await ended.stop();
    expect(await ended.look()).toMatchObject({ running: false, exit: { exitCode: 0 } });
    await expect(stopped.look()).rejects.toMatchObject({ code: 'ABORTED' });
    await client.close();
  });

  it('may be given up, and lose nothing by it', async () => {
    const { client, connection, handle, clock } = await started();
    const looks = handle.collect();
    const stop = new AbortController();
    const look = looks.look({ waitMs: 1_000, signal: stop.signal });
    connection.output('p', 1, 'kept');
    await settle();
    stop.abort(new Error('enough'));
    await expect(look).rejects.toMatchObject({ code: 'ABORTED', cause: new Error('enough') });
    await expect(looks.look({ signal: stop.signal })).rejects.toMatchObject({ code: 'ABORTED' });
    expect(await looks.look()).toMatchObject({ text: 'kept', cursor: 1 });
    expect(clock.pending).toBe(IDLE_TIMERS);
    await client.close();
  });

  it('in a loop without waiting let output come', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const looks = handle.collect();
    let text = '';
    setImmediate(() => connection.output('p', 1, 'here'));
    while (text === '') ({ text } = await looks.look());
    expect(text).toBe('here');
    await client.close();
  });

  it('say where another program goes on', async () => {
    const { client, connection, handle } = await started();
    const looks = handle.collect();
    connection.output('p', 1, 'a');
    connection.output('p', 2, 'b');
    await settle();
    expect(await looks.look()).toMatchObject({ text: 'ab', cursor: 2 });
    expect(handle.cursor).toBe(0);
    await client.close();
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 28 + 1])('refuse a bound of %s', async (maxBytes) => {
    const { client, handle } = await started();
    expect(() => handle.collect({ maxBytes })).toThrow(/maxBytes cannot be used/);
    await client.close();
  });
});
