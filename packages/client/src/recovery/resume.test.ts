import { ErrorCode, limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import type { ProcessEvent } from '../events.js';
import { type Connected, connectFake, foreignReply, settle, startFake } from '../testSupport/connectFake.js';
import { FakeClock } from '../testSupport/fakeClock.js';
import { chunk, EPOCH, extendedReply, type FakeConnection, readResult } from '../testSupport/fakeServer.js';

async function seqs(events: AsyncIterable<ProcessEvent>): Promise<number[]> {
  const seen: number[] = [];
  for await (const event of events) seen.push(event.type === 'gap' ? -event.throughSeq : event.seq);
  return seen;
}

/** An entry of `process/list`. */
function summary(processId: string): Record<string, unknown> {
  const counts = { startedAtMs: 1, outputBytes: 0, retainedBytes: 0, firstRetainedSeq: 1, nextSeq: 1, stdinBytes: 0 };
  return { processId, argv: ['x'], tty: false, state: 'running', ...counts };
}

/** Cuts the connection and takes the client's next one, handshake included. */
async function resume(
  { server, connection }: Connected,
  reply: unknown = extendedReply('s1', { resumed: true }),
): Promise<FakeConnection> {
  connection.cut();
  const next = await server.accept();
  const initialize = await next.handshake(reply);
  expect(initialize.params['resumeSessionId']).toBe('s1');
  return next;
}

describe('a resume', () => {
  it('keeps the client and its handles, and delivers every event once', async () => {
    const connected = await connectFake();
    const { client, connection } = connected;
    const states: string[] = [];
    client.onState((state) => states.push(state));
    const handle = await startFake(client, connection, 'p');
    const all = seqs(handle);
    connection.output('p', 1, 'one');
    connection.output('p', 2, 'two');
    await settle();

    const next = await resume(connected);
    const read = await next.next('process/read');
    expect(read.params).toMatchObject({ processId: 'p', afterSeq: 2 });
    // A push beyond what the answer covers, and doubles of what it has.
    next.output('p', 5, 'five');
    next.output('p', 3, 'three');
    next.answer(read, readResult({ chunks: [chunk(3, 'three'), chunk(4, 'four')], nextSeq: 5 }));
    next.output('p', 4, 'four');
    next.exited('p', 6);
    next.closedEvent('p', 7);
    expect(await all).toEqual([1, 2, 3, 4, 5, 6, 7]);
    await settle();
    expect(states).toEqual(['recovering', 'ready']);
    expect(client.sessionId).toBe('s1');
    await client.close();
  });

  it('takes pushes that come before the answer to initialize', async () => {
    const connected = await connectFake();
    const { client, connection, server } = connected;
    const handle = await startFake(client, connection, 'p');
    const all = seqs(handle);
    connection.cut();
    const next = await server.accept();
    const initialize = await next.next('initialize');
    for (let seq = 1; seq <= 1_000; seq++) next.output('p', seq, 'x');
    next.answer(initialize, extendedReply('s1', { resumed: true }));
    const read = await next.next('process/read');
    next.answer(read, readResult({ nextSeq: 1_001 }));
    next.closedEvent('p', 1_001);
    expect((await all).length).toBe(1_001);
    await client.close();
  });

  it('says exactly what the server no longer has, and goes on behind it', async () => {
    const connected = await connectFake();
    const handle = await startFake(connected.client, connected.connection, 'p');
    const all = seqs(handle);
    const next = await resume(connected);
    const lost = { gap: { fromSeq: 1, throughSeq: 40, bytes: 1_000 }, chunks: [chunk(41, 'x')], nextSeq: 42 };
    next.answer(await next.next('process/read'), readResult(lost));
    next.closedEvent('p', 42);
    expect(await all).toEqual([-40, 41, 42]);
    await connected.client.close();
  });

  it('infers the exit where a foreign server does not place it', async () => {
    const connected = await connectFake({ reply: foreignReply });
    const handle = await startFake(connected.client, connected.connection, 'p');
    const next = await resume(connected, foreignReply);
    const answer = { chunks: [chunk(1, 'a'), chunk(3, 'late')], exited: true, exitCode: 9, closed: true, nextSeq: 5 };
    next.answer(await next.next('process/read'), readResult(answer));
    expect(await handle.wait()).toMatchObject({ exitCode: 9 });
    expect(await seqs(handle)).toEqual([1, 2, 3, 4]);
    await connected.client.close();
  });

  it('acknowledges again what it has, since the last acknowledgement may be lost', async () => {
    const connected = await connectFake();
    await startFake(connected.client, connected.connection, 'p');
    connected.connection.output('p', 1, 'one');
    await settle();
    const next = await resume(connected);
    next.answer(await next.next('process/read'), readResult({ nextSeq: 2 }));
    expect((await next.next('process/ack')).params).toEqual({ processId: 'p', seq: 1 });
    await connected.client.close();
  });

  it('fails only the process the server has forgotten', async () => {
    const connected = await connectFake();
    const lost = await startFake(connected.client, connected.connection, 'lost');
    const kept = await startFake(connected.client, connected.connection, 'kept');
    const next = await resume(connected);
    for (let reads = 0; reads < 2; reads++) {
      const read = await next.next('process/read');
      if (read.params['processId'] === 'kept') next.answer(read, readResult());
      else next.refuse(read, ErrorCode.invalidRequest, 'unknown', { reason: 'unknownProcess' });
    }
    await expect(lost.wait()).rejects.toMatchObject({ code: 'OUTPUT_LOST', data: { processId: 'lost', cursor: 0 } });
    next.exited('kept', 1, 4);
    expect(await kept.wait()).toMatchObject({ exitCode: 4 });
    await connected.client.close();
  });

  it('tries again when the connection is lost while catching up', async () => {
    const connected = await connectFake();
    const handle = await startFake(connected.client, connected.connection, 'p');
    const second = await resume(connected);
    await second.next('process/read');
    second.cut();
    const third = await connected.server.accept();
    await third.handshake(extendedReply('s1', { resumed: true }));
    third.answer(await third.next('process/read'), readResult({ exited: true, exitCode: 0, exitedSeq: 1, nextSeq: 2 }));
    expect(await handle.wait()).toMatchObject({ exitCode: 0 });
    await connected.client.close();
  });

  it('tries again while the session still looks attached elsewhere', async () => {
    const connected = await connectFake();
    connected.connection.cut();
    const second = await connected.server.accept();
    second.refuse(await second.next('initialize'), ErrorCode.attachedElsewhere, 'attached', {
      reason: 'attachedElsewhere',
    });
    const third = await connected.server.accept();
    await third.handshake(extendedReply('s1', { resumed: true }));
    await connected.client.call('environment/status', {}, { timeoutMs: 0 }).catch(() => undefined);
    expect(connected.client.state).toBe('ready');
    await connected.client.close();
  });

  it('does not come back to a server that stops: the session ends with it', async () => {
    const { client, connection, server } = await connectFake();
    connection.cut();
    const second = await server.accept();
    second.refuse(await second.next('initialize'), ErrorCode.internal, 'the server is shutting down', {
      reason: 'serverStopping',
    });
    await settle();
    expect(client.failure).toMatchObject({ code: 'SERVER_GONE', data: { retryable: false } });
    expect(server.dials).toBe(2);
    await client.close();
  });

  it('follows a message that is not of the protocol, up to a limit', async () => {
    const connected = await connectFake();
    const { client, server } = connected;
    let { connection } = connected;
    for (let round = 0; round < 3; round++) {
      if (round % 2 === 0) connection.raw('no json');
      else connection.notify('process/output', { processId: 'p', seq: 1, stream: 'stdout', chunk: '*' });
      connection = await server.accept();
      await connection.handshake(extendedReply('s1', { resumed: true }));
      await settle();
    }
    connection.raw('{"id":999,"result":{}}');
    await settle();
    expect(client.failure).toMatchObject({ code: 'PROTOCOL_VIOLATION' });
  });
});

describe('calls during a cut', () => {
  it('wait and go on', async () => {
    const connected = await connectFake();
    connected.connection.cut();
    const status = connected.client.call('environment/status', {});
    const starting = connected.client.start({ argv: ['x'], processId: 'later' });
    const next = await connected.server.accept();
    await next.handshake(extendedReply('s1', { resumed: true }));
    next.answer(await next.next('environment/status'), { status: 'ready' });
    expect(await status).toEqual({ status: 'ready' });
    await next.start();
    expect((await starting).processId).toBe('later');
    await connected.client.close();
  });

  it('are sent again when asking twice changes nothing', async () => {
    const connected = await connectFake();
    const handle = await startFake(connected.client, connected.connection, 'p');
    const terminating = handle.terminate();
    await connected.connection.next('process/terminate');
    const next = await resume(connected);
    next.answer(await next.next('process/read'), readResult());
    next.answer(await next.next('process/terminate'), { running: false });
    expect(await terminating).toEqual({ running: false });
    await connected.client.close();
  });

  it('end with an unknown outcome when nothing identifies their effect', async () => {
    const connected = await connectFake();
    const handle = await startFake(connected.client, connected.connection, 'p');
    const signalling = handle.signal('SIGTERM');
    signalling.catch(() => undefined);
    await connected.connection.next('process/signal');
    const next = await resume(connected);
    next.answer(await next.next('process/read'), readResult());
    await expect(signalling).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      data: { method: 'process/signal', processId: 'p' },
    });
    expect(next.count('process/signal')).toBe(0);
    await connected.client.close();
  });
});

