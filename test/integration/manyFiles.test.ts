/** More files than one connection may have open at a time. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { join } from '../support/links.js';

const MIB = 1024 * 1024;
const noise = (length: number): Buffer => Buffer.alloc(length, 'content');

async function gather(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

describe('more files at a time than a connection may have open', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-line-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('wait in line, and none is refused', async () => {
    const joined = await join('memory');
    const { fs } = joined.client;
    const content = noise(MIB + 1);
    await writeFile(joinPath(folder, 'read'), content);
    const paths = Array.from({ length: 140 }, (_, index) => joinPath(folder, `${index}`));
    const writes = paths.map((path) => fs.writeFile(path, content));
    const reads = paths.map(async () => (await gather(fs.readStream(joinPath(folder, 'read')))).length);
    await Promise.all(writes);
    expect(new Set(await Promise.all(reads))).toEqual(new Set([content.length]));
    expect(await readdir(folder)).toHaveLength(141);
    await joined.expectClean();
  });

  it('go on in line when the one in front is let go, and give up with their caller', async () => {
    const joined = await join('memory');
    const { fs } = joined.client;
    await writeFile(joinPath(folder, 'read'), 'content');
    const open = (signal?: AbortSignal): ReadableStreamDefaultReader<Uint8Array> =>
      fs.readStream(joinPath(folder, 'read'), { signal }).getReader();
    const held = Array.from({ length: 128 }, () => open());
    await Promise.all(held.map((reader) => reader.read()));
    const abort = new AbortController();
    const [given, next] = [open(abort.signal), open()];
    const [first, second] = [given.read(), next.read()];
    abort.abort();
    await expect(first).rejects.toMatchObject({ code: 'ABORTED' });
    await held[0]?.cancel();
    expect((await second).value).toHaveLength(7);
    await Promise.all([...held, next].map((reader) => reader.cancel()));
    await joined.expectClean();
  });

  it('end with CLOSED when the client is closed', async () => {
    const joined = await join('memory');
    const writer = joined.client.fs.writeStream(joinPath(folder, 'never')).getWriter();
    await writer.write(noise(MIB));
    const writing = (async () => {
      for (;;) await writer.write(noise(MIB));
    })();
    const ended = expect(writing).rejects.toMatchObject({ code: 'CLOSED' });
    await joined.client.close();
    await ended;
    await joined.expectClean();
    expect(await readdir(folder)).toEqual([]);
  });
});
