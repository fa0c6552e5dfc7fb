import { describe, expect, it } from 'vitest';
import { connectFake, settle, startFake } from '../testSupport/connectFake.js';
import { READ_AHEAD_BYTES } from './streams.js';

const decoder = new TextDecoder();

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = '';
  for await (const bytes of stream) text += decoder.decode(bytes, { stream: true });
  return text;
}

describe('the output streams of a process', () => {
  it('have each their own bytes, and end with the process', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const [stdout, stderr] = [textOf(handle.stdout), textOf(handle.stderr)];
    connection.output('p', 1, 'out ');
    connection.output('p', 2, 'err', 'stderr');
    connection.output('p', 3, 'and terminal', 'pty');
    connection.exited('p', 4);
    connection.closedEvent('p', 5);
    expect([await stdout, await stderr]).toEqual(['out and terminal', 'err']);
    expect(handle.stdout).toBe(handle.stdout);
    await client.close();
  });

  it('keep a byte order mark, as bytes and as text', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    connection.output('p', 1, '\uFEFFa');
    connection.closedEvent('p', 2);
    let text = '';
    for await (const piece of handle.text()) text += piece;
    expect(text).toBe('\uFEFFa');
    await client.close();
  });

  it('can be read one after the other, however late', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    connection.output('p', 1, 'err', 'stderr');
    connection.output('p', 2, 'out');
    connection.closedEvent('p', 3);
    await handle.closed();
    expect(await textOf(handle.stdout)).toBe('out');
    expect(await textOf(handle.stderr)).toBe('err');
    await client.close();
  });

  it('hold back nothing when nobody reads them, although they were asked for', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    expect([handle.stdout.locked, handle.stderr.locked]).toEqual([false, false]);
    connection.output('p', 1, 'x'.repeat(READ_AHEAD_BYTES * 2));
    await settle();
    expect((await connection.next('process/ack')).params).toEqual({ processId: 'p', seq: 1 });
    await client.close();
  });

  it('do not hold back each other: one that was read before waits at no output of the other', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const stderr = handle.stderr.getReader();
    connection.output('p', 1, 'ready', 'stderr');
    expect(decoder.decode((await stderr.read()).value)).toBe('ready');
    for (const seq of [2, 3, 4]) connection.output('p', seq, 'x'.repeat(READ_AHEAD_BYTES));
    await settle();
    const acks = connection.received.filter(({ method }) => method === 'process/ack');
    expect(acks.at(-1)?.params).toEqual({ processId: 'p', seq: 4 });
    await client.close();
  });

  it('hold back the process once a stream that is read has a buffer full of its own', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const stdout = handle.stdout.getReader();
    const reading = stdout.read();
    await settle();
    for (const seq of [1, 2, 3]) connection.output('p', seq, 'x'.repeat(READ_AHEAD_BYTES));
    await reading;
    await settle();
    const ackedSeqs = (): unknown[] =>
      connection.received.filter(({ method }) => method === 'process/ack').map(({ params }) => params['seq']);
    const before = ackedSeqs();
    expect(Math.max(...before.map(Number), 0)).toBeLessThan(3);
    await stdout.cancel();
    while (ackedSeqs().at(-1) !== 3) await settle();
    await client.close();
  });

  it('fail with the client', async () => {
    const { client, connection } = await connectFake({ once: true });
    const handle = await startFake(client, connection, 'p');
    const reading = textOf(handle.stdout);
    reading.catch(() => undefined);
    await settle();
    connection.cut();
    await expect(reading).rejects.toMatchObject({ code: 'RECOVERY_FAILED', data: { processId: 'p' } });
  });

  it('give everything there was before they fail, and the cursor behind it', async () => {
    const { client, connection } = await connectFake({ once: true });
    const handle = await startFake(client, connection, 'p');
    const stdout = handle.stdout.getReader();
    const text = handle.text();
    const first = [stdout.read(), text.next()] as const;
    for (const seq of [1, 2, 3]) connection.output('p', seq, `${seq}`);
    await Promise.all(first);
    await settle();
    connection.cut();
    await settle();
    const rest = ['2', '3'].map((piece) => new TextEncoder().encode(piece));
    for (const value of rest) expect(await stdout.read()).toEqual({ done: false, value });
    for (const value of ['2', '3']) expect(await text.next()).toEqual({ done: false, value });
    const lost = { code: 'RECOVERY_FAILED', data: { processId: 'p', cursor: 3 } };
    await expect(stdout.read()).rejects.toMatchObject(lost);
    await expect(text.next()).rejects.toMatchObject(lost);
    await client.close();
  });

  it('skip a gap and note it, or fail with errorOnGap', async () => {
    for (const errorOnGap of [false, true]) {
      const { client, connection } = await connectFake({ options: { errorOnGap } });
      const handle = await startFake(client, connection, 'p');
      connection.notify('process/gap', { processId: 'p', fromSeq: 1, throughSeq: 3, bytes: 30 });
      connection.output('p', 4, 'rest');
      connection.closedEvent('p', 5);
      if (errorOnGap) {
        await expect(textOf(handle.stdout)).rejects.toMatchObject({ code: 'OUTPUT_LOST' });
      } else {
        expect(await textOf(handle.stdout)).toBe('rest');
        expect(handle.gaps).toEqual([{ type: 'gap', fromSeq: 1, throughSeq: 3, bytes: 30 }]);
      }
      await client.close();
    }
  });

  it('let go of the process when they are cancelled in the middle of a read', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const reader = handle.stdout.getReader();
    const reading = reader.read();
    await settle();
    await reader.cancel();
    expect((await reading).done).toBe(true);
    connection.output('p', 1, 'x'.repeat(READ_AHEAD_BYTES));
    expect((await connection.next('process/ack')).params).toEqual({ processId: 'p', seq: 1 });
    await client.close();
  });
});

