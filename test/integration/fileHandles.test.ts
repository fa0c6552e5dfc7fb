/** `fs/open` for reading, `fs/readBlock`, `fs/close`, as raw messages see them. */
import { appendFile, readdir, readlink, rename, truncate, unlink, writeFile } from 'node:fs/promises';
import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { base64, FilesRig } from '../support/filesRig.js';
import { until } from '../support/until.js';

const h = 'h';

/** Descriptors of this process, and so of the server in it, that lie in a folder. */
async function openIn(folder: string): Promise<string[]> {
  const links = await Promise.all(
    // One that closes between the listing and the look is not open.
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  );
  return links.filter((path) => path.startsWith(`${folder}/`));
}

async function opened(content = '0123456789', params: object = {}): Promise<FilesRig> {
  const rig = await FilesRig.open();
  await writeFile(rig.at('f'), content);
  expect(await rig.result('fs/open', { handleId: h, path: rig.at('f'), ...params })).toMatchObject({ handleId: h });
  return rig;
}

describe('blocks of an open file', () => {
  it('have an end exactly where fewer bytes were there than asked for', async () => {
    await using rig = await opened();
    const block = (offset: number, len: number): Promise<unknown> =>
      rig.result('fs/readBlock', { handleId: h, offset, len });
    expect(await block(0, 4)).toEqual({ chunk: base64('0123'), eof: false });
    expect(await block(4, 6)).toEqual({ chunk: base64('456789'), eof: false });
    expect(await block(4, 7)).toEqual({ chunk: base64('456789'), eof: true });
    expect(await block(10, 1)).toEqual({ chunk: '', eof: true });
    expect(await block(1000, 1)).toEqual({ chunk: '', eof: true });
    expect(await block(8 * 1024 ** 3, 1)).toEqual({ chunk: '', eof: true });
  });

  it.each([
    ['a length of 0', 0, 0, 'file read block length must be between 1 and 1048576'],
    ['a length above the largest', 0, 1_048_577, 'file read block length must be between 1 and 1048576'],
    ['an offset no file has', 2 ** 63, 1, 'Invalid argument (os error 22)'],
  ])('refuse %s', async (_what, offset, len, message) => {
    await using rig = await opened();
    const error = await rig.error('fs/readBlock', { handleId: h, offset, len });
    expect(error).toMatchObject({ code: -32600, message, data: { reason: 'invalidArgument' } });
  });

  it('come from the file that was opened, whatever becomes of its path', async () => {
    await using rig = await opened('old content');
    const chunk = async (offset: number): Promise<string> => {
      const result = await rig.result('fs/readBlock', { handleId: h, offset, len: 100 });
      return Buffer.from(String(result['chunk']), 'base64').toString('utf8');
    };
    await writeFile(rig.at('g'), 'new');
    await rename(rig.at('g'), rig.at('f'));
    expect(await chunk(4)).toBe('content');
    await unlink(rig.at('f'));
    expect(await chunk(0)).toBe('old content');
  });

  it('with detail say the size at each read, while the file grows and shrinks', async () => {
    await using rig = await FilesRig.open();
    const path = rig.at('f');
    await writeFile(path, 'abc', { mode: 0o640 });
    const { identity, version } = await rig.result('fs/getMetadata', { path, detail: true });
    const read = (offset: number, len: number): Promise<unknown> =>
      rig.result('fs/readBlock', { handleId: h, offset, len });
    expect(await rig.result('fs/open', { handleId: h, path, detail: true })).toEqual({
      handleId: h,
      identity,
      version,
      size: 3,
      mode: 0o640,
    });
    expect(await read(0, 3)).toEqual({ chunk: base64('abc'), eof: false, size: 3 });
    await appendFile(path, 'de');
    expect(await read(3, 10)).toEqual({ chunk: base64('de'), eof: true, size: 5 });
    await truncate(path, 0);
    expect(await read(3, 10)).toEqual({ chunk: '', eof: true, size: 0 });
  });

  it('of an archive or a file come in the order asked for, when many are asked for at a time', async () => {
    const content = Array.from({ length: 3 * 1024 }, (_, at) => String(at).padStart(1024, '.')).join('');
    await using rig = await opened(content);
    const len = 512 * 1024;
    const ids = Array.from({ length: 6 }, (_, at) => at + 1);
    for (const id of ids)
      rig.raw.send({ id, method: 'fs/readBlock', params: { handleId: h, offset: (id - 1) * len, len } });
    const answers = await rig.raw.until(6);
    expect(answers.map(({ id }) => id)).toEqual(ids);
    const chunks = answers.map(({ result }) => Buffer.from(String(result?.['chunk']), 'base64').toString('utf8'));
    expect(chunks.join('')).toBe(content);
  });
});

