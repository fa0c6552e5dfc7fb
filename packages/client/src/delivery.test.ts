import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import type { ProcessEvent } from './events.js';
import { HOLE_MS } from './registry/catchUp.js';
import { connectFake, foreignReply, IDLE_TIMERS, settle, startFake } from './testSupport/connectFake.js';
import { FakeClock } from './testSupport/fakeClock.js';
import { chunk, readResult } from './testSupport/fakeServer.js';

const decoder = new TextDecoder();

/** `1:one` output, `x3=0` exit, `c4` close, `g1-2` gap. */
function short(event: ProcessEvent): string {
  switch (event.type) {
    case 'output':
      return `${event.seq}:${decoder.decode(event.bytes).slice(0, 10)}`;
    case 'exited':
      return `x${event.seq}=${event.exitCode}`;
    case 'closed':
      return `c${event.seq}`;
    case 'gap':
      return `g${event.fromSeq}-${event.throughSeq}`;
    default:
      return event satisfies never;
  }
}

async function collect(events: AsyncIterable<ProcessEvent>): Promise<string[]> {
  const seen: string[] = [];
  for await (const event of events) seen.push(short(event));
  return seen;
}

describe('order', () => {
  it('delivers events in seq order when pushes arrive shuffled', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    connection.closedEvent('p', 4);
    connection.output('p', 1, 'one');
    connection.exited('p', 3);
    connection.output('p', 2, 'two', 'stderr');
    expect(await collect(handle)).toEqual(['1:one', '2:two', 'x3=0', 'c4']);
    expect(handle.cursor).toBe(4);
    await client.close();
  });

  it('finds a home for events that arrive before the answer to their start', async () => {
    const { client, connection } = await connectFake();
    const starting = client.start({ argv: ['x'], processId: 'p' });
    const request = await connection.next('process/start');
    connection.output('p', 1, 'early');
    connection.exited('p', 2, 5);
    connection.closedEvent('p', 3);
    connection.answer(request, { processId: 'p', sandboxType: 'none', pid: 42 });
    const handle = await starting;
    expect(await collect(handle)).toEqual(['1:early', 'x2=5', 'c3']);
    expect(handle.pid).toBe(42);
    await client.close();
  });

  it('is not delayed for one process by the flood of another, nor by a hole in it', async () => {
    const { client, connection } = await connectFake();
    await startFake(client, connection, 'noisy');
    const quiet = await startFake(client, connection, 'quiet');
    for (let seq = 2; seq <= 4_097; seq++) connection.output('noisy', seq, 'x');
    connection.exited('quiet', 1, 17);
    expect(await quiet.wait()).toEqual({ exitCode: 17, signal: undefined });
    await client.close();
  });

  it('drops doubles and what belongs to nobody, and ignores notifications it does not know', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    connection.output('stranger', 1, 'x');
    connection.notify('process/later', { any: 'thing' });
    connection.output('p', 1, 'one');
    connection.output('p', 1, 'uno');
    connection.closedEvent('p', 2);
    expect(await collect(handle)).toEqual(['1:one', 'c2']);
    await client.close();
  });
});

describe('consumers', () => {
  it('see the events from the start, however late they come', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    connection.output('p', 1, 'one');
    connection.exited('p', 2);
    connection.closedEvent('p', 3);
    await handle.closed();
    expect(await collect(handle)).toEqual(['1:one', 'x2=0', 'c3']);
    expect(await collect(handle)).toEqual(['1:one', 'x2=0', 'c3']);
    expect(await collect(handle.events({ afterSeq: 1 }))).toEqual(['x2=0', 'c3']);
    await client.close();
  });

  it('read again from the server what the client has dropped', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const big = 'b'.repeat(limits.CLIENT_TAIL_BYTES / 2);
    for (const seq of [1, 2, 3]) connection.output('p', seq, big);
    connection.closedEvent('p', 4);
    await handle.closed();
    const collected = collect(handle);
    const read = await connection.next('process/read');
    expect(read.params).toMatchObject({ processId: 'p', afterSeq: 0 });
    connection.answer(
      read,
      readResult({ chunks: [chunk(2, 'again')], gap: { fromSeq: 1, throughSeq: 1, bytes: 3 }, nextSeq: 3 }),
    );
    expect(await collected).toEqual(['g1-1', '2:again', '3:bbbbbbbbbb', 'c4']);
    await client.close();
  });

  it('get a gap for what neither the client nor the server has', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const big = 'b'.repeat(limits.CLIENT_TAIL_BYTES);
    for (const seq of [1, 2]) connection.output('p', seq, big);
    connection.closedEvent('p', 3);
    await handle.closed();
    const collected = collect(handle);
    connection.refuse(await connection.next('process/read'), -32600, 'expired', { reason: 'expiredProcess' });
    expect(await collected).toEqual(['g1-2', 'c3']);
    await client.close();
  });

  it('are independent: leaving one loop does not end the other', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const all = collect(handle);
    connection.output('p', 1, 'one');
    for await (const event of handle) {
      expect(short(event)).toBe('1:one');
      break;
    }
    connection.closedEvent('p', 2);
    expect(await all).toEqual(['1:one', 'c2']);
    await client.close();
  });

  it('can stop while they wait', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const events = handle.events();
    const waiting = events.next();
    await events.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await client.close();
  });

  it('decode text across chunk borders', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    connection.notify('process/output', { processId: 'p', seq: 1, stream: 'stdout', chunk: 'w6TD' });
    connection.output('p', 2, 'other', 'stderr');
    connection.notify('process/output', { processId: 'p', seq: 3, stream: 'stdout', chunk: 'tiE=' });
    connection.closedEvent('p', 4);
    const pieces: string[] = [];
    for await (const piece of handle.text()) pieces.push(piece);
    expect(pieces).toEqual(['ä', 'ö!']);
    await client.close();
  });
});

