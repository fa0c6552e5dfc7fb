import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { joinByProxy, type Proxied } from '../support/proxied.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
/** Bytes that repeat after 65,537, which is no multiple of any block. */
const pattern = Buffer.from(Array.from({ length: 65_537 }, (_, at) => (at * 7919) >> 5));
const content = Buffer.alloc(4 * MIB + 11, pattern);
const CUTS = 3;

describe('files over a connection that is cut again and again', () => {
  let joined: Proxied;
  let folder: string;
  const at = (name: string): string => joinPath(folder, name);
  beforeEach(async () => {
    folder = await mkdtemp(joinPath(tmpdir(), 'files-'));
    joined = await joinByProxy();
  });
  afterEach(async () => {
    await joined.expectClean();
    await rm(folder, { recursive: true, force: true });
  });

  it('arrive to the byte as streams and as whole files', async () => {
    await writeFile(at('file'), content);
    const pieces: Uint8Array[] = [];
    let taken = 0;
    for await (const piece of joined.client.fs.readStream(at('file'))) {
      pieces.push(piece);
      taken += piece.length;
      if (taken > joined.proxy.counters.cuts * MIB && joined.proxy.counters.cuts < CUTS) joined.proxy.cut();
    }
    expect(joined.proxy.counters.cuts).toBe(CUTS);
    expect(content.equals(Buffer.concat(pieces))).toBe(true);
    joined.proxy.cutAfterBytes('down', 2 * MIB);
    expect(content.equals(await joined.client.fs.readFile(at('file')))).toBe(true);
    expect(joined.proxy.counters.cuts).toBe(CUTS + 1);
  });

  it('are written once and whole, and nothing is left beside them', async () => {
    const writer = joined.client.fs.writeStream(at('file')).getWriter();
    for (let from = 0; from < content.length; from += 100_000) {
      await writer.write(content.subarray(from, from + 100_000));
      if (from > joined.proxy.counters.cuts * MIB && joined.proxy.counters.cuts < CUTS) joined.proxy.cut();
    }
    await writer.close();
    expect(joined.proxy.counters.cuts).toBe(CUTS);
    expect(content.equals(await readFile(at('file')))).toBe(true);
    joined.proxy.cutAfterBytes('up', 2 * MIB);
    await joined.client.fs.writeFile(at('second'), content);
    expect(joined.proxy.counters.cuts).toBe(CUTS + 1);
    expect(content.equals(await readFile(at('second')))).toBe(true);
    expect((await readdir(folder)).toSorted()).toEqual(['file', 'second']);
  });

  it('are FILE_CHANGED where another file took their place meanwhile', async () => {
    await writeFile(at('file'), content);
    await writeFile(at('other'), content);
    const reader = joined.client.fs.readStream(at('file')).getReader();
    await reader.read();
    joined.proxy.cut();
    await rename(at('other'), at('file'));
    const rest = (async (): Promise<void> => {
      for (let done = false; !done; ) ({ done } = await reader.read());
    })();
    await expect(rest).rejects.toMatchObject({ code: 'FILE_CHANGED', data: { path: at('file'), retryable: true } });
  });

  it('are watched again, and the watcher is told that changes may be missing', async () => {
    const watch = await joined.client.fs.watch(folder);
    joined.proxy.cut();
    await writeFile(at('while away'), '');
    let overflow = false;
    while (!overflow) overflow = (await watch.next()).value?.overflow === true;
    await until(() => joined.client.state === 'ready', 'the client to be ready');
    await writeFile(at('new'), '');
    const seen: string[] = [];
    for await (const { changes } of watch) {
      for (const { path } of changes) seen.push(path);
      if (seen.includes(at('new'))) break;
    }
    expect(seen).toContain(at('new'));
  });

  it('are no whole archive: it ends with a failure that is worth a repeat', async () => {
    await writeFile(at('file'), content);
    joined.proxy.cutAfterBytes('down', 2 * MIB);
    const packed = (async (): Promise<number> => {
      let bytes = 0;
      for await (const piece of joined.client.fs.pack(folder)) bytes += piece.length;
      return bytes;
    })();
    await expect(packed).rejects.toMatchObject({ code: 'TRANSFER_LOST', data: { retryable: true } });
  });
});
