import { decodeBase64, ErrorCode, limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { isClientError } from '../errors.js';
import { connectFake, foreignReply, settle, startFake } from '../testSupport/connectFake.js';
import { extendedReply, type FakeConnection, type FakeRequest } from '../testSupport/fakeServer.js';
import type { ProcessHandle } from './processHandle.js';
import { QUEUED_BYTES } from './stdinQueue.js';
import { PIECE_BYTES } from './stdinQueues.js';

async function startPiped(): Promise<{
  handle: ProcessHandle;
  connection: FakeConnection;
  close: () => Promise<void>;
}> {
  const { client, connection } = await connectFake();
  const [handle] = await Promise.all([client.start({ argv: ['cat'], stdin: 'pipe' }), connection.start()]);
  return { handle, connection, close: () => client.close() };
}

function bytesOf(request: FakeRequest): Uint8Array {
  const decoded = decodeBase64(String(request.params['chunk']));
  if (!decoded.ok) throw new Error(decoded.detail);
  return decoded.bytes;
}

describe('writes', () => {
  it('go out one at a time, in order, in pieces, each with a name of its own', async () => {
    const { handle, connection, close } = await startPiped();
    const big = new Uint8Array(PIECE_BYTES + 10).fill(7);
    const writing = Promise.all([handle.write(big), handle.write('tail')]);
    const sizes: number[] = [];
    const names = new Set<unknown>();
    for (let count = 1; count <= 3; count++) {
      const request = await connection.next('process/write');
      await settle();
      expect(connection.count('process/write')).toBe(count);
      sizes.push(bytesOf(request).byteLength);
      names.add(request.params['writeId']);
      connection.answer(request, { status: 'accepted' });
    }
    await writing;
    expect(sizes).toEqual([PIECE_BYTES, 10, 4]);
    expect(names.size).toBe(3);
    await close();
  });

  it('go on when the next one is made the moment the last was accepted', async () => {
    const { handle, connection, close } = await startPiped();
    for (const text of ['a', 'b', 'c']) {
      const writing = handle.write(text);
      connection.answer(await connection.next('process/write'), { status: 'accepted' });
      await writing;
    }
    await close();
  });

  it('of nothing are accepted without a message', async () => {
    const { handle, connection, close } = await startPiped();
    await handle.write('');
    expect(connection.count('process/write')).toBe(0);
    await close();
  });

  it('carry the end with their last piece', async () => {
    const { handle, connection, close } = await startPiped();
    const ending = handle.end(new Uint8Array(PIECE_BYTES + 1));
    const first = await connection.next('process/write');
    expect(first.params).not.toHaveProperty('eof');
    connection.answer(first, { status: 'accepted' });
    const last = await connection.next('process/write');
    expect(last.params['eof']).toBe(true);
    connection.answer(last, { status: 'accepted' });
    await ending;
    await expect(handle.write('more')).rejects.toMatchObject({ code: 'STDIN_CLOSED', data: { acceptedBytes: 0 } });
    await close();
  });

  it('say how much was accepted when stdin turns out closed, and fail what was queued behind', async () => {
    const { handle, connection, close } = await startPiped();
    const first = handle.write(new Uint8Array(PIECE_BYTES * 2));
    const second = handle.write('behind');
    for (const pending of [first, second]) pending.catch(() => undefined);
    connection.answer(await connection.next('process/write'), { status: 'accepted' });
    connection.answer(await connection.next('process/write'), { status: 'stdinClosed' });
    await expect(first).rejects.toMatchObject({ code: 'STDIN_CLOSED', data: { acceptedBytes: PIECE_BYTES } });
    await expect(second).rejects.toMatchObject({ code: 'STDIN_CLOSED', data: { acceptedBytes: 0 } });
    await settle();
    expect(connection.count('process/write')).toBe(2);
    await close();
  });

  it('may end stdin again when the end waited behind one that failed', async () => {
    const { handle, connection, close } = await startPiped();
    const [writing, ending] = [handle.write('x'), handle.end()];
    for (const pending of [writing, ending]) pending.catch(() => undefined);
    connection.answer(await connection.next('process/write'), { status: 'starting' });
    const error = { code: 'SERVER_ERROR', data: { reason: 'starting', retryable: true } };
    await expect(writing).rejects.toMatchObject(error);
    await expect(ending).rejects.toMatchObject(error);
    const again = handle.end('x');
    connection.answer(await connection.next('process/write'), { status: 'accepted' });
    await again;
    await close();
  });

  it('do not go out any more when an end found stdin closed', async () => {
    const { handle, connection, close } = await startPiped();
    const ending = handle.end('x');
    connection.answer(await connection.next('process/write'), { status: 'stdinClosed' });
    await expect(ending).rejects.toMatchObject({ code: 'STDIN_CLOSED' });
    await expect(handle.end()).rejects.toMatchObject({ code: 'STDIN_CLOSED' });
    expect(connection.count('process/write')).toBe(1);
    await close();
  });

  it('to a process the server does not have fail', async () => {
    const { handle, connection, close } = await startPiped();
    const writing = handle.write('x');
    connection.answer(await connection.next('process/write'), { status: 'unknownProcess' });
    await expect(writing).rejects.toMatchObject({ code: 'SERVER_ERROR', data: { reason: 'unknownProcess' } });
    await close();
  });
});

describe('writes at an offset', () => {
  it('name the place of each piece in all of stdin, so that the server drops what it has', async () => {
    const { handle, connection, close } = await startPiped();
    const writing = handle.end(new Uint8Array(PIECE_BYTES + 10), { offset: 1_000 });
    const first = await connection.next('process/write');
    expect(first.params).toMatchObject({ offset: 1_000 });
    expect(first.params).not.toHaveProperty('writeId');
    expect(first.params).not.toHaveProperty('eof');
    connection.answer(first, { status: 'accepted', acceptedOffset: 5_000_000 });
    const second = await connection.next('process/write');
    expect(second.params).toMatchObject({ offset: 1_000 + PIECE_BYTES, eof: true });
    connection.answer(second, { status: 'accepted', acceptedOffset: 5_000_000 });
    await writing;
    await close();
  });

  it('fail when they would leave a hole, with the position up to which there is something', async () => {
    const { handle, connection, close } = await startPiped();
    const writing = handle.write('x', { offset: 10 });
    connection.refuse(await connection.next('process/write'), ErrorCode.invalidParams, 'a hole', {
      reason: 'writeHole',
      acceptedOffset: 5,
    });
    await expect(writing).rejects.toMatchObject({
      code: 'SERVER_ERROR',
      data: { reason: 'writeHole', acceptedBytes: 0, serverData: { acceptedOffset: 5 } },
    });
    await close();
  });

  it('may end stdin again when the end was refused', async () => {
    const { handle, connection, close } = await startPiped();
    const refused = handle.end('abc', { offset: 5 });
    connection.refuse(await connection.next('process/write'), ErrorCode.invalidParams, 'a hole', {
      reason: 'writeHole',
      acceptedOffset: 0,
    });
    await expect(refused).rejects.toMatchObject({ data: { reason: 'writeHole' } });
    const ending = handle.end('abc', { offset: 0 });
    const request = await connection.next('process/write');
    expect(request.params).toMatchObject({ offset: 0, eof: true });
    connection.answer(request, { status: 'accepted' });
    await ending;
    await expect(handle.write('more')).rejects.toMatchObject({ code: 'STDIN_CLOSED' });
    await close();
  });

  it('are not sent to a foreign server, nor is it asked how far stdin has come', async () => {
    const { client, connection } = await connectFake({ reply: foreignReply });
    const handle = await startFake(client, connection, 'p');
    await expect(handle.write('x', { offset: 0 })).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await expect(handle.stdinOffset()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(connection.count('process/write') + connection.count('process/list')).toBe(0);
    await client.close();
  });
});

describe('the position of stdin', () => {
  it('is what the server has accepted, whoever wrote it', async () => {
    const { handle, connection, close } = await startPiped();
    const { processId } = handle;
    const asking = [handle.stdinOffset(), handle.stdinOffset()] as const;
    const listed = { processId, argv: ['cat'], tty: false, state: 'running', startedAtMs: 1, outputBytes: 0 };
    const summary = { ...listed, retainedBytes: 0, firstRetainedSeq: 1, nextSeq: 1, stdinBytes: 4_711 };
    connection.answer(await connection.next('process/list'), { processes: [summary], epoch: 'e' });
    expect(await asking[0]).toBe(4_711);
    connection.answer(await connection.next('process/list'), { processes: [], epoch: 'e' });
    await expect(asking[1]).rejects.toMatchObject({
      code: 'SERVER_ERROR',
      data: { reason: 'unknownProcess', processId },
    });
    await close();
  });
});

describe('writes to many processes that do not read', () => {
  it('leave room among what a server lets be unanswered, however many they are', async () => {
    const { client, connection } = await connectFake({ reply: extendedReply('s1', { limits: undefined }) });
    const bytes = new Uint8Array(PIECE_BYTES);
    let sentBytes = 0;
    for (let processes = 0; processes < 1_000; processes++) {
      const [handle] = await Promise.all([client.start({ argv: ['x'], stdin: 'pipe' }), connection.start()]);
      handle.write(bytes).catch(() => undefined);
      sentBytes += String((await connection.next('process/write')).params['chunk']).length;
    }
    expect(sentBytes).toBeLessThan(limits.PENDING_REQUEST_BYTES / 2);
    await client.close();
  });
});

describe('writes that nobody waits for', () => {
  it('are refused beyond a bound, and all later ones too until the queue is empty', async () => {
    const { handle, connection, close } = await startPiped();
    const accept = async (): Promise<void> =>
      connection.answer(await connection.next('process/write'), { status: 'accepted' });
    const big = handle.write(new Uint8Array(QUEUED_BYTES));
    const over = { code: 'STDIN_FULL', data: { processId: expect.any(String) as unknown, retryable: true } };
    await expect(handle.write('one too many')).rejects.toMatchObject(over);
    await expect(handle.end()).rejects.toMatchObject(over);
    for (let sent = 0; sent < QUEUED_BYTES; sent += PIECE_BYTES) await accept();
    await big;
    const ending = handle.end('more');
    await accept();
    await ending;
    await close();
  });

  it('are bounded in number as well', async () => {
    const { handle, close } = await startPiped();
    handle.write(new Uint8Array(QUEUED_BYTES - 1_000)).catch(() => undefined);
    let refused = 0;
    for (let writes = 0; writes < 100; writes++) {
      handle.write('x').catch((error: unknown) => (refused += isClientError(error) ? 1 : 0));
    }
    await settle();
    expect(refused).toBeGreaterThan(0);
    await close();
  });
});
