import { ErrorCode } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { connectFake, foreignReply, IDLE_TIMERS, settle, startFake } from '../testSupport/connectFake.js';
import { FakeClock } from '../testSupport/fakeClock.js';
import { extendedReply, readResult } from '../testSupport/fakeServer.js';

describe('wait', () => {
  it('gives up after its time without touching the process, and can be repeated', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const handle = await startFake(client, connection, 'p');
    const waiting = handle.wait({ timeoutMs: 500 });
    waiting.catch(() => undefined);
    clock.advance(500);
    await expect(waiting).rejects.toMatchObject({
      code: 'WAIT_TIMEOUT',
      data: { processId: 'p', timeoutMs: 500 },
      message: expect.stringContaining('runs on') as unknown,
    });
    const again = handle.wait({ timeoutMs: 500 });
    connection.exited('p', 1, 3);
    expect(await again).toEqual({ exitCode: 3, signal: undefined, reason: undefined });
    expect(clock.pending).toBe(IDLE_TIMERS);
    expect(connection.received.map(({ method }) => method)).not.toContain('process/terminate');
    await client.close();
  });

  it('is aborted by its caller, before and after it began', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    await expect(handle.wait({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'ABORTED' });
    const abort = new AbortController();
    const closed = handle.closed({ signal: abort.signal });
    abort.abort('enough');
    await expect(closed).rejects.toMatchObject({ code: 'ABORTED', cause: 'enough' });
    await client.close();
  });

  it('tells signal and reason, and the close its holders', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const exit = { exitCode: 143, signal: 'SIGTERM', reason: 'terminated' };
    connection.notify('process/exited', { processId: 'p', seq: 1, sandboxDenied: false, ...exit });
    connection.notify('process/closed', { processId: 'p', seq: 2, reason: 'heldOpen', holders: 2 });
    expect(await handle.wait()).toEqual(exit);
    expect(await handle.closed()).toEqual({ reason: 'heldOpen', holders: 2 });
    await client.close();
  });
});

describe('release', () => {
  it('follows the end of the process in waitAndRelease', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const releasing = handle.waitAndRelease();
    connection.exited('p', 1, 4);
    await settle();
    expect(connection.count('process/release')).toBe(0);
    connection.closedEvent('p', 2);
    const release = await connection.next('process/release');
    expect(release.params).toEqual({ processId: 'p' });
    connection.answer(release, {});
    expect(await releasing).toMatchObject({ exitCode: 4 });
    await client.close();
  });

  it('is done when it was done before, and refused while the process runs', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    for (const reason of ['alreadyReleased', 'expiredProcess']) {
      const releasing = handle.release();
      connection.refuse(await connection.next('process/release'), ErrorCode.invalidRequest, 'gone', { reason });
      await releasing;
    }
    const early = handle.release();
    const refusal = { reason: 'processRunning' };
    connection.refuse(await connection.next('process/release'), ErrorCode.invalidRequest, 'it runs', refusal);
    await expect(early).rejects.toMatchObject({ code: 'SERVER_ERROR', data: { ...refusal, retryable: true } });
    await client.close();
  });
});

describe('terminate', () => {
  it('takes a grace and tells everything the server found', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const terminating = handle.terminate({ graceMs: 2_000, leftovers: 'kill', wait: true });
    const request = await connection.next('process/terminate');
    expect(request.params).toEqual({ processId: 'p', graceMs: 2_000, leftovers: 'kill', wait: true });
    const exit = { exitCode: 137, signal: 'SIGKILL', reason: 'terminated' };
    const found = { running: true, exit, escalated: true, left: [], method: 'mark', treeComplete: true };
    connection.answer(request, found);
    expect(await terminating).toEqual(found);
    await client.close();
  });
});

describe('a terminal', () => {
  it('is asked for with its size, and resized', async () => {
    const { client, connection } = await connectFake();
    const starting = client.start({ argv: ['sh'], processId: 'p', tty: { cols: 100, rows: 30 } });
    const request = await connection.next('process/start');
    expect(request.params).toMatchObject({ tty: true, size: { cols: 100, rows: 30 } });
    connection.answer(request, { processId: 'p', sandboxType: 'none', pid: 1 });
    const handle = await starting;
    const resizing = handle.resize({ cols: 132, rows: 50 });
    const resize = await connection.next('process/resize');
    expect(resize.params).toEqual({ processId: 'p', cols: 132, rows: 50 });
    connection.answer(resize, {});
    await resizing;
    await client.close();
  });

  it('is not asked for where the server says it has none', async () => {
    const { client, connection } = await connectFake({ reply: extendedReply('s1', { extensions: {} }) });
    await expect(client.start({ argv: ['sh'], tty: true })).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(connection.count('process/start')).toBe(0);
    await client.close();
  });
});

