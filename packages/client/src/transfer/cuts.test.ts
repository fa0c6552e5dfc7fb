import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeBase64 } from '@exec-server/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CUTS_WITHOUT_PROGRESS } from '../files/cuts.js';
import { type Connected, connectFake, foreignReply } from '../testSupport/connectFake.js';
import { extendedReply, type FakeConnection, type FakeRequest } from '../testSupport/fakeServer.js';
import { throughCuts } from './cuts.js';
import { HandleLost } from './remote.js';

const BLOCK = 512 * 1024;
const stat = {
  isDirectory: false,
  isFile: true,
  isSymlink: false,
  size: 3 * BLOCK,
  createdAtMs: 0,
  modifiedAtMs: 5_000,
};

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exec-server-cuts-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** The next connection, which has the same session. */
async function again({ server }: Connected): Promise<FakeConnection> {
  const connection = await server.accept();
  await connection.handshake(extendedReply('s1', { resumed: true }));
  return connection;
}

/** Takes the next call of a method and answers it. */
async function take(connection: FakeConnection, method: string, answer: object): Promise<FakeRequest> {
  const request = await connection.next(method);
  connection.answer(request, answer);
  return request;
}

const missing = async (connection: FakeConnection): Promise<void> =>
  connection.refuse(await connection.next('fs/getMetadata'), -32004, 'No such file or directory (os error 2)', {
    reason: 'fileNotFound',
    errno: 'ENOENT',
  });

describe('a large file that is sent', () => {
  it('goes on behind what has arrived, and is not committed twice when the answer is lost', async () => {
    await writeFile(join(folder, 'file'), Buffer.alloc(3 * BLOCK));
    const fake = await connectFake();
    const bytes: number[] = [];
    const sent = fake.client.fs.upload(join(folder, 'file'), '/to', { onProgress: (told) => bytes.push(told.bytes) });
    await missing(fake.connection);
    const opened = await take(fake.connection, 'fs/open', { handleId: 'h', stagedBytes: 0 });
    await take(fake.connection, 'fs/writeBlock', {});
    await fake.connection.next('fs/writeBlock');
    fake.connection.cut();
    const second = await again(fake);
    const reopened = await take(second, 'fs/open', { handleId: 'h', stagedBytes: 2 * BLOCK });
    expect(reopened.params).toMatchObject({ stage: opened.params['stage'], path: 'file:///to', mode: 'replace' });
    expect(reopened.params['handleId']).not.toBe(opened.params['handleId']);
    const rest = await take(second, 'fs/writeBlock', {});
    expect(rest.params).toMatchObject({ handleId: reopened.params['handleId'], offset: 2 * BLOCK });
    const closed = await second.next('fs/close');
    expect(closed.params).toMatchObject({ commit: true });
    second.cut();
    const third = await again(fake);
    await take(third, 'fs/open', { handleId: 'h', committed: {} });
    expect(await sent).toMatchObject({ files: 1, bytes: 3 * BLOCK });
    expect(bytes.at(-1)).toBe(3 * BLOCK);
    expect(third.count('fs/writeBlock')).toBe(0);
    await fake.client.close();
  });

  it('leaves no stage when it is aborted while the connection is away', async () => {
    await writeFile(join(folder, 'file'), Buffer.alloc(3 * BLOCK));
    const fake = await connectFake();
    const abort = new AbortController();
    const sent = fake.client.fs.upload(join(folder, 'file'), '/to', { signal: abort.signal });
    await missing(fake.connection);
    const opened = await take(fake.connection, 'fs/open', { handleId: 'h', stagedBytes: 0 });
    await fake.connection.next('fs/writeBlock');
    fake.connection.cut();
    abort.abort();
    const second = await again(fake);
    const reopened = await take(second, 'fs/open', { handleId: 'h', stagedBytes: 0 });
    expect(reopened.params['stage']).toBe(opened.params['stage']);
    const closed = await take(second, 'fs/close', {});
    expect(closed.params).toEqual({ handleId: reopened.params['handleId'] });
    await expect(sent).rejects.toMatchObject({ code: 'ABORTED' });
    await fake.client.close();
  });
});

