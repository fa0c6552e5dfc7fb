import { execFileSync } from 'node:child_process';
import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bytesOf } from '../transfer/bytePath.js';
import type { TreeItem } from '../transfer/tree.js';
import { disk } from './disk.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exec-server-disk-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const at = (name: string): string => bytesOf(join(folder, name));
const options = { followSymlinks: false, check: (): void => {} };
const shape = ({ name, kind, size, target }: TreeItem): string =>
  [kind, name, size, ...(target === undefined ? [] : [target])].join(' ');

describe('the tree of a folder', () => {
  it('has folders before their content, by the bytes of the names, empty ones and links as well', async () => {
    await mkdir(join(folder, 'b', 'empty'), { recursive: true });
    await writeFile(join(folder, 'b', 'file'), 'abc', { mode: 0o640 });
    await writeFile(join(folder, 'B'), '');
    await symlink('nowhere', join(folder, 'link'));
    await utimes(join(folder, 'b', 'file'), 1_000, 1_234.567);
    const { items, skipped } = await disk.treeOf(at(''), options);
    expect(items.map(shape)).toEqual([
      'directory  0',
      'file B 0',
      'directory b 0',
      'directory b/empty 0',
      'file b/file 3',
      'symlink link 0 nowhere',
    ]);
    expect(items.find(({ name }) => name === 'b/file')).toMatchObject({ mode: 0o640, modifiedAtMs: 1_234_567 });
    expect(skipped).toEqual([]);
  });

  it('names what cannot be carried, and keeps names that are no UTF-8', async () => {
    execFileSync('mkfifo', [join(folder, 'fifo')]);
    await writeFile(Buffer.concat([Buffer.from(join(folder, 'f')), Buffer.from([0xff])]), 'x');
    await symlink(Buffer.from([0xfe]), join(folder, 'odd'));
    const { items, skipped } = await disk.treeOf(at(''), options);
    expect(items.map(shape)).toEqual(['directory  0', 'file f\xff 1']);
    expect(skipped).toEqual([
      { path: join(folder, 'fifo'), reason: 'fifo' },
      { path: join(folder, 'odd'), reason: 'notUtf8' },
    ]);
  });

  it('goes in no circle where links are followed', async () => {
    await mkdir(join(folder, 'a', 'b'), { recursive: true });
    await mkdir(join(folder, 'c'));
    await writeFile(join(folder, 'c', 'file'), 'x');
    await symlink('..', join(folder, 'a', 'b', 'up'));
    await symlink('../c', join(folder, 'a', 'other'));
    await symlink('nowhere', join(folder, 'dangling'));
    const { items, skipped } = await disk.treeOf(at(''), { ...options, followSymlinks: true });
    expect(items.map(({ name }) => name)).toEqual(['', 'a', 'a/b', 'a/other', 'a/other/file', 'c', 'c/file']);
    expect(skipped.map(({ reason }) => reason)).toEqual(['linkLoop', 'danglingLink']);
  });

  it('fails with the path of what cannot be listed', async () => {
    await expect(disk.treeOf(at('missing'), options)).rejects.toMatchObject({
      code: 'ENOENT',
      data: { path: join(folder, 'missing'), local: true },
    });
  });
});

describe('a file that comes about', () => {
  it('takes its place in the end, with mode and time, and leaves nothing beside it', async () => {
    const target = await disk.createTarget(at('file'));
    await target.write(3, Buffer.from('def'));
    await target.write(0, Buffer.from('abc'));
    expect(await disk.kindOf(at('file'))).toBe('missing');
    await target.commit({ mode: 0o751, modifiedAtMs: 1_234_567, overwrite: true });
    expect(await readFile(join(folder, 'file'), 'utf8')).toBe('abcdef');
    const { mode, mtimeMs } = await stat(join(folder, 'file'));
    // Some versions of Node add half a microsecond.
    expect([mode & 0o777, Math.round(mtimeMs)]).toEqual([0o751, 1_234_567]);
    expect(await readdir(folder)).toEqual(['file']);
  });

  it('takes no place that is taken where nothing may be overwritten', async () => {
    await writeFile(join(folder, 'file'), 'old');
    const target = await disk.createTarget(at('file'));
    const how = { mode: 0o600, modifiedAtMs: 0, overwrite: false };
    await expect(target.commit(how)).rejects.toMatchObject({ code: 'EEXIST' });
    expect(await readFile(join(folder, 'file'), 'utf8')).toBe('old');
    expect(await readdir(folder)).toEqual(['file']);
  });

  it('is gone when it is dropped', async () => {
    const target = await disk.createTarget(at('file'));
    await target.write(0, Buffer.from('abc'));
    await target.drop();
    await target.drop();
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('folders and links', () => {
  it('are not made through a link that is in their place', async () => {
    await mkdir(join(folder, 'elsewhere'));
    await symlink('elsewhere', join(folder, 'a'));
    await expect(disk.makeFolder(at('a'))).rejects.toMatchObject({ code: 'ENOTDIR' });
    expect(await disk.makeFolder(at('elsewhere'))).toBe('there');
    expect(await disk.makeFolder(at('new'))).toBe('made');
  });

  it('take the place of a file or a link, and of nothing where nothing may be overwritten', async () => {
    const item = { name: 'l', kind: 'symlink', size: 0, mode: 0o777, modifiedAtMs: 5_000, target: 'there' } as const;
    await writeFile(join(folder, 'l'), 'old');
    await expect(disk.makeLink(at('l'), item, false)).rejects.toMatchObject({ code: 'EEXIST' });
    await disk.makeLink(at('l'), item, true);
    expect(await readlink(join(folder, 'l'))).toBe('there');
    expect(Math.round((await lstat(join(folder, 'l'))).mtimeMs)).toBe(5_000);
    await mkdir(join(folder, 'd'));
    await expect(disk.makeLink(at('d'), item, true)).rejects.toMatchObject({ code: 'EISDIR' });
    expect((await readdir(folder)).sort()).toEqual(['d', 'l']);
  });
});

describe('a file that is read', () => {
  it('is the one that was opened, to its end', async () => {
    await writeFile(join(folder, 'file'), 'abcdef');
    const source = await disk.openSource(at('file'), false);
    await rm(join(folder, 'file'));
    expect(Buffer.from((await source?.read(2, 100)) ?? []).toString()).toBe('cdef');
    expect(source?.size).toBe(6);
    await source?.close();
  });

  it('is no FIFO, and no link that is not to be followed', async () => {
    execFileSync('mkfifo', [join(folder, 'fifo')]);
    await symlink('fifo', join(folder, 'link'));
    for (const name of ['fifo', 'link']) expect(await disk.openSource(at(name), false)).toBeUndefined();
    await expect(disk.openSource(at('missing'), false)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('the place of a file', () => {
  it('is refused where a device, a FIFO or a folder is, which stay', async () => {
    execFileSync('mkfifo', [join(folder, 'fifo')]);
    await mkdir(join(folder, 'sub'));
    await expect(disk.createTarget(at('fifo'))).rejects.toMatchObject({ code: 'NOT_REGULAR_FILE' });
    await expect(disk.createTarget(at('sub'))).rejects.toMatchObject({ code: 'EISDIR' });
    expect((await lstat(join(folder, 'fifo'))).isFIFO()).toBe(true);
    expect((await readdir(folder)).sort()).toEqual(['fifo', 'sub']);
  });
});
