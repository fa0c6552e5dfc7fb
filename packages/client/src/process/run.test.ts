import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type Connected, connectFake, foreignReply, IDLE_TIMERS, settle } from '../testSupport/connectFake.js';
import { FakeClock } from '../testSupport/fakeClock.js';
import { chunk, extendedReply, readResult } from '../testSupport/fakeServer.js';
import type { RunResult } from './run.js';

describe('run', () => {
  it('gives exit code, signal and both streams', async () => {
    const { client, connection } = await connectFake();
    const running = client.run(['x', 'y'], { cwd: '/tmp', env: { A: '1' } });
    const request = await connection.next('process/start');
    expect(request.params).toMatchObject({ argv: ['x', 'y'], cwd: 'file:///tmp', env: { A: '1' } });
    expect(request.params).not.toHaveProperty('pipeStdin');
    const processId = String(request.params['processId']);
    connection.answer(request, { processId, sandboxType: 'none' });
    connection.output(processId, 1, 'ou');
    connection.output(processId, 2, 'err', 'stderr');
    connection.notify('process/exited', { processId, seq: 3, exitCode: 143, sandboxDenied: false, signal: 'SIGTERM' });
    connection.output(processId, 4, 't', 'pty');
    connection.closedEvent(processId, 5);
    const result = await running;
    expect(result).toMatchObject({
      exitCode: 143,
      signal: 'SIGTERM',
      truncated: false,
      timedOut: false,
      closed: true,
      gaps: [],
    });
    expect([result.text(), result.text('stderr')]).toEqual(['out', 'err']);
    await client.close();
  });

  it('keeps the first bytes of each stream up to the limit, and counts all', async () => {
    const { client, connection } = await connectFake();
    const running = client.run(['x'], { maxBytes: 5 });
    const processId = await connection.start();
    connection.output(processId, 1, 'abc');
    connection.output(processId, 2, 'defg');
    connection.output(processId, 3, 'hij');
    connection.output(processId, 4, '12345', 'stderr');
    connection.exited(processId, 5);
    connection.closedEvent(processId, 6);
    const result = await running;
    expect(result).toMatchObject({ truncated: true, stdoutBytes: 10, stderrBytes: 5, exitCode: 0 });
    expect([result.text(), result.text('stderr')]).toEqual(['abcde', '12345']);
    await client.close();
  });

  it('says that it is not whole when there was a gap', async () => {
    const { client, connection } = await connectFake();
    const running = client.run(['x']);
    const processId = await connection.start();
    connection.notify('process/gap', { processId, fromSeq: 1, throughSeq: 3, bytes: 30 });
    connection.output(processId, 4, 'end');
    connection.exited(processId, 5);
    connection.closedEvent(processId, 6);
    const result = await running;
    expect(result.gaps).toEqual([{ type: 'gap', fromSeq: 1, throughSeq: 3, bytes: 30 }]);
    expect(result.truncated).toBe(true);
    await client.close();
  });

  it('gives each piece of output, and waits for whoever takes it', async () => {
    const { client, connection } = await connectFake();
    const seen: string[] = [];
    let goOn = (): void => {};
    const running = client.run(['x'], {
      onOutput: async ({ stream, seq }) => {
        seen.push(`${stream} ${seq}`);
        await new Promise<void>((resolve) => (goOn = resolve));
      },
    });
    const processId = await connection.start();
    connection.output(processId, 1, 'a');
    connection.output(processId, 2, 'b', 'stderr');
    connection.exited(processId, 3);
    connection.closedEvent(processId, 4);
    await settle();
    expect(seen).toEqual(['stdout 1']);
    goOn();
    await settle();
    expect(seen).toEqual(['stdout 1', 'stderr 2']);
    goOn();
    expect((await running).exitCode).toBe(0);
    await client.close();
  });

  it('terminates and rejects when whoever takes the output fails', async () => {
    const { client, connection } = await connectFake();
    const running = client.run(['x'], {
      onOutput: () => {
        throw new Error('disk full');
      },
    });
    running.catch(() => undefined);
    const processId = await connection.start();
    connection.output(processId, 1, 'a');
    expect((await connection.next('process/terminate')).params).toEqual({ processId });
    await expect(running).rejects.toThrow('disk full');
    await client.close();
  });
});