describe('a large file that is fetched', () => {
  const open = { handleId: 'h', identity: 'i', version: 'v', size: 2 * BLOCK, mode: 0o644 };
  const block = (filling: number): object => ({ chunk: encodeBase64(new Uint8Array(BLOCK).fill(filling)), eof: false });

  async function fetchFirst(
    fake: Connected,
  ): Promise<{ readonly fetched: Promise<unknown>; readonly second: FakeConnection }> {
    const fetched = fake.client.fs.download('/from', join(folder, 'to'));
    // Its failure is met by the test.
    fetched.catch(() => undefined);
    await take(fake.connection, 'fs/getMetadata', stat);
    await take(fake.connection, 'fs/open', open);
    await take(fake.connection, 'fs/readBlock', block(1));
    // Asked for once the first block is in the file.
    await fake.connection.next('fs/readBlock');
    expect(await readdir(folder)).toEqual([expect.stringMatching(/^\.exec-server-.*\.tmp$/)]);
    fake.connection.cut();
    return { fetched, second: await again(fake) };
  }

  it('goes on where it was', async () => {
    const fake = await connectFake();
    const { fetched, second } = await fetchFirst(fake);
    await take(second, 'fs/open', open);
    const rest = await take(second, 'fs/readBlock', { chunk: encodeBase64(new Uint8Array(7).fill(2)), eof: true });
    expect(rest.params).toMatchObject({ offset: BLOCK });
    await take(second, 'fs/close', {});
    expect(await fetched).toMatchObject({ files: 1, bytes: BLOCK + 7 });
    const bytes = await readFile(join(folder, 'to'));
    expect([bytes.length, bytes[BLOCK - 1], bytes[BLOCK]]).toEqual([BLOCK + 7, 1, 2]);
    await fake.client.close();
  });

  it('is given up when another file has its path by then, and nothing of it stays', async () => {
    const fake = await connectFake();
    const { fetched, second } = await fetchFirst(fake);
    await take(second, 'fs/open', { ...open, version: 'w' });
    await take(second, 'fs/close', {});
    await expect(fetched).rejects.toMatchObject({ code: 'FILE_CHANGED', data: { retryable: true } });
    expect(await readdir(folder)).toEqual([]);
    await fake.client.close();
  });
});

describe('a file for a foreign server', () => {
  it('is written from the start again after a cut, by the base methods alone', async () => {
    await writeFile(join(folder, 'file'), 'abc');
    const fake = await connectFake({ reply: foreignReply });
    const sent = fake.client.fs.upload(join(folder, 'file'), '/to');
    fake.connection.refuse(
      await fake.connection.next('fs/getMetadata'),
      -32004,
      'No such file or directory (os error 2)',
    );
    const opened = await take(fake.connection, 'fs/open', { handleId: 'h' });
    expect(Object.keys(opened.params).sort((one, other) => (one < other ? -1 : 1))).toEqual([
      'handleId',
      'mode',
      'path',
    ]);
    await fake.connection.next('fs/writeBlock');
    fake.connection.cut();
    const second = await fake.server.accept();
    await second.handshake(foreignReply);
    await take(second, 'fs/open', { handleId: 'h' });
    expect((await take(second, 'fs/writeBlock', {})).params).toMatchObject({ offset: 0 });
    await take(second, 'fs/close', {});
    expect(await sent).toMatchObject({ files: 1, bytes: 3 });
    await fake.client.close();
  });
});

describe('throughCuts', () => {
  it('gives up when nothing arrives between many cuts', async () => {
    let calls = 0;
    const lost = throughCuts('/file', () => {
      calls += 1;
      return Promise.reject(new HandleLost('cut'));
    });
    await expect(lost).rejects.toMatchObject({ code: 'TRANSFER_LOST', data: { retryable: true, path: '/file' } });
    expect(calls).toBe(CUTS_WITHOUT_PROGRESS);
  });

  it('goes on through any number of cuts that leave something behind', async () => {
    let arrived = 0;
    const action = (attempt: number): Promise<number> => {
      arrived += 1;
      return attempt > 3 * CUTS_WITHOUT_PROGRESS ? Promise.resolve(attempt) : Promise.reject(new HandleLost('cut'));
    };
    expect(await throughCuts('/file', action, () => arrived)).toBe(3 * CUTS_WITHOUT_PROGRESS + 1);
  });

  it('passes every other failure on', async () => {
    await expect(throughCuts('/file', () => Promise.reject(new Error('other')))).rejects.toThrow('other');
  });
});
