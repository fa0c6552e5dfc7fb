import { ErrorCode } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { isClientError } from './errors.js';
import { connectFake, foreignReply, IDLE_TIMERS, settle, startFake } from './testSupport/connectFake.js';
import { FakeClock } from './testSupport/fakeClock.js';
import { extendedReply, readResult } from './testSupport/fakeServer.js';

describe('a call', () => {
  it('is answered, or refused with code, reason and whether a repeat can help', async () => {
    const { client, connection } = await connectFake();
    const status = client.call('environment/status', {});
    connection.answer(await connection.next('environment/status'), { status: 'ready' });
    expect(await status).toEqual({ status: 'ready' });

    const refused = client.call('process/read', { processId: 'p' });
    connection.refuse(await connection.next('process/read'), ErrorCode.invalidRequest, 'too many', {
      reason: 'tooManyRequests',
      limit: 1,
    });
    const error: unknown = await refused.catch((cause: unknown) => cause);
    expect(isClientError(error)).toBe(true);
    expect(error).toMatchObject({
      code: 'SERVER_ERROR',
      data: {
        method: 'process/read',
        wireCode: -32600,
        reason: 'tooManyRequests',
        retryable: true,
        serverData: { limit: 1 },
      },
    });
    await client.close();
  });

  it('is aborted here alone: nothing is sent, and the connection goes on', async () => {
    const { client, connection } = await connectFake();
    const abort = new AbortController();
    const call = client.call('environment/status', {}, { signal: abort.signal });
    const request = await connection.next('environment/status');
    abort.abort(new Error('enough'));
    await expect(call).rejects.toMatchObject({ code: 'ABORTED', cause: new Error('enough') });
    connection.answer(request, { status: 'ready' });
    await settle();
    expect(connection.received.map(({ method }) => method)).toEqual([
      'initialize',
      'initialized',
      'environment/status',
    ]);
    expect(client.state).toBe('ready');
    await client.close();
  });

  it('is not sent when it was aborted before', async () => {
    const { client, connection } = await connectFake();
    const call = client.call('environment/status', {}, { signal: AbortSignal.abort() });
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    await settle();
    expect(connection.count('environment/status')).toBe(0);
    await client.close();
  });

  it('runs out of time, by its own limit or by the default one', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const short = client.call('environment/status', {}, { timeoutMs: 50 });
    const long = client.call('environment/info', {});
    for (const call of [short, long]) call.catch(() => undefined);
    await connection.next('environment/info');
    clock.advance(50);
    await expect(short).rejects.toMatchObject({
      code: 'REQUEST_TIMEOUT',
      message: expect.stringContaining('50 ms') as unknown,
    });
    clock.advance(120_000);
    await expect(long).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' });
    await client.close();
  });

  it('that changes nothing may be repeated when its time was over, and another had better be looked for', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const read = client.call('process/read', { processId: 'p' }, { timeoutMs: 50 });
    const resize = client.call('process/resize', { processId: 'p', cols: 80, rows: 24 }, { timeoutMs: 50 });
    for (const call of [read, resize]) call.catch(() => undefined);
    await connection.next('process/resize');
    clock.advance(50);
    await expect(read).rejects.toThrow(/changes nothing, so it may be repeated/);
    await expect(resize).rejects.toThrow(/may still take effect, so look before you repeat it/);
    await client.close();
  });

  it.each(['initialize', 'process/sart', 'toString', ''])('is refused by name where there is no %j', async (method) => {
    const { client, connection } = await connectFake();
    const call = client.call(method as 'ping', {});
    await expect(call).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', data: { argument: 'method' } });
    await settle();
    expect(connection.received.map((request) => request.method)).toEqual(['initialize', 'initialized']);
    await client.close();
  });

  it('leaves no timer and no listener behind', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const call = client.call('environment/status', {}, { signal: new AbortController().signal });
    connection.answer(await connection.next('environment/status'), { status: 'ready' });
    await call;
    expect(clock.pending).toBe(IDLE_TIMERS);
    await client.close();
  });

  it('waits while as many as the server takes are unanswered; urgent ones pass', async () => {
    const { client, connection } = await connectFake({
      reply: extendedReply('s1', { limits: { pendingRequests: 2 } }),
    });
    const calls = [1, 2, 3, 4].map((seq) => client.call('process/read', { processId: 'p', afterSeq: seq }));
    const status = client.call('environment/status', {});
    connection.answer(await connection.next('environment/status'), { status: 'ready' });
    await status;
    await settle();
    expect(connection.count('process/read')).toBe(2);
    for (let answered = 0; answered < 4; answered++)
      connection.answer(await connection.next('process/read'), { answered });
    expect(await Promise.all(calls)).toEqual([0, 1, 2, 3].map((answered) => ({ answered })));
    await client.close();
  });

  it('cuts the connection of a server whose answer is not of its method', async () => {
    const { client, connection } = await connectFake({ once: true });
    const starting = client.start({ argv: ['x'] });
    connection.answer(await connection.next('process/start'), { ok: true });
    await expect(starting).rejects.toMatchObject({ code: 'PROTOCOL_VIOLATION' });
    await connection.closed;
    expect(client.failure).toMatchObject({ code: 'PROTOCOL_VIOLATION' });
  });

  it('from the server is refused, and the connection goes on', async () => {
    const { client, connection } = await connectFake();
    connection.raw('{"id":0,"method":"network/policyRequest","params":{}}');
    await settle();
    expect(client.state).toBe('ready');
    await client.close();
  });
});