describe('exit and close', () => {
  it('tells the exit before the close, with code and signal', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const waiting = handle.wait();
    connection.notify('process/exited', {
      processId: 'p',
      seq: 1,
      exitCode: 137,
      sandboxDenied: false,
      signal: 'SIGKILL',
    });
    expect(await waiting).toEqual({ exitCode: 137, signal: 'SIGKILL' });
    const closed = handle.closed();
    connection.output('p', 2, 'late');
    connection.closedEvent('p', 3);
    await closed;
    expect(await handle.wait()).toEqual({ exitCode: 137, signal: 'SIGKILL' });
    await client.close();
  });

  it('frees the id for another process, whose events are its own', async () => {
    const { client, connection } = await connectFake();
    const first = await startFake(client, connection, 'p');
    connection.exited('p', 1, 1);
    connection.closedEvent('p', 2);
    await first.closed();
    const second = await startFake(client, connection, 'p');
    connection.exited('p', 1, 2);
    expect(await second.wait()).toMatchObject({ exitCode: 2 });
    expect(await first.wait()).toMatchObject({ exitCode: 1 });
    await client.close();
  });
});

describe('gaps', () => {
  it('are events, and the rest goes on', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    connection.notify('process/gap', { processId: 'p', fromSeq: 1, throughSeq: 7, bytes: 70 });
    connection.output('p', 8, 'eight');
    connection.closedEvent('p', 9);
    const [first] = [await handle.events().next()];
    expect(first?.value).toEqual({ type: 'gap', fromSeq: 1, throughSeq: 7, bytes: 70 });
    expect(await collect(handle)).toEqual(['g1-7', '8:eight', 'c9']);
    await client.close();
  });

  it('are errors where that is wanted, and iterating can go on behind them', async () => {
    const { client, connection } = await connectFake({ options: { errorOnGap: true } });
    const handle = await startFake(client, connection, 'p');
    connection.output('p', 1, 'one');
    connection.notify('process/gap', { processId: 'p', fromSeq: 2, throughSeq: 7 });
    connection.closedEvent('p', 8);
    await expect(collect(handle)).rejects.toMatchObject({
      code: 'OUTPUT_LOST',
      data: { cursor: 1, fromSeq: 2, throughSeq: 7 },
    });
    expect(await collect(handle.events({ afterSeq: 7 }))).toEqual(['c8']);
    await client.close();
  });
});

describe('acknowledgements', () => {
  const piece = 'p'.repeat(limits.ACK_EVERY_BYTES / 2);

  it('are sent on arrival for a handle nobody iterates', async () => {
    const { client, connection } = await connectFake();
    await startFake(client, connection, 'p');
    connection.output('p', 1, piece);
    connection.output('p', 2, piece);
    expect((await connection.next('process/ack')).params).toEqual({ processId: 'p', seq: 2 });
    connection.exited('p', 3);
    expect((await connection.next('process/ack')).params).toEqual({ processId: 'p', seq: 3 });
    connection.closedEvent('p', 4);
    expect((await connection.next('process/ack')).params).toEqual({ processId: 'p', seq: 4 });
    await client.close();
  });

  it('are withheld while a consumer lags, and sent as it takes the events', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const events = handle.events();
    const first = events.next();
    for (const seq of [1, 2, 3, 4]) connection.output('p', seq, piece);
    await first;
    await settle();
    expect(connection.count('process/ack')).toBe(0);
    await events.next();
    await settle();
    // What the caller may still have in hand is not acknowledged before he comes back.
    expect(connection.count('process/ack')).toBe(0);
    await events.next();
    expect((await connection.next('process/ack')).params).toEqual({ processId: 'p', seq: 2 });
    await events.return?.();
    expect((await connection.next('process/ack')).params).toEqual({ processId: 'p', seq: 4 });
    await client.close();
  });

  it('cover nothing a consumer has not taken when its client is detached in the same turn', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    for (const seq of [1, 2, 3]) connection.output('p', seq, piece);
    for await (const { type } of handle) {
      expect(type).toBe('output');
      break;
    }
    expect(handle.cursor).toBe(1);
    await client.detach();
    await connection.closed;
    expect(connection.count('process/ack')).toBe(0);
  });

  it('are never sent to a foreign server, which ends the connection on them', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    const handle = await startFake(client, connection, 'p');
    for (const seq of [1, 2, 3, 4]) connection.output('p', seq, piece);
    connection.exited('p', 5);
    connection.closedEvent('p', 6);
    await handle.closed();
    await settle();
    expect(connection.received.filter(({ id }) => id === 0).map(({ method }) => method)).toEqual(['initialized']);
    await client.close();
  });
});