describe('the text of a stream', () => {
  it('has characters whole that chunks, and the other stream, split', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const bytes = [...new TextEncoder().encode('ü→😀')];
    bytes.forEach((byte, index) => {
      const chunk = Buffer.of(byte).toString('base64');
      connection.notify('process/output', { processId: 'p', seq: index * 2 + 1, stream: 'stdout', chunk });
      connection.notify('process/output', { processId: 'p', seq: index * 2 + 2, stream: 'stderr', chunk });
    });
    connection.closedEvent('p', bytes.length * 2 + 1);
    for (const stream of ['stdout', 'stderr'] as const) {
      let text = '';
      for await (const piece of handle.text(stream)) text += piece;
      expect(text).toBe('ü→😀');
    }
    await client.close();
  });

  it('shows where a gap has cut a character', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    connection.notify('process/output', { processId: 'p', seq: 1, stream: 'stdout', chunk: '8J8=' });
    connection.notify('process/gap', { processId: 'p', fromSeq: 2, throughSeq: 2 });
    connection.output('p', 3, 'b');
    connection.closedEvent('p', 4);
    const pieces: string[] = [];
    for await (const piece of handle.text()) pieces.push(piece);
    expect(pieces).toEqual(['\uFFFD', 'b']);
    await client.close();
  });
});

describe('stdin as a stream', () => {
  it('writes in order and ends with its close', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const writer = handle.stdin.getWriter();
    const done = Promise.all([writer.write('one'), writer.write(new Uint8Array([0x32])), writer.close()]);
    for (const [text, eof] of [
      ['one', undefined],
      ['2', undefined],
      ['', true],
    ] as const) {
      const write = await connection.next('process/write');
      expect(write.params['chunk']).toBe(Buffer.from(text).toString('base64'));
      expect(write.params['eof']).toBe(eof);
      connection.answer(write, { status: 'accepted' });
    }
    await done;
    await client.close();
  });

  it('fails when the process takes nothing more', async () => {
    const { client, connection } = await connectFake();
    const handle = await startFake(client, connection, 'p');
    const writer = handle.stdin.getWriter();
    writer.closed.catch(() => undefined);
    const writing = writer.write('x');
    writing.catch(() => undefined);
    connection.answer(await connection.next('process/write'), { status: 'stdinClosed' });
    await expect(writing).rejects.toMatchObject({ code: 'STDIN_CLOSED' });
    await client.close();
  });
});

it('a handle remembers the last gaps and not any number of them', async () => {
  const { client, connection } = await connectFake();
  const handle = await startFake(client, connection, 'p');
  const text = textOf(handle.stdout);
  for (let seq = 1; seq <= 3_000; seq++) {
    connection.notify('process/gap', { processId: 'p', fromSeq: seq, throughSeq: seq });
  }
  connection.closedEvent('p', 3_001);
  expect(await text).toBe('');
  expect(handle.gaps).toHaveLength(1_024);
  expect(handle.gaps.at(-1)).toMatchObject({ fromSeq: 3_000 });
  await client.close();
});