describe('a run whose output others hold', () => {
  it.each([
    [{}, 5_000],
    [{ lingerMs: 20 }, 20],
    [{ lingerMs: Number.POSITIVE_INFINITY }, undefined],
  ])('is waited for by the server as long as that is asked for: %j', async (options, lingerMs) => {
    const { client, connection } = await connectFake();
    const running = client.run(['x'], options);
    const request = await connection.next('process/start');
    expect(request.params['lingerMs']).toBe(lingerMs);
    const processId = String(request.params['processId']);
    connection.answer(request, { processId, sandboxType: 'none' });
    connection.output(processId, 1, 'own');
    connection.exited(processId, 2, 7);
    connection.notify('process/closed', { processId, seq: 3, reason: 'heldOpen', holders: 1 });
    const result = await running;
    expect(result).toMatchObject({ exitCode: 7, closed: true, closeReason: 'heldOpen' });
    await client.close();
  });

  it('is waited for by the client where the server is a foreign one', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ reply: foreignReply, internals: { clock } });
    const running = client.run(['x']);
    const request = await connection.next('process/start');
    expect(request.params).not.toHaveProperty('lingerMs');
    const processId = String(request.params['processId']);
    connection.answer(request, { processId, sandboxType: 'none' });
    connection.output(processId, 1, 'own');
    connection.exited(processId, 2, 7);
    await settle();
    clock.advance(5_000);
    const result = await running;
    expect(result).toMatchObject({ exitCode: 7, closed: false });
    expect(result.text()).toBe('own');
    const closing = client.close();
    connection.answer(await connection.next('process/terminate'), { running: false });
    await closing;
  });

  it('has what came in that time, however slow the caller takes it, and nothing of what comes later', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ reply: foreignReply, internals: { clock } });
    const taken: (() => void)[] = [];
    const onOutput = (): Promise<void> => new Promise((resolve) => taken.push(resolve));
    const running = client.run(['x'], { onOutput });
    const processId = await connection.start();
    connection.exited(processId, 1, 0);
    for (const [index, text] of ['a', 'b', 'c'].entries()) connection.output(processId, 2 + index, text);
    await settle();
    clock.advance(5_000);
    await settle();
    connection.output(processId, 5, 'late');
    for (let piece = 0; piece < 3; piece += 1) {
      expect(taken).toHaveLength(piece + 1);
      taken[piece]?.();
      await settle();
    }
    const result = await running;
    expect([result.text(), result.closed, result.exitCode]).toEqual(['abc', false, 0]);
    const closing = client.close();
    connection.answer(await connection.next('process/terminate'), { running: false });
    await closing;
  });

  it('is closed where the close came in that time and the caller is slow', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ reply: foreignReply, internals: { clock } });
    let taken = (): void => {};
    const running = client.run(['x'], { onOutput: () => new Promise((resolve) => (taken = resolve)) });
    const processId = await connection.start();
    connection.exited(processId, 1, 0);
    connection.output(processId, 2, 'a');
    connection.closedEvent(processId, 3);
    await settle();
    clock.advance(5_000);
    taken();
    expect(await running).toMatchObject({ closed: true, exitCode: 0 });
    await client.close();
  });

  it.each([-1, 0.5, Number.NaN])('is not begun with a bound of %s bytes', async (maxBytes) => {
    const { client, connection } = await connectFake();
    await expect(client.run(['x'], { maxBytes })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      data: { argument: 'maxBytes' },
    });
    expect(connection.count('process/start')).toBe(0);
    await client.close();
  });
});

