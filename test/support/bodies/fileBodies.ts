/** What a client does with files, on whatever server it is joined to. */
import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isFileError, type WalkedEntry, type WalkOptions } from '@exec-server/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Joined } from '../links.js';
import type { Subject } from './subject.js';

const MIB = 1024 * 1024;

/** Bytes that repeat after 65,537, which is no multiple of any block. */
const pattern = Buffer.from(Array.from({ length: 65_537 }, (_, at) => (at * 7919) >> 5));
const noise = (length: number): Buffer => Buffer.alloc(length, pattern);

async function gather(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

const code = async (call: Promise<unknown>): Promise<string> => {
  const error: unknown = await call.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!isFileError(error)) throw new Error('no refusal about a file', { cause: error });
  return error.code;
};

export function fileBodies({ extended, join }: Subject): void {
  let joined: Joined;
  let folder: string;
  const at = (name: string): string => joinPath(folder, name);
  beforeEach(async () => {
    folder = await mkdtemp(joinPath(tmpdir(), 'files-'));
    joined = await join();
  });
  afterEach(async () => {
    await joined.expectClean();
    await rm(folder, { recursive: true, force: true });
  });

  it('are read whole, in ranges and as streams, to the byte', async () => {
    const { fs } = joined.client;
    const content = noise(5 * MIB + 17);
    await writeFile(at('large'), content);
    expect(content.equals(await fs.readFile(at('large')))).toBe(true);
    expect(content.equals(await gather(fs.readStream(pathToFileURL(at('large')))))).toBe(true);
    const range = { offset: 4 * MIB - 5, length: MIB + 3 };
    const part = content.subarray(range.offset, range.offset + range.length);
    expect(part.equals(await fs.readFile(at('large'), range))).toBe(true);
    expect(part.equals(await gather(fs.readStream(at('large'), range)))).toBe(true);
    await writeFile(at('empty'), '');
    expect((await fs.readFile(at('empty'))).length).toBe(0);
    expect((await gather(fs.readStream(at('empty')))).length).toBe(0);
  });

  it('are read to their end whatever size the host reports, and refused by their kind or size at once', async () => {
    const { fs } = joined.client;
    expect(await fs.readText('/proc/self/status')).toMatch(/^Name:/);
    expect(await fs.readText('/proc/sys/kernel/ostype')).toBe('Linux\n');
    expect(await code(fs.readFile('/dev/zero'))).toBe('NOT_REGULAR_FILE');
    if (extended) expect((await fs.readFile('/dev/zero', { anyKind: true, length: 100 })).length).toBe(100);
    await writeFile(at('sparse'), '');
    await truncate(at('sparse'), 8 * 1024 * MIB + 1);
    expect(await code(fs.readFile(at('sparse')))).toBe('FILE_TOO_LARGE');
    expect((await fs.readFile(at('sparse'), { offset: 8 * 1024 * MIB })).length).toBe(1);
    expect(await fs.stat(at('sparse'))).toMatchObject({ kind: 'file', size: 8 * 1024 * MIB + 1 });
  });

  it('are written at once or in blocks, to the byte', async () => {
    const { fs } = joined.client;
    expect(await fs.writeFile(at('small'), 'grüße')).toEqual({});
    expect(await readFile(at('small'), 'utf8')).toBe('grüße');
    for (const content of [noise(3 * MIB + 5), noise(13 * MIB), Buffer.alloc(0)]) {
      await fs.writeFile(at('whole'), content);
      expect(content.equals(await readFile(at('whole')))).toBe(true);
    }
    const writer = fs.writeStream(at('streamed')).getWriter();
    for (const piece of ['a', noise(MIB), 'c']) await writer.write(piece);
    await writer.close();
    expect(Buffer.concat([Buffer.from('a'), noise(MIB), Buffer.from('c')]).equals(await readFile(at('streamed')))).toBe(
      true,
    );
  });

  it.runIf(extended)('are written at once or in blocks, whole or not at all', async () => {
    const { fs } = joined.client;
    expect(await fs.writeFile(at('small'), 'grüße')).toEqual({});
    expect(await readFile(at('small'), 'utf8')).toBe('grüße');
    const content = noise(3 * MIB + 5);
    await fs.writeFile(at('large'), content, { mode: 0o640, fsync: true });
    expect(content.equals(await readFile(at('large')))).toBe(true);
    expect((await stat(at('large'))).mode & 0o777).toBe(0o640);
    const writer = fs.writeStream(at('large')).getWriter();
    await writer.write(noise(2 * MIB));
    expect(content.equals(await readFile(at('large')))).toBe(true);
    await writer.abort();
    expect((await readdir(folder)).toSorted()).toEqual(['large', 'small']);
    const second = fs.writeStream(at('large')).getWriter();
    for (const piece of ['a', 'b', 'c']) await second.write(piece);
    await second.close();
    expect(await readFile(at('large'), 'utf8')).toBe('abc');
    expect((await stat(at('large'))).mode & 0o777).toBe(0o640);
  });

  it.runIf(extended)(
    'are appended to, kept where they must be new, and written in place where they have other names',
    async () => {
      const { fs } = joined.client;
      await fs.writeFile(at('log'), 'one\n');
      await fs.writeFile(at('log'), 'two\n', { append: true });
      expect(await readFile(at('log'), 'utf8')).toBe('one\ntwo\n');
      for (const content of ['x', noise(2 * MIB)]) {
        expect(await code(fs.writeFile(at('log'), content, { overwrite: false }))).toBe('EEXIST');
      }
      await link(at('log'), at('other'));
      expect(await fs.writeFile(at('log'), 'new')).toEqual({ inPlace: 'hardLinks' });
      expect(await readFile(at('other'), 'utf8')).toBe('new');
      const large = noise(2 * MIB);
      expect(await fs.writeFile(at('log'), large, { inPlace: true })).toEqual({ inPlace: 'asked' });
      expect(large.equals(await readFile(at('other')))).toBe(true);
      expect((await readdir(folder)).toSorted()).toEqual(['log', 'other']);
    },
  );

  it.runIf(extended)('are copied, moved, removed and described', async () => {
    const { fs } = joined.client;
    await fs.mkdir(at('d/e'), { mode: 0o755 });
    await fs.writeFile(at('d/e/f'), 'f');
    await symlink('f', at('d/e/l'));
    expect(await fs.copy(at('d'), at('c'))).toEqual({ skipped: 0 });
    expect((await lstat(at('c/e/l'))).isSymbolicLink()).toBe(true);
    expect(await fs.move(at('c'), at('m'))).toEqual({ copied: false });
    expect(await fs.exists(at('c'))).toBe(false);
    expect(await code(fs.move(at('d/e/f'), at('m/e/f'), { overwrite: false }))).toBe('EEXIST');
    expect(await fs.stat(at('m/e/l'))).toMatchObject({ kind: 'file', isSymlink: true, size: 1 });
    expect(await fs.stat(at('m/e/l'), { followSymlinks: false })).toMatchObject({ kind: 'symlink', linkTarget: 'f' });
    expect(await fs.realpath(at('m/e/../e/l'))).toBe(at('m/e/f'));
    expect(await code(fs.remove(at('m')))).toMatch(/^(ENOTEMPTY|EISDIR)$/);
    await fs.remove(at('m'), { recursive: true });
    expect(await code(fs.remove(at('m')))).toBe('ENOENT');
    await fs.remove(at('m'), { force: true });
    expect(await code(fs.readFile(at('d/e')))).toBe('NOT_REGULAR_FILE');
    expect(await code(fs.list(at('d/e/f')))).toBe('ENOTDIR');
    expect(await code(fs.mkdir(at('d/e'), { recursive: false }))).toBe('EEXIST');
  });

  it('are copied, removed, described, listed and walked by what every server knows', async () => {
    const { fs } = joined.client;
    await fs.mkdir(at('d/e'));
    await fs.writeFile(at('d/e/f'), 'f');
    await symlink('e/f', at('d/l'));
    expect(await fs.copy(at('d'), at('c'))).toEqual({ skipped: 0 });
    expect((await lstat(at('c/l'))).isSymbolicLink()).toBe(true);
    expect(await fs.readText(at('c/l'))).toBe('f');
    expect(await fs.stat(at('c/l'))).toMatchObject({ kind: 'file', isSymlink: true, size: 1 });
    expect(await fs.stat(at('c'))).toMatchObject({ kind: 'directory', isSymlink: false });
    expect(await fs.realpath(at('c/e/../l'))).toBe(at('c/e/f'));
    expect((await fs.list(at('c'))).map(({ name }) => name).toSorted()).toEqual(['e', 'l']);
    const walked: WalkedEntry[] = [];
    for await (const entry of fs.walk(at('c'))) walked.push(entry);
    expect(walked.filter(({ name }) => name !== 'l').map(({ depth, name, kind }) => [depth, name, kind])).toEqual([
      [0, 'e', 'directory'],
      [1, 'f', 'file'],
    ]);
    expect(await code(fs.remove(at('c')))).toMatch(/^(ENOTEMPTY|EISDIR)$/);
    await fs.remove(at('c'), { recursive: true });
    expect(await fs.exists(at('c'))).toBe(false);
    expect(await code(fs.remove(at('c')))).toBe('ENOENT');
    await fs.remove(at('c'), { force: true });
    expect(await code(fs.readFile(at('d/e')))).toBe('NOT_REGULAR_FILE');
    expect(await code(fs.readFile(at('none')))).toBe('ENOENT');
    expect(await code(fs.list(at('d/e/f')))).toBe('ENOTDIR');
    expect(await code(fs.mkdir(at('d/e'), { recursive: false }))).toBe('EEXIST');
    expect(await code(fs.writeFile(at('d/e'), 'x'))).toBe('EISDIR');
  });

  it.runIf(extended)('are listed and walked with every kind of name, and never in circles', async () => {
    const { client } = joined;
    await mkdir(at('w/x/y'), { recursive: true });
    await symlink('../..', at('w/x/y/up'));
    await symlink('missing', at('w/dangling'));
    const odd = Buffer.concat([Buffer.from(at('w/')), Buffer.from([0xff, 0x62])]);
    await writeFile(odd, 'odd');
    await writeFile(at('w/new\nline'), '');
    const entries = await client.fs.list(at('w'));
    expect(entries.map(({ name, kind }) => [name, kind])).toEqual([
      ['dangling', 'symlink'],
      ['new\nline', 'file'],
      ['x', 'directory'],
      ['\ufffdb', 'file'],
    ]);
    expect(entries[0]).toMatchObject({ linkTarget: 'missing', path: at('w/dangling') });
    expect(await client.fs.readText(entries[3]?.path ?? '')).toBe('odd');
    const walked = async (options: WalkOptions): Promise<string[]> => {
      const found: WalkedEntry[] = [];
      for await (const entry of client.fs.walk(at('w'), options)) found.push(entry);
      return found.map(({ depth, name }) => `${depth} ${name}`);
    };
    const all = ['0 dangling', '0 new\nline', '0 x', '0 \ufffdb', '1 y', '2 up'];
    expect(await walked({})).toEqual(all);
    expect(await walked({ followSymlinks: true })).toEqual(all);
    expect(await walked({ maxDepth: 0 })).toEqual(all.slice(0, 4));
  });

  it.runIf(extended)('are watched from the answer on', async () => {
    const { fs } = joined.client;
    await mkdir(at('sub'));
    const watch = await fs.watch(folder);
    await writeFile(at('sub/new'), 'x');
    const seen: string[] = [];
    for await (const { changes } of watch) {
      for (const { kind, path } of changes) seen.push(`${kind} ${path}`);
      if (seen.includes(`created ${at('sub/new')}`)) break;
    }
    expect(seen).toContain(`created ${at('sub/new')}`);
  });

  it.runIf(extended)('are packed and unpacked as trees with modes and links', async () => {
    const { fs } = joined.client;
    await mkdir(at('from/sub'), { recursive: true });
    const content = noise(3 * MIB);
    await writeFile(at('from/sub/run'), content);
    await chmod(at('from/sub/run'), 0o755);
    await symlink('sub/run', at('from/link'));
    const unpacking = fs.unpack(at('to'));
    await fs.pack(at('from')).pipeTo(unpacking);
    expect((await unpacking.result).bytes).toBe(content.length);
    expect(content.equals(await readFile(at('to/sub/run')))).toBe(true);
    expect((await stat(at('to/sub/run'))).mode & 0o777).toBe(0o755);
    expect((await lstat(at('to/link'))).isSymbolicLink()).toBe(true);
    const broken = fs.unpack(at('broken'));
    const writer = broken.getWriter();
    writer.closed.catch(() => undefined);
    await writer.write(noise(2048));
    await expect(writer.close()).rejects.toMatchObject({ code: 'BAD_ARCHIVE' });
  });

  it('leave no handle behind when a reader leaves in the middle', async () => {
    const { fs } = joined.client;
    await writeFile(at('large'), noise(MIB));
    for (let round = 0; round < 130; round++) {
      const reader = fs.readStream(at('large')).getReader();
      await reader.read();
      await reader.cancel();
    }
    const abort = new AbortController();
    const stream = fs.readStream(at('large'), { signal: abort.signal }).getReader();
    await stream.read();
    abort.abort();
    await expect(stream.read()).rejects.toMatchObject({ code: 'ABORTED' });
    expect((await fs.readFile(at('large'))).length).toBe(MIB);
  });
}