describe('a foreign server', () => {
  it('is not sent what it lacks', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    const [handle] = await Promise.all([client.start({ argv: ['x'], stdin: 'pipe' }), connection.start()]);
    await expect(handle.signal('SIGTERM')).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await expect(handle.end()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await expect(client.run(['cat'], { input: 'x' })).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await expect(client.call('session/close', {})).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    const interrupted = handle.signal('SIGINT');
    const request = await connection.next('process/signal');
    expect(request.params).toMatchObject({ signal: 'interrupt' });
    connection.answer(request, {});
    expect(await interrupted).toEqual({ delivered: undefined });
    const closing = client.close();
    connection.answer(await connection.next('process/terminate'), { running: true });
    await closing;
  });

  it('is given 63 requests at a time, urgent ones too, and one more to see whether it lives', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    const calls = Array.from({ length: 70 }, (_, index) =>
      client.call(index % 2 === 0 ? 'environment/info' : 'environment/status', {}),
    );
    const answered = Promise.all(calls);
    await settle();
    const sent = (): number => connection.count('environment/info') + connection.count('environment/status');
    expect(sent()).toBe(63);
    connection.answer(await connection.next('environment/status'), {});
    await settle();
    expect(sent()).toBe(64);
    for (let rest = 1; rest < 70; rest++) {
      const method = rest < 35 ? 'environment/status' : 'environment/info';
      connection.answer(await connection.next(method), {});
    }
    await answered;
    await client.close();
  });

  it('is asked for no long poll, behind which every other call would wait', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    const read = client.call('process/read', { processId: 'p', waitMs: 1_000 });
    await expect(read).rejects.toMatchObject({
      code: 'NOT_SUPPORTED',
      message: expect.stringMatching(/waitMs/) as unknown,
    });
    const plain = client.call('process/read', { processId: 'p', waitMs: 0 });
    connection.answer(await connection.next('process/read'), readResult());
    await plain;
    expect(connection.count('process/read')).toBe(1);
    await client.close();
  });

  it('is asked for its working directory when initialize did not say it', async () => {
    const { client, connection } = await connectFake({ reply: { sessionId: 's1' } });
    const starting = client.start({ argv: ['x'] });
    connection.answer(await connection.next('environment/info'), { cwd: 'file:///there' });
    const request = await connection.next('process/start');
    expect(request.params['cwd']).toBe('file:///there');
    connection.answer(request, { processId: request.params['processId'], sandboxType: 'none' });
    await starting;
    expect(client.serverInfo).toBeUndefined();
    expect(client.environmentInfo).toEqual({});
    const closing = client.close();
    connection.answer(await connection.next('process/terminate'), { running: true });
    await closing;
  });
});