describe('the input of run', () => {
  it('is written and ended', async () => {
    const { client, connection } = await connectFake();
    const running = client.run(['cat'], { input: 'hello' });
    const request = await connection.next('process/start');
    expect(request.params['pipeStdin']).toBe(true);
    const processId = String(request.params['processId']);
    connection.answer(request, { processId, sandboxType: 'none' });
    const write = await connection.next('process/write');
    expect(write.params).toMatchObject({ chunk: 'aGVsbG8=', eof: true });
    connection.answer(write, { status: 'accepted' });
    connection.exited(processId, 1);
    connection.closedEvent(processId, 2);
    expect((await running).exitCode).toBe(0);
    await client.close();
  });

  it('may be more than the command reads', async () => {
    const { client, connection } = await connectFake();
    let stopped = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          await Promise.resolve();
          yield new Uint8Array(10);
        }
      } finally {
        stopped = true;
      }
    }
    const running = client.run(['head', '-c1'], { input: endless() });
    const processId = await connection.start();
    connection.answer(await connection.next('process/write'), { status: 'accepted' });
    connection.answer(await connection.next('process/write'), { status: 'stdinClosed' });
    connection.exited(processId, 1);
    connection.closedEvent(processId, 2);
    expect((await running).exitCode).toBe(0);
    await settle();
    expect(stopped).toBe(true);
    await client.close();
  });

  it('that fails terminates the command', async () => {
    const { client, connection } = await connectFake();
    async function* broken(): AsyncGenerator<Uint8Array> {
      await Promise.resolve();
      yield new Uint8Array(1);
      throw new Error('no more input');
    }
    const running = client.run(['cat'], { input: broken() });
    running.catch(() => undefined);
    await connection.start();
    connection.answer(await connection.next('process/write'), { status: 'accepted' });
    await connection.next('process/terminate');
    await expect(running).rejects.toThrow('no more input');
    await client.close();
  });
});

interface TimedRun {
  readonly running: Promise<RunResult>;
  readonly processId: string;
  readonly clock: FakeClock;
  readonly connected: Connected;
}

/** A run with a timeout of a second and some output. */
async function timedRun(reply?: unknown): Promise<TimedRun> {
  const clock = new FakeClock();
  const connected = await connectFake({ internals: { clock }, ...(reply === undefined ? {} : { reply }) });
  const { client, connection } = connected;
  const running = client.run(['sleep'], { timeoutMs: 1_000 });
  const request = await connection.next('process/start');
  expect(request.params['timeoutMs']).toBe(reply === undefined ? 1_000 : undefined);
  const processId = String(request.params['processId']);
  connection.answer(request, { processId, sandboxType: 'none' });
  await settle();
  connection.output(processId, 1, 'so far');
  await settle();
  return { running, processId, clock, connected };
}