describe('handles', () => {
  it('cannot be written, and refuse what is no base64 as the base protocol does', async () => {
    await using rig = await opened();
    const write = (chunk: string, offset = 0): Promise<unknown> =>
      rig.error('fs/writeBlock', { handleId: h, offset, chunk });
    expect(await write('eA==')).toMatchObject({ code: -32603, message: 'Bad file descriptor (os error 9)' });
    expect(await write('***')).toMatchObject({
      code: -32602,
      message: 'Invalid symbol 42, offset 0.',
      data: { reason: 'invalidParams', field: 'chunk' },
    });
    const length = { code: -32600, message: 'file write block length must be between 1 and 1048576' };
    expect(await write('')).toMatchObject(length);
    expect(await write(base64(Buffer.alloc(1_048_577)))).toMatchObject(length);
  });

  it('are unique, have short ids, and are unknown when closed', async () => {
    await using rig = await opened();
    const path = rig.at('f');
    expect(await rig.error('fs/open', { handleId: h, path })).toMatchObject({
      code: -32600,
      message: 'file handle `h` already exists',
    });
    expect(await rig.error('fs/open', { handleId: 'x'.repeat(33), path })).toMatchObject({
      code: -32600,
      message: 'file handle ID must not exceed 32 bytes',
    });
    expect(await rig.result('fs/close', { handleId: h })).toEqual({});
    expect(await openIn(rig.folder)).toEqual([]);
    expect(await rig.error('fs/readBlock', { handleId: h, offset: 0, len: 1 })).toMatchObject({
      code: -32004,
      message: 'unknown file handle `h`',
      data: { reason: 'unknownHandle' },
    });
    expect(await rig.result('fs/close', { handleId: h })).toEqual({});
    expect(await rig.error('fs/close', { handleId: h, commit: true })).toMatchObject({ code: -32004 });
    expect(await rig.result('fs/open', { handleId: h, path })).toEqual({ handleId: h });
  });

  it('are bounded, and make room when closed', async () => {
    await using rig = await FilesRig.open();
    const path = rig.at('f');
    await writeFile(path, 'x');
    for (let at = 0; at < limits.FILE_HANDLES_PER_CONNECTION; at += 1) {
      await rig.result('fs/open', { handleId: `${at}`, path });
    }
    const one = { handleId: 'one', path };
    expect(await rig.error('fs/open', one)).toMatchObject({
      code: -32600,
      message: 'at most 128 file handles may be open per connection',
      data: { reason: 'tooManyHandles', limit: 128 },
    });
    await rig.result('fs/close', { handleId: '7' });
    expect(await rig.result('fs/open', one)).toEqual({ handleId: 'one' });
  });

  it('may be used and closed before it is known that they are open', async () => {
    await using rig = await FilesRig.open();
    await writeFile(rig.at('f'), 'x');
    rig.raw.send({ id: 1, method: 'fs/open', params: { handleId: h, path: rig.at('f') } });
    rig.raw.send({ id: 2, method: 'fs/readBlock', params: { handleId: h, offset: 0, len: 1 } });
    rig.raw.send({ id: 3, method: 'fs/close', params: { handleId: h } });
    expect((await rig.raw.until(3)).map(({ result }) => result)).toEqual([
      { handleId: h },
      { chunk: base64('x'), eof: false },
      {},
    ]);
    rig.raw.send({ id: 4, method: 'fs/open', params: { handleId: h, path: rig.at('none') } });
    rig.raw.send({ id: 5, method: 'fs/readBlock', params: { handleId: h, offset: 0, len: 1 } });
    rig.raw.send({ id: 6, method: 'fs/close', params: { handleId: h } });
    const answers = await rig.raw.until(6);
    expect(answers.map(({ id, error }) => [id, error?.code])).toEqual([
      [4, -32004],
      [5, -32004],
      [6, undefined],
    ]);
  });

  it('belong to their connection and end with it', async () => {
    await using rig = await opened();
    const other = await rig.served.ready();
    expect((await other.call('fs/readBlock', { handleId: h, offset: 0, len: 1 })).error?.code).toBe(-32004);
    await other.result('fs/open', { handleId: h, path: rig.at('f') });
    other.send({ id: 1, method: 'fs/open', params: { handleId: 'late', path: rig.at('f') } });
    other.transport.abort();
    await until(async () => (await openIn(rig.folder)).length === 1, 'the files of the lost connection are closed');
    expect(await rig.result('fs/readBlock', { handleId: h, offset: 0, len: 1 })).toMatchObject({ chunk: base64('0') });
  });
});