describe('a foreign server', () => {
  it('is sent nothing it does not know', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    const handle = await startFake(client, connection, 'p');
    const before = connection.received.length;
    const notSupported = [
      handle.resize({ cols: 1, rows: 1 }),
      handle.release(),
      handle.waitAndRelease(),
      handle.terminate({ graceMs: 1 }),
      client.list(),
      client.start({ argv: ['x'], tty: { cols: 1, rows: 1 } }),
      client.start({ argv: ['x'], timeoutMs: 1 }),
      client.start({ argv: ['x'], lingerMs: 1 }),
      client.start({ argv: ['x'], ifExists: 'adopt' }),
    ];
    for (const call of notSupported) await expect(call).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(connection.received.length).toBe(before);
    const terminating = handle.terminate();
    connection.answer(await connection.next('process/terminate'), { running: true });
    expect(await terminating).toEqual({ running: true });
    const [terminal] = await Promise.all([client.start({ argv: ['x'], tty: true }), connection.start()]);
    expect(terminal.pid).toBe(42);
    connection.cut();
    void client.close();
  });

  it('is asked to terminate an aborted start only when that has settled, and not when it was refused', async () => {
    for (const refused of [false, true]) {
      const { client, connection } = await connectFake({ reply: foreignReply, once: true });
      const abort = new AbortController();
      const starting = client.start({ argv: ['x'], processId: 'p' }, { signal: abort.signal });
      starting.catch(() => undefined);
      const request = await connection.next('process/start');
      abort.abort();
      await expect(starting).rejects.toMatchObject({ code: 'ABORTED' });
      await settle();
      expect(connection.count('process/terminate')).toBe(0);
      if (refused) connection.refuse(request, ErrorCode.internal, 'no such program');
      else connection.answer(request, { processId: 'p', sandboxType: 'none' });
      await settle();
      expect(connection.count('process/terminate')).toBe(refused ? 0 : 1);
      await client.close();
    }
  });
});

describe('a start that adopts', () => {
  const adopting = { argv: ['x'], processId: 'p', ifExists: 'adopt' } as const;

  it('follows a process that was there from its first event', async () => {
    const { client, connection } = await connectFake();
    const starting = client.start(adopting);
    const request = await connection.next('process/start');
    expect(request.params['ifExists']).toBe('adopt');
    connection.answer(request, { processId: 'p', sandboxType: 'none', pid: 9, existing: true });
    const read = await connection.next('process/read');
    expect(read.params).toMatchObject({ processId: 'p', afterSeq: 0 });
    connection.answer(read, readResult({ exited: true, exitCode: 5, closed: true, nextSeq: 3 }));
    const handle = await starting;
    expect(handle.pid).toBe(9);
    expect(await handle.wait()).toMatchObject({ exitCode: 5 });
    await client.close();
  });

  it('tells how a process ended whose output is no longer kept', async () => {
    const { client, connection } = await connectFake();
    const starting = client.start(adopting);
    const exit = { exitCode: 5, signal: null, reason: 'timedOut' };
    const request = await connection.next('process/start');
    connection.answer(request, { processId: 'p', sandboxType: 'none', existing: true, exit });
    const gone = { reason: 'expiredProcess' };
    connection.refuse(await connection.next('process/read'), ErrorCode.invalidRequest, 'expired', gone);
    const handle = await starting;
    expect(await handle.wait()).toEqual({ exitCode: 5, signal: undefined, reason: 'timedOut' });
    await expect(handle[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'OUTPUT_LOST' });
    await client.close();
  });

  it('is another handle for a process this client follows, once the server agrees', async () => {
    const { client, connection } = await connectFake();
    const first = await startFake(client, connection, 'p');
    const second = client.start(adopting);
    const request = await connection.next('process/start');
    connection.answer(request, { processId: 'p', sandboxType: 'none', pid: 42, existing: true });
    expect((await second).pid).toBe(first.pid);
    const other = client.start({ ...adopting, argv: ['y'] });
    const differs = { reason: 'startDiffers' };
    connection.refuse(await connection.next('process/start'), ErrorCode.invalidRequest, 'differs', differs);
    await expect(other).rejects.toMatchObject({ code: 'SERVER_ERROR', data: differs });
    await client.close();
  });

  it('is sent again after a cut, and left alone when it is aborted', async () => {
    const { client, connection, server } = await connectFake();
    const abort = new AbortController();
    const starting = client.start(adopting, { signal: abort.signal });
    await connection.next('process/start');
    connection.cut();
    const next = await server.accept();
    await next.handshake(extendedReply('s1', { resumed: true }));
    await next.next('process/start');
    abort.abort();
    await expect(starting).rejects.toMatchObject({ code: 'ABORTED' });
    await settle();
    expect(next.count('process/terminate')).toBe(0);
    await client.close();
  });
});

describe('list', () => {
  it('gives the processes of the session', async () => {
    const { client, connection } = await connectFake();
    const listing = client.list({ leftovers: true });
    const request = await connection.next('process/list');
    expect(request.params).toEqual({ leftovers: true });
    connection.answer(request, { processes: [], epoch: 'e' });
    expect(await listing).toEqual({ processes: [], epoch: 'e' });
    await client.close();
  });
});