describe('writes over a cut', () => {
  it('repeat the one that was not answered under its name, and keep the order', async () => {
    const connected = await connectFake();
    const handle = await startFake(connected.client, connected.connection, 'p');
    const writes = Promise.all([handle.write('one'), handle.write('two'), handle.end()]);
    const first = await connected.connection.next('process/write');
    const next = await resume(connected);
    next.answer(await next.next('process/read'), readResult());
    const repeated = await next.next('process/write');
    expect(repeated.params).toEqual(first.params);
    next.answer(repeated, { status: 'accepted' });
    const second = await next.next('process/write');
    expect(second.params).toMatchObject({ chunk: 'dHdv' });
    expect(second.params['writeId']).not.toBe(first.params['writeId']);
    next.answer(second, { status: 'accepted' });
    const end = await next.next('process/write');
    expect(end.params).toMatchObject({ chunk: '', eof: true });
    next.answer(end, { status: 'accepted' });
    await writes;
    await connected.client.close();
  });

  it('send what was written during the cut once', async () => {
    const connected = await connectFake();
    const handle = await startFake(connected.client, connected.connection, 'p');
    connected.connection.cut();
    const ended = handle.end('last words');
    const next = await connected.server.accept();
    await next.handshake(extendedReply('s1', { resumed: true }));
    next.answer(await next.next('process/read'), readResult());
    const write = await next.next('process/write');
    expect(write.params).toMatchObject({ eof: true });
    next.answer(write, { status: 'accepted' });
    await ended;
    expect(next.count('process/write')).toBe(1);
    await connected.client.close();
  });
});