describe('repairs', () => {
  it('reads from the cursor when a hole stays', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const handle = await startFake(client, connection, 'p');
    connection.output('p', 1, 'one');
    connection.output('p', 3, 'three');
    await settle();
    clock.advance(HOLE_MS);
    const read = await connection.next('process/read');
    expect(read.params).toMatchObject({ processId: 'p', afterSeq: 1 });
    connection.answer(read, readResult({ chunks: [chunk(2, 'two'), chunk(3, 'drei')], nextSeq: 4 }));
    connection.closedEvent('p', 4);
    expect(await collect(handle)).toEqual(['1:one', '2:two', '3:three', 'c4']);
    expect(clock.pending).toBe(IDLE_TIMERS);
    await client.close();
  });

  it('does not read when the hole was only a matter of order', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    await startFake(client, connection, 'p');
    connection.output('p', 2, 'two');
    connection.output('p', 1, 'one');
    await settle();
    clock.advance(HOLE_MS);
    await settle();
    expect(connection.count('process/read')).toBe(0);
    await client.close();
  });

  it('reads at once what it had to drop', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const handle = await startFake(client, connection, 'p');
    const big = 'b'.repeat(limits.REORDER_BYTES / 2);
    for (const seq of [2, 3, 4]) connection.output('p', seq, big);
    await settle();
    clock.advance(0);
    const read = await connection.next('process/read');
    connection.answer(read, readResult({ chunks: [chunk(1, 'one'), chunk(4, 'four')], nextSeq: 5 }));
    await settle();
    connection.closedEvent('p', 5);
    await handle.closed();
    expect(await collect(handle.events({ afterSeq: 3 }))).toEqual(['4:four', 'c5']);
    await client.close();
  });
});

describe('attach', () => {
  it('goes on behind a cursor', async () => {
    const { client, connection } = await connectFake();
    const attaching = client.attach('old', { afterSeq: 5 });
    const read = await connection.next('process/read');
    expect(read.params).toMatchObject({ processId: 'old', afterSeq: 5 });
    connection.answer(read, readResult({ chunks: [chunk(6, 'six')], nextSeq: 7 }));
    const handle = await attaching;
    connection.exited('old', 7, 3);
    connection.closedEvent('old', 8);
    expect(await collect(handle)).toEqual(['6:six', 'x7=3', 'c8']);
    expect(handle.pid).toBeUndefined();
    await client.close();
  });

  it('knows how a process ended whose exit and close lie behind the cursor', async () => {
    const { client, connection } = await connectFake();
    const attaching = client.attach('old', { afterSeq: 8 });
    const ended = { exited: true, exitCode: 3, exitedSeq: 7, closed: true, nextSeq: 9 };
    connection.answer(await connection.next('process/read'), readResult(ended));
    const handle = await attaching;
    expect(await handle.wait()).toEqual({ exitCode: 3, signal: undefined });
    expect(await collect(handle)).toEqual([]);
    await client.close();
  });

  it('shares the record of a process this client follows already', async () => {
    const { client, connection } = await connectFake();
    await startFake(client, connection, 'p');
    connection.output('p', 1, 'one');
    connection.closedEvent('p', 2);
    const handle = await client.attach('p', { afterSeq: 1 });
    expect(await collect(handle)).toEqual(['c2']);
    expect(connection.count('process/read')).toBe(0);
    await client.close();
  });

  it('rejects for a process the session does not have, and can be tried again', async () => {
    const { client, connection } = await connectFake();
    for (let round = 0; round < 2; round++) {
      const attaching = client.attach('none');
      connection.refuse(await connection.next('process/read'), -32600, 'unknown process id none', {
        reason: 'unknownProcess',
      });
      await expect(attaching).rejects.toMatchObject({ code: 'SERVER_ERROR', data: { reason: 'unknownProcess' } });
    }
    await client.close();
  });
});
