import { execFileSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import type { Client, TransferProgress } from '@exec-server/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { join, type Joined } from '../support/links.js';
import { joinByProxy, type Proxied } from '../support/proxied.js';
import { asForeign, joinRewritten, type Rewrite } from '../support/rewritten.js';
import { linesOfTree, plantTree } from '../support/trees.js';

const MIB = 1024 * 1024;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-transfers-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const at = (...parts: string[]): string => joinPath(folder, ...parts);
const text = (...parts: string[]): Promise<string> => readFile(at(...parts), 'utf8');

/** A folder with one of everything that is carried. */
async function plantSome(): Promise<void> {
  await mkdir(at('from', 'sub', 'empty'), { recursive: true });
  await writeFile(at('from', 'sub', 'file'), 'content', { mode: 0o751 });
  await writeFile(at('from', 'zero'), '');
  await writeFile(at('from', 'large'), randomFillSync(Buffer.alloc(MIB)));
  await symlink('sub/file', at('from', 'link'));
  await symlink('/nowhere', at('from', 'dangling'));
  await chmod(at('from', 'sub'), 0o555);
}

/** What this process has open below the folder of the test. */
async function openFiles(): Promise<string[]> {
  const links = (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''));
  return (await Promise.all(links)).filter((path) => path.startsWith(folder));
}

/** Cuts the connection each time so many bytes more have arrived. */
function cutEvery(bytes: number, { proxy }: Proxied): (progress: TransferProgress) => void {
  let next = bytes;
  return (progress) => {
    if (progress.bytes < next) return;
    next += bytes;
    proxy.cut();
  };
}

describe('a tree of many files and a large one', () => {
  const LARGE = 64 * MIB;

  it('goes up and down unchanged through ten cuts', async () => {
    await plantTree(at('from'), 2_000, (index) => index % 251);
    const large = Buffer.alloc(LARGE);
    randomFillSync(large, 0, MIB);
    for (let filled = MIB; filled < LARGE; filled *= 2) large.copy(large, filled, 0, filled);
    await writeFile(at('from', 'large'), large);
    const lines = await linesOfTree(at('from'));
    const link = await joinByProxy();
    const { client, proxy } = link;
    const done = { files: 2_001, directories: 61, links: 20, skipped: [] };
    const up = await client.fs.upload(at('from'), at('up'), {
      overwrite: false,
      onProgress: cutEvery(LARGE / 6, link),
    });
    expect(up).toMatchObject(done);
    expect(proxy.counters.cuts).toBeGreaterThanOrEqual(5);
    const down = await client.fs.download(at('up'), at('down'), { onProgress: cutEvery(LARGE / 6, link) });
    expect(down).toEqual(up);
    expect(proxy.counters.cuts).toBeGreaterThanOrEqual(10);
    expect(await linesOfTree(at('up'))).toEqual(lines);
    expect(await linesOfTree(at('down'))).toEqual(lines);
    expect(client.gauges().pendingCalls).toBe(0);
    await link.expectClean();
  });
});