describe('a start whose answer was cut', () => {
  it('is adopted when it took place', async () => {
    const connected = await connectFake();
    const starting = connected.client.start({ argv: ['x'], processId: 'p' });
    await connected.connection.next('process/start');
    const next = await resume(connected);
    const question = await next.next('process/start');
    expect(question.params).toMatchObject({ argv: ['x'], processId: 'p', ifExists: 'adopt' });
    next.answer(question, { processId: 'p', sandboxType: 'none', pid: 42, existing: true });
    const read = await next.next('process/read');
    expect(read.params).toMatchObject({ afterSeq: 0, maxBytes: limits.CATCH_UP_READ_BYTES });
    next.answer(read, readResult({ chunks: [chunk(1, 'ran')], nextSeq: 2 }));
    const handle = await starting;
    expect(handle.pid).toBe(42);
    next.closedEvent('p', 2);
    expect(await seqs(handle)).toEqual([1, 2]);
    await connected.client.close();
  });

  it('acknowledges nothing before the caller has the handle, and holds back nothing a turn later', async () => {
    const clock = new FakeClock();
    const connected = await connectFake({ internals: { clock } });
    const starting = connected.client.start({ argv: ['x'], processId: 'p' });
    await connected.connection.next('process/start');
    connected.connection.cut();
    await settle();
    clock.advance(0);
    const next = await connected.server.accept();
    await next.handshake(extendedReply('s1', { resumed: true }));
    const question = await next.next('process/start');
    // Pushed before the answer, as to any session that was resumed.
    next.output('p', 1, 'x'.repeat(limits.ACK_EVERY_BYTES));
    await settle();
    next.answer(question, { processId: 'p', sandboxType: 'none', pid: 42, existing: true });
    const rest = { chunks: [chunk(2, 'x'.repeat(limits.ACK_EVERY_BYTES))], nextSeq: 3 };
    next.answer(await next.next('process/read'), readResult(rest));
    next.answer(await next.next('process/read'), readResult({ nextSeq: 3 }));
    await starting;
    await settle();
    expect(next.count('process/ack')).toBe(0);
    clock.advance(0);
    expect((await next.next('process/ack')).params).toMatchObject({ processId: 'p', seq: 2 });
    await connected.client.close();
  });

  it('is answered by a new process when it did not take place', async () => {
    const connected = await connectFake();
    const starting = connected.client.start({ argv: ['x'], processId: 'p' });
    await connected.connection.next('process/start');
    const next = await resume(connected);
    await next.start();
    expect((await starting).pid).toBe(42);
    expect(next.count('process/read')).toBe(0);
    await connected.client.close();
  });

  it('is a duplicate when the id has another process', async () => {
    const connected = await connectFake();
    const starting = connected.client.start({ argv: ['x'], processId: 'p' });
    const refused = expect(starting).rejects.toMatchObject({ code: 'DUPLICATE_PROCESS', data: { processId: 'p' } });
    await connected.connection.next('process/start');
    const next = await resume(connected);
    const differs = { reason: 'startDiffers' };
    next.refuse(await next.next('process/start'), ErrorCode.invalidRequest, 'differs', differs);
    await refused;
    await settle();
    expect(next.count('process/terminate')).toBe(0);
    await connected.client.close();
  });

  it('is sent again to a foreign server, and adopted when the id is taken there', async () => {
    const connected = await connectFake({ reply: foreignReply });
    const starting = connected.client.start({ argv: ['x'], processId: 'p' });
    await connected.connection.next('process/start');
    const next = await resume(connected, foreignReply);
    next.refuse(await next.next('process/start'), ErrorCode.invalidRequest, 'process p already exists');
    next.answer(await next.next('process/read'), readResult({ chunks: [chunk(1, 'ran')], nextSeq: 2 }));
    next.closedEvent('p', 2);
    expect(await seqs(await starting)).toEqual([1, 2]);
    await connected.client.close();
  });

  it('is waited for where a foreign server has it half done, and terminated when nothing comes of it', async () => {
    const clock = new FakeClock();
    const connected = await connectFake({ reply: foreignReply, internals: { clock } });
    const starting = connected.client.start({ argv: ['x'], processId: 'p' });
    starting.catch(() => undefined);
    await connected.connection.next('process/start');
    connected.connection.cut();
    await settle();
    clock.advance(0);
    const next = await connected.server.accept();
    await next.handshake(foreignReply);
    next.refuse(await next.next('process/start'), ErrorCode.invalidRequest, 'process p already exists');
    for (let look = 0; look < 20; look++) {
      next.refuse(await next.next('process/read'), ErrorCode.invalidRequest, 'process id p is starting');
      await settle();
      clock.advance(100);
    }
    await expect(starting).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', data: { processId: 'p' } });
    next.answer(await next.next('process/terminate'), { running: false });
    await connected.client.close();
  });

  it('is terminated at once when its caller gave up and its id was made for it', async () => {
    const connected = await connectFake();
    const abort = new AbortController();
    const starting = connected.client.start({ argv: ['x'] }, { signal: abort.signal });
    const { processId } = (await connected.connection.next('process/start')).params;
    abort.abort(new Error('enough'));
    await expect(starting).rejects.toMatchObject({ code: 'ABORTED' });
    const next = await resume(connected);
    expect((await next.next('process/terminate')).params).toEqual({ processId });
    await connected.client.close();
  });

  describe('under an id of the caller, who gave up', () => {
    async function giveUp(): Promise<{ readonly connected: Connected; readonly next: FakeConnection }> {
      const connected = await connectFake();
      const abort = new AbortController();
      const starting = connected.client.start({ argv: ['x'], processId: 'p' }, { signal: abort.signal });
      await connected.connection.next('process/start');
      abort.abort(new Error('enough'));
      await expect(starting).rejects.toMatchObject({ code: 'ABORTED' });
      return { connected, next: await resume(connected) };
    }

    it('is terminated when the server has it', async () => {
      const { connected, next } = await giveUp();
      next.answer(await next.next('process/list'), { epoch: EPOCH, processes: [summary('p')] });
      const question = await next.next('process/start');
      expect(question.params['ifExists']).toBe('adopt');
      expect(next.count('process/terminate')).toBe(0);
      next.answer(question, { processId: 'p', sandboxType: 'none', pid: 1, existing: true });
      expect((await next.next('process/terminate')).params).toEqual({ processId: 'p' });
      await connected.client.close();
    });

    it('is left alone when the id has another process', async () => {
      const { connected, next } = await giveUp();
      next.answer(await next.next('process/list'), { epoch: EPOCH, processes: [summary('p')] });
      const differs = { reason: 'startDiffers' };
      next.refuse(await next.next('process/start'), ErrorCode.invalidRequest, 'differs', differs);
      await settle();
      expect(next.count('process/terminate')).toBe(0);
      await connected.client.close();
    });

    it('is not started for the sake of the question', async () => {
      const { connected, next } = await giveUp();
      next.answer(await next.next('process/list'), { epoch: EPOCH, processes: [summary('q')] });
      await settle();
      expect([next.count('process/start'), next.count('process/terminate')]).toEqual([0, 0]);
      await connected.client.close();
    });
  });
});
