/** `fs/pack` and `fs/unpack`, as raw messages see them, against the `tar` of the host. */
import { Buffer } from 'node:buffer';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openBelow } from '../support/hostGauges.js';
import type { Raw, RawMessage } from '../support/raw.js';
import { RawServed, rawLinks } from '../support/rawServed.js';
import { until } from '../support/until.js';
import { END_MARK, ustar, type UstarEntry } from '../support/ustar.js';

const MIB = 1024 * 1024;

let folder: string;
let served: RawServed;
let raw: Raw;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'archives-'));
  served = new RawServed('memory');
  raw = await served.ready();
});

afterEach(async () => {
  await served.expectClean();
  const open = openBelow(folder);
  rmSync(folder, { recursive: true, force: true });
  expect(open).toEqual([]);
});

const at = (name: string): string => join(folder, name);

function tar(...args: string[]): string {
  return execFileSync('tar', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

async function pack(params: object, len = 64 * 1024): Promise<Buffer> {
  await raw.result('fs/pack', { handleId: 'p', ...params });
  const blocks: Buffer[] = [];
  for (let offset = 0; ; ) {
    const { chunk, eof } = await raw.result('fs/readBlock', { handleId: 'p', offset, len });
    const block = Buffer.from(String(chunk), 'base64');
    blocks.push(block);
    offset += block.length;
    if (eof === true) break;
    expect(block).toHaveLength(len);
  }
  await raw.result('fs/close', { handleId: 'p' });
  return Buffer.concat(blocks);
}

/** The names in an archive, as the `tar` of the host lists them. */
async function packedNames(params: object): Promise<string[]> {
  writeFileSync(at('listed.tar'), await pack(params));
  return tar('-tf', 'listed.tar', '--quoting-style=literal').trim().split('\n');
}

/** The answer to the first call that is refused, or to the close. */
async function unpack(archive: Buffer, params: object = {}, len = 64 * 1024): Promise<RawMessage> {
  const opened = await raw.call('fs/unpack', { handleId: 'u', path: at('out'), ...params });
  if (opened.error !== undefined) return opened;
  for (let offset = 0; offset < archive.length; offset += len) {
    const chunk = archive.subarray(offset, offset + len).toString('base64');
    const written = await raw.call('fs/writeBlock', { handleId: 'u', offset, chunk });
    if (written.error === undefined) continue;
    await raw.result('fs/close', { handleId: 'u' });
    return written;
  }
  return raw.call('fs/close', { handleId: 'u', commit: true });
}

const LONG = `${'long-folder-name-'.repeat(9)}/${'inner-'.repeat(30)}/${'file-é-'.repeat(20)}`;

function makeTree(root: string): void {
  mkdirSync(join(root, 'dir/empty'), { recursive: true });
  mkdirSync(join(root, LONG, '..'), { recursive: true });
  writeFileSync(join(root, LONG), 'long');
  writeFileSync(join(root, 'dir/run'), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(join(root, 'dir/nothing'), '');
  writeFileSync(join(root, 'dir/big'), Buffer.alloc(700_001, 'abc'));
  writeFileSync(join(root, 'ü\nline'), 'x');
  symlinkSync('dir/run', join(root, 'link'));
  symlinkSync('/nowhere', join(root, 'dangling'));
  chmodSync(join(root, 'dir/empty'), 0o500);
  chmodSync(join(root, 'dir/nothing'), 0o640);
  utimesSync(join(root, 'dir/run'), 1_600_000_000, 1_600_000_000);
  utimesSync(join(root, 'dir'), 1_600_000_001, 1_600_000_001);
}

/** Everything below a folder: kind, mode, time in seconds, and content. */
function shapeOf(root: string, below = ''): Record<string, unknown> {
  const shape: Record<string, unknown> = {};
  for (const name of readdirSync(join(root, below))) {
    const path = join(below, name);
    const stats = lstatSync(join(root, path));
    if (stats.isSymbolicLink()) {
      shape[path] = readlinkSync(join(root, path));
      continue;
    }
    const rest = [stats.mode.toString(8), Math.floor(stats.mtimeMs / 1000)];
    shape[path] = stats.isDirectory() ? rest : [...rest, readFileSync(join(root, path)).toString('hex').slice(0, 2000)];
    if (stats.isDirectory()) Object.assign(shape, shapeOf(root, path));
  }
  return shape;
}

describe('fs/pack', () => {
  it('makes an archive that the tar of the host unpacks to the same tree', async () => {
    mkdirSync(at('in'));
    makeTree(at('in'));
    writeFileSync(at('a.tar'), await pack({ path: pathToFileURL(at('in')).href }, 10_000));
    mkdirSync(at('theirs'));
    tar('-xpf', 'a.tar', '-C', 'theirs');
    expect(shapeOf(at('theirs'))).toEqual(shapeOf(at('in')));
    expect(Object.keys(shapeOf(at('in')))).toHaveLength(11);
  });

  it('has folders before what is in them, and names in the order of their bytes', async () => {
    mkdirSync(at('in/b'), { recursive: true });
    mkdirSync(at('in/B'));
    for (const name of ['b/2', 'b/10', 'a', 'b.c', 'é', 'z']) writeFileSync(at(`in/${name}`), '');
    expect(await packedNames({ path: at('in') })).toEqual(['B/', 'a', 'b/', 'b/10', 'b/2', 'b.c', 'z', 'é']);
  });

  it('packs a file under its name, names without what is below them, and a folder under its name where asked', async () => {
    mkdirSync(at('in/dir'), { recursive: true });
    writeFileSync(at('in/dir/file'), '');
    writeFileSync(at('in/other'), '');
    expect(await packedNames({ path: at('in/other') })).toEqual(['other']);
    expect(await packedNames({ path: at('in'), names: ['dir/file', './dir/', 'dir'] })).toEqual(['dir/', 'dir/file']);
    expect(await packedNames({ path: at('in'), includeParent: true })).toEqual([
      'in/',
      'in/dir/',
      'in/dir/file',
      'in/other',
    ]);
  });

  it('follows links where asked, and never into a folder they lie in', async () => {
    mkdirSync(at('in/a'), { recursive: true });
    mkdirSync(at('elsewhere'));
    writeFileSync(at('elsewhere/file'), 'x');
    symlinkSync('..', at('in/a/up'));
    symlinkSync('../elsewhere', at('in/b'));
    symlinkSync('circle', at('in/circle'));
    symlinkSync('nowhere', at('in/dangling'));
    writeFileSync(at('a.tar'), await pack({ path: at('in'), followSymlinks: true }));
    const listed = tar('-tvf', 'a.tar').trim().split('\n');
    expect(listed.map((line) => line.replace(/^(.).* \d\d:\d\d /, '$1 '))).toEqual([
      'd a/',
      'l a/up -> ..',
      'd b/',
      '- b/file',
      'l circle -> circle',
      'l dangling -> nowhere',
    ]);
  });

  it('leaves FIFOs out, and refuses what it is asked for by name and cannot pack', async () => {
    mkdirSync(at('in'));
    execFileSync('mkfifo', [at('in/fifo')]);
    writeFileSync(at('in/file'), '');
    expect(await packedNames({ path: at('in') })).toEqual(['file']);
    for (const [names, reason] of [
      [['fifo'], 'invalidArgument'],
      [['missing'], 'fileNotFound'],
    ] as const) {
      await raw.result('fs/pack', { handleId: 'p', path: at('in'), names });
      const { error } = await raw.call('fs/readBlock', { handleId: 'p', offset: 0, len: 100 });
      expect(error?.data).toMatchObject({ reason, path: at(`in/${names[0]}`) });
      await raw.result('fs/close', { handleId: 'p' });
    }
  });

  it('refuses a name that is not UTF-8 rather than leave it out', async () => {
    mkdirSync(at('in'));
    writeFileSync(Buffer.concat([Buffer.from(at('in/a')), Buffer.from([0xff])]), '');
    await raw.result('fs/pack', { handleId: 'p', path: at('in') });
    const { error } = await raw.call('fs/readBlock', { handleId: 'p', offset: 0, len: 100 });
    expect(error?.data).toMatchObject({ reason: 'invalidArgument', path: `${pathToFileURL(at('in/a')).href}%FF` });
  });

  it.each([
    [{ names: ['../x'] }, 'invalidArgument'],
    [{ names: ['/etc'] }, 'invalidArgument'],
    [{ names: ['a/../../x'] }, 'invalidArgument'],
    [{ names: [''] }, 'invalidArgument'],
    [{ path: '/nowhere/at/all' }, 'fileNotFound'],
    [{ path: '/dev/null', names: ['a'] }, 'notDirectory'],
  ])('refuses %j', async (params, reason) => {
    const { error } = await raw.call('fs/pack', { handleId: 'p', path: folder, ...params });
    expect(error?.data).toMatchObject({ reason });
  });

  it('gives the last block again, no earlier one and no later one, and its end with the last bytes alone', async () => {
    mkdirSync(at('in'));
    writeFileSync(at('in/file'), 'x'.repeat(100));
    const whole = await pack({ path: at('in') });
    await raw.result('fs/pack', { handleId: 'p', path: at('in') });
    const read = (offset: number, len: number): Promise<RawMessage> =>
      raw.call('fs/readBlock', { handleId: 'p', offset, len });
    const first = await read(0, 600);
    expect(first.result).toMatchObject({ chunk: whole.subarray(0, 600).toString('base64'), eof: false });
    expect((await read(0, 600)).result).toEqual(first.result);
    expect((await read(100, 600)).error?.data).toMatchObject({ reason: 'invalidArgument', field: 'offset' });
    expect((await read(601, 10)).error?.data).toMatchObject({ reason: 'invalidArgument' });
    const rest = whole.length - 600;
    expect((await read(600, rest - 1)).result).toMatchObject({ eof: false });
    expect((await read(whole.length - 1, 1)).result).toMatchObject({ eof: true });
    expect((await read(whole.length - 1, 1)).result).toMatchObject({ chunk: 'AA==', eof: true });
    expect((await read(whole.length, 1)).result).toMatchObject({ chunk: '', eof: true });
  });

  it('fails, and goes on failing, when a file becomes shorter; one that grows is packed as it was', async () => {
    mkdirSync(at('in'));
    writeFileSync(at('in/grows'), Buffer.alloc(3 * MIB));
    writeFileSync(at('in/shrinks'), Buffer.alloc(3 * MIB));
    await raw.result('fs/pack', { handleId: 'p', path: at('in') });
    const read = (offset: number): Promise<RawMessage> => raw.call('fs/readBlock', { handleId: 'p', offset, len: MIB });
    await read(0);
    appendFileSync(at('in/grows'), 'more');
    for (let block = 1; block < 4; block += 1) expect((await read(block * MIB)).error).toBeUndefined();
    truncateSync(at('in/shrinks'), MIB);
    let failed: RawMessage;
    let offset = 4 * MIB;
    do {
      failed = await read(offset);
      offset += MIB;
    } while (failed.error === undefined);
    expect(failed.error.data).toMatchObject({ reason: 'fileChanged', path: at('in/shrinks') });
    for (const again of [offset - 2 * MIB, offset - MIB, offset]) {
      expect((await read(again)).error?.data).toMatchObject({ reason: 'fileChanged' });
    }
  });

  it('holds a little of a file of 8 GiB and a byte', async () => {
    writeFileSync(at('huge'), '');
    truncateSync(at('huge'), 8 * 1024 * MIB + 1);
    await raw.result('fs/pack', { handleId: 'p', path: at('huge') });
    for (let offset = 0; offset < 200 * MIB; offset += MIB) {
      const { chunk, eof } = await raw.result('fs/readBlock', { handleId: 'p', offset, len: MIB });
      expect(eof).toBe(false);
      if (offset === 0) expect(Buffer.from(String(chunk), 'base64').toString('latin1')).toContain('size=8589934593\n');
      expect(process.memoryUsage().arrayBuffers).toBeLessThan(100 * MIB);
    }
    expect(openBelow(folder)).toEqual([at('huge')]);
    await raw.result('fs/close', { handleId: 'p' });
    expect(openBelow(folder)).toEqual([]);
  });

  it.each(rawLinks)('lets go of everything when the connection ends (%s)', async (link) => {
    writeFileSync(at('file'), Buffer.alloc(4 * MIB));
    const other = new RawServed(link);
    const peer = await other.ready();
    await peer.result('fs/pack', { handleId: 'p', path: at('file') });
    await peer.result('fs/readBlock', { handleId: 'p', offset: 0, len: 10 });
    expect(openBelow(folder)).toEqual([at('file')]);
    peer.transport.abort();
    await until(() => openBelow(folder).length === 0, 'the file is closed');
    await other.expectClean();
  });
});

describe('fs/unpack', () => {
  it.each(['gnu', 'pax', 'ustar', 'v7', 'oldgnu'])('takes what the tar of the host makes (%s)', async (format) => {
    mkdirSync(at('in'));
    makeTree(at('in'));
    if (!['gnu', 'pax', 'oldgnu'].includes(format))
      rmSync(at(`in/${LONG.slice(0, LONG.indexOf('/'))}`), { recursive: true });
    tar(`--format=${format}`, '-cf', 'a.tar', '-C', 'in', '.');
    const { result } = await unpack(readFileSync(at('a.tar')));
    expect(shapeOf(at('out'))).toEqual(shapeOf(at('in')));
    expect(result).toEqual({ entries: Object.keys(shapeOf(at('in'))).length, bytes: expect.any(Number) as number });
  });

  it('takes what fs/pack gives, in blocks of any size, and keeps hard links where the archive has them', async () => {
    mkdirSync(at('in'));
    makeTree(at('in'));
    await unpack(await pack({ path: at('in') }), {}, 1000);
    expect(shapeOf(at('out'))).toEqual(shapeOf(at('in')));
    const linked = ustar([
      { name: 'one', body: 'x' },
      { name: 'two', type: '1', link: './one' },
    ]);
    for (let round = 0; round < 2; round += 1) {
      expect((await unpack(linked)).result).toEqual({ entries: 2, bytes: 1 });
      expect(statSync(at('out/one')).ino).toBe(statSync(at('out/two')).ino);
    }
    expect(readdirSync(at('out')).filter((name) => name.includes('.tmp'))).toEqual([]);
  });

  const outside: readonly [string, readonly UstarEntry[]][] = [
    ['above the folder', [{ name: '../x', body: 'x' }]],
    ['above the folder, on a detour', [{ name: 'a/../../x', body: 'x' }]],
    ['at an absolute path', [{ name: '/tmp/archives-x', body: 'x' }]],
    [
      'behind a link',
      [
        { name: 'l', type: '2', link: '..' },
        { name: 'l/x', body: 'x' },
      ],
    ],
    [
      'in a folder behind a link',
      [
        { name: 'l', type: '2', link: '..' },
        { name: 'l/x/y', type: '5' },
      ],
    ],
    ['as a hard link to a file above', [{ name: 'x', type: '1', link: '../secret' }]],
    [
      'as a hard link through a link',
      [
        { name: 'l', type: '2', link: '..' },
        { name: 'x', type: '1', link: 'l/secret' },
      ],
    ],
    [
      'as a hard link to a link',
      [
        { name: 'l', type: '2', link: '../secret' },
        { name: 'x', type: '1', link: 'l' },
      ],
    ],
    ['as a FIFO', [{ name: 'x', type: '6' }]],
    ['under a name that is not UTF-8', [{ name: Buffer.from([0x61, 0xff]), body: 'x' }]],
  ];
  it.each(outside)('refuses an entry %s, and keeps what came before', async (_where, entries) => {
    writeFileSync(at('secret'), 'secret');
    const before = readdirSync(folder);
    const { error } = await unpack(ustar([{ name: 'first', body: '1' }, ...entries, { name: 'last', body: '2' }]));
    expect(error?.data).toMatchObject({ reason: 'badArchive', path: expect.any(String) as string });
    expect(readFileSync(at('out/first'), 'utf8')).toBe('1');
    expect(existsSync(at('out/last'))).toBe(false);
    expect(existsSync('/tmp/archives-x')).toBe(false);
    expect(readdirSync(folder).filter((name) => name !== 'out')).toEqual(before);
    expect(readFileSync(at('secret'), 'utf8')).toBe('secret');
    expect(statSync(at('secret')).nlink).toBe(1);
  });

  it.each(['gnu', 'pax'])('refuses a file with holes, which has a map of them in its content (%s)', async (format) => {
    mkdirSync(at('in'));
    writeFileSync(at('in/before'), '');
    writeFileSync(at('in/sparse'), '');
    truncateSync(at('in/sparse'), MIB);
    tar(`--format=${format}`, '-Scf', 'a.tar', '-C', 'in', 'before', 'sparse');
    const { error } = await unpack(readFileSync(at('a.tar')));
    expect(error?.data).toMatchObject({ reason: 'badArchive', path: expect.stringContaining('sparse') as string });
    expect(readdirSync(at('out'))).toEqual(['before']);
  });

  it('replaces files and links themselves, and refuses that with overwrite: false, where folders are merged', async () => {
    mkdirSync(at('out/dir'), { recursive: true });
    chmodSync(at('out/dir'), 0o711);
    writeFileSync(at('target'), 'target');
    symlinkSync('../target', at('out/file'));
    const archive = ustar([
      { name: 'dir/', type: '5', mode: 0o750 },
      { name: 'file', body: 'new' },
    ]);
    expect((await unpack(archive, { overwrite: false })).error?.data).toMatchObject({
      reason: 'fileExists',
      path: at('out/file'),
    });
    expect(statSync(at('out/dir')).mode & 0o777).toBe(0o711);
    expect((await unpack(archive)).result).toEqual({ entries: 2, bytes: 3 });
    expect(lstatSync(at('out/file')).isFile()).toBe(true);
    expect(readFileSync(at('target'), 'utf8')).toBe('target');
    expect(statSync(at('out/dir')).mode & 0o777).toBe(0o750);
    expect((await unpack(ustar([{ name: 'dir', body: '' }]))).error?.data).toMatchObject({ reason: 'isDirectory' });
  });

  it('drops the bits that let others act as the owner, and applies no umask', async () => {
    await unpack(
      ustar([
        { name: 'file', mode: 0o6777 },
        { name: 'dir', type: '5', mode: 0o1777 },
      ]),
    );
    expect(statSync(at('out/file')).mode & 0o7777).toBe(0o777);
    expect(statSync(at('out/dir')).mode & 0o7777).toBe(0o1777);
  });

  const whole = ustar([
    { name: 'a', body: 'x'.repeat(2000) },
    { name: 'b', body: 'y' },
  ]);
  it.each([0, 100, 512, 1000, 2560, 3000, whole.length - 1024, whole.length - 512, whole.length - 1])(
    'says that an archive of which only %i bytes came is not whole, and leaves no half file',
    async (length) => {
      const { error } = await unpack(whole.subarray(0, length));
      expect(error?.data).toMatchObject({ reason: 'archiveIncomplete' });
      expect(readdirSync(at('out')).filter((name) => name !== 'a' && name !== 'b')).toEqual([]);
      if (existsSync(at('out/a'))) expect(statSync(at('out/a')).size).toBe(2000);
    },
  );

  it('says that an archive is damaged', async () => {
    const damaged = Buffer.from(whole);
    damaged[3] = 0x41;
    expect((await unpack(damaged)).error?.data).toMatchObject({ reason: 'badArchive' });
    expect((await unpack(Buffer.concat([whole, Buffer.from('more')]))).error?.data).toMatchObject({
      reason: 'badArchive',
    });
    expect((await unpack(Buffer.concat([whole, END_MARK]))).error).toBeUndefined();
  });

  it('takes blocks in order, and the last one again without writing it twice', async () => {
    await raw.result('fs/unpack', { handleId: 'u', path: at('out') });
    const write = (offset: number, bytes: Buffer): Promise<RawMessage> =>
      raw.call('fs/writeBlock', { handleId: 'u', offset, chunk: bytes.toString('base64') });
    await write(0, whole.subarray(0, 700));
    expect((await write(0, whole.subarray(0, 700))).error).toBeUndefined();
    expect((await write(100, whole.subarray(100, 700))).error?.data).toMatchObject({ reason: 'invalidArgument' });
    expect((await write(800, whole.subarray(800))).error?.data).toMatchObject({ reason: 'invalidArgument' });
    await write(700, whole.subarray(700));
    expect(await raw.result('fs/close', { handleId: 'u', commit: true })).toEqual({ entries: 2, bytes: 2001 });
    expect(readFileSync(at('out/a'), 'utf8')).toBe('x'.repeat(2000));
  });

  it.each(['close', 'cut'] as const)('removes the file it was writing when it ends early (%s)', async (how) => {
    const peer = await served.ready();
    await peer.result('fs/unpack', { handleId: 'u', path: at('out') });
    const chunk = whole.subarray(0, 1500).toString('base64');
    await peer.result('fs/writeBlock', { handleId: 'u', offset: 0, chunk });
    await until(() => openBelow(folder).length === 1, 'the file is open');
    if (how === 'close') await peer.result('fs/close', { handleId: 'u' });
    else peer.transport.abort();
    await until(() => openBelow(folder).length === 0, 'the file is closed');
    await until(() => readdirSync(at('out')).length === 0, 'the file is removed');
  });

  it('holds a little of what it unpacks', async () => {
    const header = ustar([{ name: 'big', body: '' }]).subarray(0, 512);
    // 200 MiB, and the checksum that goes with it.
    header.write((200 * MIB).toString(8).padStart(11, '0'), 124, 'latin1');
    header.write(' '.repeat(8), 148, 'latin1');
    header.write(
      `${header
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(6, '0')}\0 `,
      148,
      'latin1',
    );
    await raw.result('fs/unpack', { handleId: 'u', path: at('out') });
    await raw.result('fs/writeBlock', { handleId: 'u', offset: 0, chunk: header.toString('base64') });
    const chunk = Buffer.alloc(MIB, 1).toString('base64');
    for (let block = 0; block < 200; block += 1) {
      await raw.result('fs/writeBlock', { handleId: 'u', offset: 512 + block * MIB, chunk });
      expect(process.memoryUsage().arrayBuffers).toBeLessThan(100 * MIB);
    }
    await raw.result('fs/writeBlock', { handleId: 'u', offset: 512 + 200 * MIB, chunk: END_MARK.toString('base64') });
    expect(await raw.result('fs/close', { handleId: 'u', commit: true })).toEqual({ entries: 1, bytes: 200 * MIB });
    expect(statSync(at('out/big')).size).toBe(200 * MIB);
  });

  it('refuses a folder that is a file', async () => {
    writeFileSync(at('out'), '');
    expect((await unpack(whole)).error).toBeDefined();
  });
});