describe('transfers', () => {
  let joined: Joined;
  let client: Client;
  beforeEach(async () => {
    joined = await join('memory');
    ({ client } = joined);
    await plantSome();
  });
  afterEach(() => joined.expectClean());

  it('carry links as links, modes, times, empty files and empty folders', async () => {
    const lines = await linesOfTree(at('from'));
    const up = await client.fs.upload(at('from'), at('up'));
    expect(up).toEqual({ files: 3, directories: 3, links: 2, bytes: MIB + 7, skipped: [] });
    await client.fs.download(at('up'), at('down'));
    expect(await linesOfTree(at('up'))).toEqual(lines);
    expect(await linesOfTree(at('down'))).toEqual(lines);
    const [from, ...others] = await Promise.all(['from', 'up', 'down'].map((name) => stat(at(name))));
    for (const other of others) expect(Math.floor(other.mtimeMs)).toBe(Math.floor(from?.mtimeMs ?? 0));
  });

  it('follow links where they are told to', async () => {
    const options = { followSymlinks: true };
    const up = await client.fs.upload(at('from'), at('up'), options);
    await symlink('..', at('up', 'circle'));
    const down = await client.fs.download(at('up'), at('down'), options);
    expect(up.skipped).toEqual([{ path: at('from', 'dangling'), reason: 'danglingLink' }]);
    expect(down.skipped).toEqual([
      { path: at('up', 'circle', 'from', 'dangling'), reason: 'danglingLink' },
      { path: at('up', 'circle', 'up'), reason: 'linkLoop' },
    ]);
    expect((await stat(at('down', 'circle', 'from', 'sub'))).isDirectory()).toBe(true);
    for (const place of ['up', 'down']) {
      await expect(readlink(at(place, 'link'))).rejects.toMatchObject({ code: 'EINVAL' });
      expect(await text(place, 'link')).toBe('content');
    }
  });

  it.each(['upload', 'download'] as const)('land by the rules of cp: %s', async (way) => {
    const { fs } = client;
    await fs[way](at('from', 'sub', 'file'), at('plain'));
    await fs[way](at('from', 'sub', 'file'), at('made', 'deep/'));
    await mkdir(at('there'));
    await fs[way](at('from', 'sub', 'file'), at('there'));
    expect([await text('plain'), await text('made/deep/file'), await text('there/file')]).toEqual(
      Array.from({ length: 3 }, () => 'content'),
    );
    await writeFile(at('there', 'kept'), 'kept');
    await fs[way](at('from'), at('there'));
    await fs[way](at('from'), at('there'), { includeParent: true });
    expect(await readdir(at('there'))).toEqual(['dangling', 'file', 'from', 'kept', 'large', 'link', 'sub', 'zero']);
    await expect(fs[way](at('from'), at('plain'))).rejects.toMatchObject({ code: 'ENOTDIR' });
    await expect(fs[way](at('from', 'zero'), at('plain/'))).rejects.toMatchObject({ code: 'ENOTDIR' });
    await expect(fs[way](at('missing'), at('x'))).rejects.toMatchObject({
      code: 'ENOENT',
      data: { path: at('missing') },
    });
  });

  it.each(['upload', 'download'] as const)(
    'replace nothing where they may not, and carry nothing then: %s',
    async (way) => {
      const { fs } = client;
      await mkdir(at('to', 'sub'), { recursive: true });
      await writeFile(at('to', 'sub', 'file'), 'old');
      const refused = { code: 'EEXIST', data: { path: at('to', 'sub', 'file'), done: { files: 0 } } };
      await expect(fs[way](at('from'), at('to'), { overwrite: false })).rejects.toMatchObject(refused);
      expect(await readdir(at('to'))).toEqual(['sub']);
      await expect(fs[way](at('from', 'zero'), at('to', 'sub', 'file'), { overwrite: false })).rejects.toMatchObject({
        code: 'EEXIST',
      });
      expect(await text('to', 'sub', 'file')).toBe('old');
      await rm(at('to', 'sub', 'file'));
      await fs[way](at('from'), at('to'), { overwrite: false });
      expect(await text('to', 'sub', 'file')).toBe('content');
    },
  );

  it('leave nothing out in silence: special files are named, names that are no UTF-8 are carried', async () => {
    execFileSync('mkfifo', [at('from', 'fifo')]);
    await writeFile(Buffer.concat([Buffer.from(at('from', 'f')), Buffer.from([0xff])]), 'odd');
    await mkdir(Buffer.concat([Buffer.from(at('from', 'd')), Buffer.from([0xfe])]));
    const up = await client.fs.upload(at('from'), at('up'));
    expect(up).toMatchObject({ files: 4, skipped: [{ path: at('from', 'fifo'), reason: 'fifo' }] });
    execFileSync('mkfifo', [at('up', 'fifo')]);
    const down = await client.fs.download(at('up'), at('down'));
    expect(down).toMatchObject({ files: 4, skipped: [{ path: at('up', 'fifo'), reason: 'fifo' }] });
    const names = await readdir(at('down'), { encoding: 'latin1' });
    expect(names).toContain('f\xff');
    expect(names).toContain('d\xfe');
  });

  it.each(['upload', 'download'] as const)('leave no part of a file when they are aborted: %s', async (way) => {
    await writeFile(at('from', 'large'), Buffer.alloc(16 * MIB));
    await mkdir(at('to'));
    const abort = new AbortController();
    const options = {
      signal: abort.signal,
      onProgress: ({ bytes }: TransferProgress) => {
        if (bytes > 0) abort.abort(new Error('enough'));
      },
    };
    const transfer = client.fs[way](at('from', 'large'), at('to'), options);
    await expect(transfer).rejects.toMatchObject({ code: 'ABORTED', data: { done: { files: 0 } } });
    expect(await readdir(at('to'))).toEqual([]);
    // Neither side has a file open any more; the server is in this process.
    expect(await openFiles()).toEqual([]);
    expect(client.gauges().pendingCalls).toBe(0);
    await client.fs[way](at('from', 'large'), at('to'));
  });

  it('carry all of a file that says it is empty, however long it is', async () => {
    const maps = '/proc/self/maps';
    const long = '/proc/kallsyms';
    for (const source of [maps, long]) {
      const up = await client.fs.upload(source, at('up', `${source.length}/`));
      expect(up.bytes).toBeGreaterThan(1_000);
    }
    expect((await readFile(at('up', String(long.length), 'kallsyms'))).length).toBe((await readFile(long)).length);
  });

  it('replace no device and no FIFO', async () => {
    execFileSync('mkfifo', [at('fifo')]);
    const refused = { code: 'NOT_REGULAR_FILE', data: { local: true } };
    await expect(client.fs.download(at('from', 'zero'), at('fifo'))).rejects.toMatchObject(refused);
    await symlink('fifo', at('to-fifo'));
    await expect(client.fs.download(at('from', 'zero'), at('to-fifo'))).rejects.toMatchObject(refused);
    await mkdir(at('to'));
    execFileSync('mkfifo', [at('to', 'zero')]);
    await expect(client.fs.download(at('from'), at('to'))).rejects.toMatchObject(refused);
    expect((await stat(at('fifo'))).isFIFO() && (await stat(at('to', 'zero'))).isFIFO()).toBe(true);
  });

  it('skip a link that leads in a circle where links are followed', async () => {
    await symlink('circle', at('from', 'circle'));
    const skipped = ['circle', 'dangling'].map((name) => ({ path: at('from', name), reason: 'danglingLink' }));
    for (const way of ['upload', 'download'] as const) {
      const done = await client.fs[way](at('from'), at(way), { followSymlinks: true });
      expect(done.skipped).toEqual(skipped);
    }
  });

  it('tell how they go on, and end with what was done', async () => {
    const told: TransferProgress[] = [];
    const result = await client.fs.upload(at('from'), at('up'), { onProgress: (progress) => told.push(progress) });
    expect(told.at(-1)).toMatchObject({ files: 3, bytes: result.bytes, totalFiles: 3, totalBytes: result.bytes });
    const bytes = told.map((progress) => progress.bytes);
    expect(bytes).toEqual(bytes.toSorted((one, other) => one - other));
    expect(told.map(({ path }) => path)).toContain('sub/file');
  });

  it('keep a link in front of a file that is replaced', async () => {
    await writeFile(at('real'), 'old');
    await symlink('real', at('alias'));
    await client.fs.download(at('from', 'sub', 'file'), at('alias'));
    expect([await readlink(at('alias')), await text('real')]).toEqual(['real', 'content']);
  });

  it('write through no link that is in the place of a folder', async () => {
    await mkdir(at('elsewhere'));
    await mkdir(at('to'));
    await symlink(at('elsewhere'), at('to', 'sub'));
    await expect(client.fs.download(at('from'), at('to'))).rejects.toMatchObject({ code: 'ENOTDIR' });
    await expect(client.fs.upload(at('from'), at('to'))).rejects.toMatchObject({ code: 'EEXIST' });
    expect(await readdir(at('elsewhere'))).toEqual([]);
  });
});

