import { ErrorCode } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { connectWith } from '../connect.js';
import { type Connected, connectFake, foreignReply, settle, startFake } from '../testSupport/connectFake.js';
import { FakeClock } from '../testSupport/fakeClock.js';
import { extendedReply, FakeServer } from '../testSupport/fakeServer.js';

describe('the end of recovery', () => {
  const refuseSession = async (connected: Connected, reason?: string): Promise<void> => {
    connected.connection.cut();
    const next = await connected.server.accept();
    next.refuse(
      await next.next('initialize'),
      ErrorCode.invalidRequest,
      'unknown session id',
      reason === undefined ? undefined : { reason },
    );
  };

  it.each(['expiredSession', 'unknownSession', undefined])(
    'is a session the server does not have (%s)',
    async (reason) => {
      const connected = await connectFake();
      const handle = await startFake(connected.client, connected.connection, 'p');
      const waiting = handle.wait();
      const iterating = handle.events().next();
      iterating.catch(() => undefined);
      await refuseSession(connected, reason);
      await expect(waiting).rejects.toMatchObject({ code: 'SESSION_EXPIRED', data: { processId: 'p', cursor: 0 } });
      await expect(iterating).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
      expect(connected.client.state).toBe('failed');
      expect(connected.server.dials).toBe(2);
    },
  );

  it('does not show the id of the session, which servers repeat and which is a secret', async () => {
    const { client, connection, server } = await connectFake();
    connection.cut();
    const next = await server.accept();
    const text = `unknown session id ${client.sessionId}`;
    next.refuse(await next.next('initialize'), ErrorCode.invalidRequest, text, { reason: 'expiredSession' });
    await next.closed;
    for (let error: unknown = client.failure; error instanceof Error; error = error.cause) {
      expect(error.message).not.toContain(client.sessionId);
    }
    expect(client.failure).toMatchObject({ code: 'SESSION_EXPIRED' });
  });

  it('is another session in the answer', async () => {
    const connected = await connectFake();
    connected.connection.cut();
    const next = await connected.server.accept();
    next.answer(await next.next('initialize'), extendedReply('s2'));
    await next.closed;
    await settle();
    expect(connected.client.failure).toMatchObject({ code: 'PROTOCOL_VIOLATION' });
  });

  it('is another life of the server', async () => {
    const connected = await connectFake();
    connected.connection.cut();
    const next = await connected.server.accept();
    next.answer(await next.next('initialize'), extendedReply('s1', { epoch: 'epoch-2' }));
    await next.closed;
    expect(connected.client.failure).toMatchObject({ code: 'SERVER_GONE' });
  });

  it('is a server of ours that stops, also while a client comes back to it', async () => {
    const connected = await connectFake();
    const handle = await startFake(connected.client, connected.connection, 'p');
    connected.connection.cut();
    const next = await connected.server.accept();
    await next.handshake(extendedReply('s1', { resumed: true }));
    await next.next('process/read');
    next.stop();
    await expect(handle.wait()).rejects.toMatchObject({ code: 'SERVER_GONE', data: { retryable: false } });
    expect(connected.server.dials).toBe(2);
  });

  it('is no close code of a foreign server that ours say when they stop', async () => {
    const connected = await connectFake({ reply: foreignReply });
    connected.connection.stop();
    const next = await connected.server.accept();
    await next.handshake(foreignReply);
    await settle();
    expect(connected.client.state).toBe('ready');
    await connected.client.close();
  });

  it('is a loss nobody may dial again: handles fail, new calls are refused', async () => {
    const { client, connection } = await connectFake({ once: true });
    const handle = await startFake(client, connection, 'p');
    const events = handle.events();
    connection.output('p', 1, 'last');
    const pending = client.call('environment/info', {});
    pending.catch(() => undefined);
    connection.notify('process/later', {});
    await settle();
    connection.cut();
    expect((await events.next()).value).toMatchObject({ seq: 1 });
    await expect(events.next()).rejects.toMatchObject({ code: 'RECOVERY_FAILED', data: { cursor: 1 } });
    await expect(pending).rejects.toMatchObject({ code: 'RECOVERY_FAILED' });
    await expect(handle.wait()).rejects.toMatchObject({ code: 'RECOVERY_FAILED' });
    await expect(handle.write('x')).rejects.toMatchObject({ code: 'RECOVERY_FAILED' });
    await expect(client.start({ argv: ['y'], cwd: '/' })).rejects.toMatchObject({ code: 'RECOVERY_FAILED' });
    await expect(client.attach('p')).rejects.toMatchObject({ code: 'RECOVERY_FAILED' });
    await client.close();
    expect(client.state).toBe('failed');
  });

  it('is the deadline, whatever the last attempt does', async () => {
    const clock = new FakeClock();
    const connected = await connectFake({ internals: { clock, random: () => 0.5 }, options: { recoveryMs: 45_000 } });
    const handle = await startFake(connected.client, connected.connection, 'p');
    connected.server.refusal = new Error('connection refused');
    connected.connection.cut();
    await settle();
    for (let second = 0; second < 45; second++) {
      expect(connected.client.state).toBe('recovering');
      clock.advance(1_000);
      await settle();
    }
    expect(connected.client.failure).toMatchObject({
      code: 'RECOVERY_FAILED',
      message: expect.stringContaining('connection refused') as unknown,
    });
    await expect(handle.wait()).rejects.toMatchObject({ code: 'RECOVERY_FAILED' });
    expect(connected.server.dials).toBeGreaterThan(20);
    expect(clock.pending).toBe(0);
  });

  it('is the caller: close during recovery ends everything', async () => {
    const connected = await connectFake();
    const handle = await startFake(connected.client, connected.connection, 'p');
    connected.server.refusal = new Error('down');
    connected.connection.cut();
    await settle();
    const waiting = handle.wait();
    waiting.catch(() => undefined);
    await connected.client.close();
    await expect(waiting).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(connected.client.call('environment/info', {})).rejects.toMatchObject({ code: 'CLOSED' });
    expect(connected.client.state).toBe('closed');
  });
});