describe('a run that takes too long', () => {
  it('is ended by the server, and the result says so', async () => {
    const { running, processId, clock, connected } = await timedRun();
    clock.advance(1_200);
    const exit = { processId, seq: 2, exitCode: 137, signal: 'SIGKILL', reason: 'timedOut', sandboxDenied: false };
    connected.connection.notify('process/exited', exit);
    connected.connection.notify('process/closed', { processId, seq: 3, reason: 'ended' });
    const result = await running;
    expect(result).toMatchObject({
      timedOut: true,
      exitCode: 137,
      reason: 'timedOut',
      closed: true,
      closeReason: 'ended',
      durationMs: 1_200,
    });
    expect(result.text()).toBe('so far');
    await settle();
    expect([clock.pending, connected.connection.count('process/terminate')]).toEqual([IDLE_TIMERS, 0]);
    await connected.client.close();
  });

  it('is given up when the server is stuck, with what there is', async () => {
    const { running, processId, clock, connected } = await timedRun();
    clock.advance(5_999);
    await settle();
    expect(connected.connection.count('process/terminate')).toBe(0);
    clock.advance(1);
    const result = await running;
    expect(result).toMatchObject({ timedOut: true, exitCode: null, closed: false, durationMs: 6_000 });
    expect(result.text()).toBe('so far');
    expect((await connected.connection.next('process/terminate')).params).toEqual({ processId });
    await connected.client.close();
  });

  it('is not given up while the connection is lost: what became of the command is not known', async () => {
    const { running, processId, clock, connected } = await timedRun();
    connected.connection.cut();
    await settle();
    clock.advance(0);
    const second = await connected.server.accept();
    await second.handshake(extendedReply('s1', { resumed: true }));
    const read = await second.next('process/read');
    clock.advance(6_000);
    await settle();
    second.answer(
      read,
      readResult({ nextSeq: 4, exited: true, exitCode: 0, exitedSeq: 3, chunks: [chunk(2, ', and all')] }),
    );
    second.closedEvent(processId, 4);
    const result = await running;
    expect(result).toMatchObject({ timedOut: false, exitCode: 0, closed: true });
    expect(result.text()).toBe('so far, and all');
    await connected.client.close();
  });

  it('is given up when not even its start is answered', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    const running = client.run(['sleep'], { timeoutMs: 1_000 });
    running.catch(() => undefined);
    await connection.next('process/start');
    clock.advance(6_000);
    await expect(running).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' });
    await connection.next('process/terminate');
    await client.close();
  });

  it('is terminated where the server is a foreign one', async () => {
    const { running, processId, clock, connected } = await timedRun(foreignReply);
    clock.advance(1_000);
    connected.connection.answer(await connected.connection.next('process/terminate'), { running: true });
    connected.connection.exited(processId, 2, 137);
    connected.connection.closedEvent(processId, 3);
    expect(await running).toMatchObject({ timedOut: true, exitCode: 137, reason: undefined, closed: true });
    await settle();
    expect(clock.pending).toBe(IDLE_TIMERS);
    await connected.client.close();
  });

  it('has not timed out where it ended in time and others hold its output, on a foreign server too', async () => {
    const { running, processId, clock, connected } = await timedRun(foreignReply);
    connected.connection.exited(processId, 2, 0);
    await settle();
    clock.advance(1_000);
    clock.advance(4_000);
    expect(await running).toMatchObject({ timedOut: false, exitCode: 0, closed: false });
    expect(connected.connection.count('process/terminate')).toBe(0);
    const closing = connected.client.close();
    connected.connection.answer(await connected.connection.next('process/terminate'), { running: false });
    await closing;
  });

  it('is given up when something holds its streams open, on a foreign server too', async () => {
    const { running, clock, connected } = await timedRun(foreignReply);
    clock.advance(1_000);
    connected.connection.answer(await connected.connection.next('process/terminate'), { running: true });
    await settle();
    clock.advance(5_000);
    expect(await running).toMatchObject({ timedOut: true, exitCode: null, closed: false });
    const closing = connected.client.close();
    connected.connection.answer(await connected.connection.next('process/terminate'), { running: false });
    await closing;
  });
});

describe('an aborted run', () => {
  it('is one of many with the same signal, which has one listener', async () => {
    const { client, connection } = await connectFake();
    const abort = new AbortController();
    const runs = Array.from({ length: 12 }, () => client.run(['sleep'], { signal: abort.signal }));
    for (const run of runs) run.catch(() => undefined);
    for (const _ of runs) await connection.start();
    await settle();
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1);
    abort.abort();
    for (const run of runs) await expect(run).rejects.toMatchObject({ code: 'ABORTED' });
    expect(connection.count('process/terminate')).toBe(12);
    await client.close();
  });

  it('rejects at once and terminates the command', async () => {
    const { client, connection } = await connectFake();
    const abort = new AbortController();
    const running = client.run(['sleep'], { signal: abort.signal });
    running.catch(() => undefined);
    const processId = await connection.start();
    await settle();
    abort.abort();
    expect((await connection.next('process/terminate')).params).toEqual({ processId });
    await expect(running).rejects.toMatchObject({ code: 'ABORTED' });
    await client.close();
  });
});
