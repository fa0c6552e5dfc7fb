/** Staged writes as a peer sees them, across connections. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Raw } from '../support/raw.js';
import { RawServed } from '../support/rawServed.js';
import { Scratch } from '../support/scratch.js';

const chunk = (text: string): string => Buffer.from(text).toString('base64');

describe('staged writes', () => {
  let scratch: Scratch;
  let served: RawServed;
  beforeEach(() => {
    scratch = new Scratch();
    served = new RawServed('websocket');
  });
  afterEach(async () => {
    await served.expectClean();
    scratch.remove();
  });

  const open = (raw: Raw, more: object = {}): Promise<Readonly<Record<string, unknown>>> =>
    raw.result('fs/open', { handleId: 'h', path: scratch.path('f'), mode: 'replace', stage: 's', ...more });
  const write = (raw: Raw, offset: number, text: string): Promise<unknown> =>
    raw.result('fs/writeBlock', { handleId: 'h', offset, chunk: chunk(text) });
  async function cut(raw: Raw): Promise<void> {
    raw.transport.abort({ kind: 'cut', detail: 'cut by the test' });
    await raw.closed;
  }

  it('go on after a cut where they were, and replace the file at the commit', async () => {
    scratch.file('f', 'old', 0o600);
    const one = await served.dial();
    const id = await one.initialize();
    expect(await open(one)).toEqual({ handleId: 'h', stagedBytes: 0 });
    await write(one, 0, 'first ');
    await cut(one);
    const two = await served.ready({ resumeSessionId: id });
    expect(await open(two)).toEqual({ handleId: 'h', stagedBytes: 6 });
    await write(two, 6, 'second');
    expect(scratch.text('f')).toBe('old');
    expect(await two.result('fs/close', { handleId: 'h', commit: true })).toEqual({});
    expect([scratch.names(), scratch.text('f'), scratch.mode('f')]).toEqual([['f'], 'first second', 0o600]);
  });

  it('say that they were committed when the answer to the commit was lost', async () => {
    const one = await served.dial();
    const id = await one.initialize();
    await open(one);
    await write(one, 0, 'whole');
    one.send({ id: 1, method: 'fs/close', params: { handleId: 'h', commit: true } });
    one.send({ id: 2, method: 'ping', params: {} });
    await one.until(2);
    await cut(one);
    const two = await served.ready({ resumeSessionId: id });
    expect(await open(two)).toEqual({ handleId: 'h', committed: {} });
    expect((await two.call('fs/close', { handleId: 'h', commit: true })).error?.data).toMatchObject({
      reason: 'unknownHandle',
    });
    expect([scratch.names(), scratch.text('f')]).toEqual([['f'], 'whole']);
  });

  it('commit in the order of requests about their path', async () => {
    const raw = await served.ready();
    await open(raw);
    await write(raw, 0, 'sta');
    const path = scratch.path('f');
    raw.send({ id: 1, method: 'fs/writeFile', params: { path, dataBase64: chunk('before') } });
    // The commit waits for the block before it, and keeps its place all the same.
    raw.send({ id: 'w', method: 'fs/writeBlock', params: { handleId: 'h', offset: 3, chunk: chunk('ged') } });
    raw.send({ id: 2, method: 'fs/close', params: { handleId: 'h', commit: true } });
    raw.send({ id: 3, method: 'fs/writeFile', params: { path, dataBase64: chunk('+'), append: true } });
    await raw.answerTo(3);
    expect(scratch.text('f')).toBe('staged+');
  });

  it('go on with the client that takes the session over, whose loser is not gone yet', async () => {
    const one = await served.dial();
    const id = await one.initialize({ protocolVersion: 1 });
    await open(one);
    await write(one, 0, 'first ');
    // It does not read, so that it does not take its close either.
    one.transport.pause();
    const two = await served.ready({ protocolVersion: 1, resumeSessionId: id, takeOver: true });
    expect(served.server.gauges().connections).toBe(2);
    expect(await open(two)).toEqual({ handleId: 'h', stagedBytes: 6 });
    await write(two, 6, 'second');
    expect(await two.result('fs/close', { handleId: 'h', commit: true })).toEqual({});
    expect(scratch.text('f')).toBe('first second');
    one.transport.resume();
    await one.closed;
  });

  it('are refused to a second handle, and free again after a plain close', async () => {
    const raw = await served.ready();
    await open(raw);
    const second = await raw.call('fs/open', {
      handleId: 'i',
      path: scratch.path('f'),
      mode: 'replace',
      stage: 's',
    });
    expect(second.error).toMatchObject({ code: -32600, data: { field: 'stage' } });
    expect(await raw.result('fs/close', { handleId: 'h' })).toEqual({});
    expect(await open(raw)).toEqual({ handleId: 'h', stagedBytes: 0 });
    expect(await raw.result('fs/close', { handleId: 'h' })).toEqual({});
    expect(scratch.names()).toEqual([]);
  });

  it('end with their session', async () => {
    const raw = await served.ready();
    await open(raw);
    await write(raw, 0, 'x');
    expect(scratch.names()).toHaveLength(1);
    await raw.result('session/close', {});
    await raw.closed;
    await served.server.close();
    expect(scratch.names()).toEqual([]);
  });
});