describe('a start', () => {
  it('of an id this client follows is refused here', async () => {
    const { client, connection } = await connectFake();
    const first = client.start({ argv: ['x'], processId: 'p' });
    const request = await connection.next('process/start');
    await expect(client.start({ argv: ['y'], processId: 'p' })).rejects.toMatchObject({ code: 'DUPLICATE_PROCESS' });
    connection.answer(request, { processId: 'p', sandboxType: 'none', pid: 1 });
    expect((await first).pid).toBe(1);
    expect(connection.count('process/start')).toBe(1);
    await client.close();
  });

  it('that is aborted while it waits is named in the error', async () => {
    const { client } = await connectFake();
    const signal = AbortSignal.abort();
    await expect(client.start({ argv: ['x'] }, { signal })).rejects.toMatchObject({
      code: 'ABORTED',
      message: expect.stringContaining('process/start') as unknown,
    });
    await client.close();
  });

  it('that is refused says what it is about: the text of the server does not', async () => {
    const { client, connection } = await connectFake();
    const start = client.start({ argv: ['x'], cwd: '/no' });
    connection.refuse(await connection.next('process/start'), ErrorCode.internal, 'No such file or directory', {
      reason: 'cwdNotFound',
      path: '/no',
    });
    await expect(start).rejects.toThrow('No such file or directory (/no)');
    await client.close();
  });

  it('that the server refuses leaves the id free', async () => {
    const { client, connection } = await connectFake();
    const first = client.start({ argv: ['x'], processId: 'p' });
    connection.refuse(await connection.next('process/start'), ErrorCode.invalidRequest, 'exists', {
      reason: 'duplicateProcess',
    });
    await expect(first).rejects.toMatchObject({ code: 'DUPLICATE_PROCESS', data: { processId: 'p' } });
    const [second] = await Promise.all([client.start({ argv: ['x'], processId: 'p' }), connection.start()]);
    expect(second.processId).toBe('p');
    await client.close();
  });

  it('that is aborted is terminated at once where the id was made for it', async () => {
    const { client, connection } = await connectFake();
    const abort = new AbortController();
    const starting = client.start({ argv: ['x'] }, { signal: abort.signal });
    const { processId } = (await connection.next('process/start')).params;
    abort.abort();
    await expect(starting).rejects.toMatchObject({ code: 'ABORTED', data: { processId } });
    expect((await connection.next('process/terminate')).params).toEqual({ processId });
    await client.close();
  });

  it.each([true, false])(
    'that is aborted under an id of the caller is terminated once it has taken place, and never when it was refused (refused: %s)',
    async (refused) => {
      const { client, connection } = await connectFake();
      const abort = new AbortController();
      const starting = client.start({ argv: ['x'], processId: 'p' }, { signal: abort.signal });
      const request = await connection.next('process/start');
      abort.abort();
      await expect(starting).rejects.toMatchObject({ code: 'ABORTED', data: { processId: 'p' } });
      await settle();
      expect(connection.count('process/terminate')).toBe(0);
      const taken = { reason: 'duplicateProcess' };
      if (refused) connection.refuse(request, ErrorCode.invalidRequest, 'exists', taken);
      else connection.answer(request, { processId: 'p', sandboxType: 'none', pid: 1 });
      await settle();
      expect(connection.count('process/terminate')).toBe(refused ? 0 : 1);
      await client.close();
    },
  );

  it('that is aborted is left alone when the caller has adopted the process meanwhile', async () => {
    const { client, connection } = await connectFake();
    const abort = new AbortController();
    const start = { argv: ['x'], processId: 'p' };
    const starting = client.start(start, { signal: abort.signal });
    const first = await connection.next('process/start');
    abort.abort();
    await expect(starting).rejects.toMatchObject({ code: 'ABORTED' });
    const again = client.start({ ...start, ifExists: 'adopt' });
    const second = await connection.next('process/start');
    connection.answer(second, { processId: 'p', sandboxType: 'none', pid: 1, existing: true });
    connection.answer(await connection.next('process/read'), readResult());
    await again;
    connection.answer(first, { processId: 'p', sandboxType: 'none', pid: 1 });
    await settle();
    expect(connection.count('process/terminate')).toBe(0);
    await client.close();
  });
});