describe('a transfer whose connection does not come back', () => {
  it('fails as one that can be tried again, and says what was done', async () => {
    await plantTree(at('from'), 600, () => 1);
    await writeFile(at('from', 'large'), Buffer.alloc(8 * MIB));
    const link = await joinByProxy({ client: { recoveryMs: 200 } });
    const { client, proxy } = link;
    const upload = client.fs.upload(at('from'), at('up'), {
      onProgress: ({ bytes }) => {
        if (bytes < MIB) return;
        proxy.refuse(true);
        proxy.cut();
      },
    });
    await expect(upload).rejects.toMatchObject({
      code: 'RECOVERY_FAILED',
      data: { retryable: true, done: { skipped: [] } },
    });
    await client.close();
    await link.proxy.close();
    await link.server.close();
    // The stage went with its session.
    expect((await readdir(at('up'))).filter((name) => name.includes('exec-server'))).toEqual([]);
  });
});

describe('a foreign server', () => {
  it('gets and gives files one by one; what it cannot carry is named', async () => {
    await plantSome();
    const link = await joinRewritten(asForeign);
    const { fs } = link.client;
    const up = await fs.upload(at('from'), at('up'));
    expect(up).toMatchObject({ files: 3, directories: 3, links: 0 });
    const left = ['dangling', 'link'].map((name) => ({ path: at('from', name), reason: 'linksNotSupported' }));
    expect(up.skipped).toEqual(left);
    const down = await fs.download(at('from'), at('down'));
    expect(down.skipped).toEqual([{ path: at('from', 'link'), reason: 'linksNotSupported' }]);
    for (const place of ['up', 'down']) {
      expect(await text(place, 'sub', 'file')).toBe('content');
      expect(Buffer.compare(await readFile(at(place, 'large')), await readFile(at('from', 'large')))).toBe(0);
      expect(await readdir(at(place, 'sub'))).toEqual(['empty', 'file']);
    }
    const followed = await fs.download(at('from'), at('followed'), { followSymlinks: true });
    expect(followed).toMatchObject({ files: 4, skipped: [] });
    await link.expectClean();
  });
});