describe('the first connection', () => {
  it('is not tried again', async () => {
    const server = new FakeServer();
    server.refusal = new Error('connection refused');
    await expect(connectWith({ transport: server.dial }, {})).rejects.toMatchObject({ code: 'CONNECT_FAILED' });
    expect(server.dials).toBe(1);
  });

  it('resumes a session and drains pushes that come before the answer', async () => {
    const server = new FakeServer();
    const connecting = connectWith({ transport: server.dial, resumeSessionId: 's1' }, {});
    const connection = await server.accept();
    const initialize = await connection.next('initialize');
    expect(initialize.params['resumeSessionId']).toBe('s1');
    for (let seq = 1; seq <= 256; seq++) connection.output('busy', seq, 'output');
    connection.answer(initialize, extendedReply('s1', { resumed: true }));
    const client = await connecting;
    expect(client.sessionId).toBe('s1');
    await client.close();
  });

  it('says when the session to resume is gone, and leaves no connection', async () => {
    const server = new FakeServer();
    const connecting = connectWith({ transport: server.dial, resumeSessionId: 's1' }, {});
    connecting.catch(() => undefined);
    const connection = await server.accept();
    connection.refuse(await connection.next('initialize'), ErrorCode.invalidRequest, 'expired', {
      reason: 'expiredSession',
    });
    await expect(connecting).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
    await connection.closed;
  });

  it('fails when initialize is not answered in time, and names both', async () => {
    const clock = new FakeClock();
    const server = new FakeServer();
    const connecting = connectWith({ transport: server.dial, initializeTimeoutMs: 700 }, { clock });
    connecting.catch(() => undefined);
    const connection = await server.accept();
    await connection.next('initialize');
    clock.advance(700);
    await expect(connecting).rejects.toMatchObject({
      code: 'INITIALIZE_TIMEOUT',
      message: expect.stringMatching(/the given transport.*700 ms/) as unknown,
    });
    await connection.closed;
  });

  it('fails on an answer that does not decode', async () => {
    const server = new FakeServer();
    const connecting = connectWith({ transport: server.dial }, {});
    connecting.catch(() => undefined);
    const connection = await server.accept();
    connection.answer(await connection.next('initialize'), { session: 's1' });
    await expect(connecting).rejects.toMatchObject({ code: 'PROTOCOL_VIOLATION' });
    await connection.closed;
  });
});