describe('close', () => {
  it('ends the session, then the connection, and fails what is pending', async () => {
    const { client, connection } = await connectFake();
    const [handle] = await Promise.all([client.start({ argv: ['x'] }), connection.start()]);
    const waiting = handle.wait();
    const call = client.call('environment/info', {});
    for (const pending of [waiting, call]) pending.catch(() => undefined);
    await client.close();
    await client.close();
    expect(connection.count('session/close')).toBe(1);
    await connection.closed;
    await expect(waiting).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(call).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(client.start({ argv: ['x'] })).rejects.toMatchObject({ code: 'CLOSED' });
    expect(client.state).toBe('closed');
  });

  it('does not wait for ever for a server that does not answer', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    connection.answersClose = false;
    const closing = client.close();
    await connection.next('session/close');
    clock.advance(2_000);
    await closing;
    expect(clock.pending).toBe(0);
  });

  it('is left out by detach, which keeps the session', async () => {
    const { client, connection } = await connectFake();
    await client.detach();
    await connection.closed;
    expect(connection.count('session/close')).toBe(0);
  });

  it('is done by leaving an await-using block', async () => {
    const { client, connection } = await connectFake();
    await client[Symbol.asyncDispose]();
    await connection.closed;
    expect(client.state).toBe('closed');
  });
});

describe('what the client tells of itself', () => {
  it('is what the server said', async () => {
    const { client } = await connectFake();
    expect(client.sessionId).toBe('s1');
    expect(client.serverInfo).toMatchObject({ serverInfo: { name: 'fake' }, epoch: 'epoch-1', flowControl: true });
    expect(client.environmentInfo).toEqual({ cwd: 'file:///srv' });
    expect(client.failure).toBeUndefined();
    await client.close();
  });

  it('goes to listeners until they are disposed; one that throws harms nobody', async () => {
    const lines: string[] = [];
    const { client } = await connectFake({ options: { onLog: (line) => lines.push(line) } });
    const seen: string[] = [];
    client.onState(() => Promise.reject(new Error('of a promise')) as never);
    client.onState(() => {
      throw new Error('bad listener');
    });
    const dispose = client.onState((state) => seen.push(state));
    client.onState((state) => seen.push(`again ${state}`));
    dispose();
    await client.close();
    expect(seen).toEqual(['again closed']);
    expect(lines).toContainEqual(expect.stringContaining('bad listener'));
    expect(lines).toContainEqual('initializing -> ready: initialized');
  });
});

describe('a log', () => {
  it('that throws harms nobody: the client connects, recovers and closes', async () => {
    const onLog = (): never => {
      throw new Error('bad log');
    };
    const { server, client, connection } = await connectFake({ options: { onLog } });
    connection.cut();
    const second = await server.accept();
    await second.handshake(extendedReply('s1'));
    const handle = await startFake(client, second, 'p');
    expect(handle.processId).toBe('p');
    await client.close();
  });
});

describe('a call that is larger than the server takes', () => {
  it.each([
    ['its bytes', { argv: ['x'.repeat(70 * 1024 * 1024)] }, { bytes: 64 * 1024 * 1024 }],
    ['its values', { argv: Array.from({ length: 300_000 }, () => 'x') }, { values: 262_144 }],
  ] as const)('fails alone, by %s, and is not sent', async (_what, start, limit) => {
    const { client, connection } = await connectFake();
    await expect(client.start({ argv: [...start.argv] })).rejects.toMatchObject({
      code: 'REQUEST_TOO_LARGE',
      data: { method: 'process/start', ...limit },
    });
    expect(connection.count('process/start')).toBe(0);
    expect(client.state).toBe('ready');
    const handle = await startFake(client, connection, 'p');
    expect(handle.processId).toBe('p');
    await client.close();
  });

  it('is smaller on a foreign server, where a message is one frame of 16 MiB at most', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    const starting = client.start({ argv: ['x'.repeat(17 * 1024 * 1024)] });
    await expect(starting).rejects.toMatchObject({ code: 'REQUEST_TOO_LARGE', data: { bytes: 16 * 1024 * 1024 } });
    expect(connection.count('process/start')).toBe(0);
    await client.close();
  });
});

describe('the end of a client on a foreign server', () => {
  it('terminates its processes a few at a time', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    for (let index = 0; index < 40; index += 1) await startFake(client, connection, `p${index}`);
    const closing = client.close();
    let answered = 0;
    while (answered < 40) {
      const request = await connection.next('process/terminate');
      expect(connection.count('process/terminate') - answered).toBeLessThanOrEqual(16);
      connection.answer(request, { running: true });
      answered += 1;
    }
    await closing;
    expect(connection.count('process/terminate')).toBe(40);
  });
});