describe('a server that means harm', () => {
  const entry = { isDirectory: false, isFile: true, kind: 'file', size: 3, mode: 0o644, modifiedAtMs: 0 };
  const lists =
    (...entries: object[]): Rewrite =>
    (method, result, { path }) =>
      method === 'fs/readDirectory' && String(path).endsWith('/from') ? { entries } : result;

  it.each([
    ['a name that leads out', lists({ ...entry, fileName: '../out' })],
    ['the folder above', lists({ ...entry, fileName: '..', kind: 'directory', isDirectory: true })],
    ['a path that leads out', lists({ ...entry, fileName: 'x', path: 'file:///from/..' })],
    [
      'a link and a folder of one name',
      lists(
        { ...entry, fileName: 'sub', kind: 'symlink', linkTarget: '/' },
        { ...entry, fileName: 'sub', kind: 'directory', isDirectory: true },
      ),
    ],
  ] as const)('writes nothing by %s', async (_what, rewrite) => {
    await mkdir(at('from', 'sub'), { recursive: true });
    const link = await joinRewritten(rewrite);
    await expect(link.client.fs.download(at('from'), at('to', 'down'))).rejects.toMatchObject({
      code: 'PROTOCOL_VIOLATION',
    });
    await expect(stat(at('to'))).rejects.toMatchObject({ code: 'ENOENT' });
    await link.expectClean();
  });

  it('writes nothing by an archive of something else than what was asked for', async () => {
    await mkdir(at('from'));
    await writeFile(at('from', 'asked'), 'good');
    await mkdir(at('other'));
    await writeFile(at('other', 'evil'), 'bad');
    const archive = execFileSync('tar', ['-C', at('other'), '-cf', '-', '--transform', 's,^,../,', '-P', 'evil']);
    const link = await joinRewritten((method, result) =>
      method === 'fs/readBlock' ? { chunk: archive.toString('base64'), eof: true } : result,
    );
    await expect(link.client.fs.download(at('from'), at('to', 'down'))).rejects.toMatchObject({ code: 'BAD_ARCHIVE' });
    expect(await readdir(at('to'), { recursive: true })).toEqual(['down']);
    await link.expectClean();
  });
});
