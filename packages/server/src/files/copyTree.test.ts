import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  openSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { WireError } from '@exec-server/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { asNobody, isRoot } from '../../../../test/support/nobody.js';
import { Scratch } from '../../../../test/support/scratch.js';
import { unguardedTemps } from '../../../../test/support/temps.js';
import { pathOf } from '../paths.js';
import { type Copied, copyPath, type CopyOptions } from './copyTree.js';
import type { TempFiles } from './tempFiles.js';

const MIB = 1024 * 1024;
const descendant = 'fs/copy cannot copy a directory to itself or one of its descendants';

describe.skipIf(process.platform !== 'linux')('copying', () => {
  let scratch: Scratch;
  let temps: TempFiles;
  beforeEach(() => {
    scratch = new Scratch();
    temps = unguardedTemps();
  });
  afterEach(() => {
    expect(temps.size).toBe(0);
    scratch.remove();
  });

  const copy = (source: string, destination: string, options: Partial<CopyOptions> = {}): Promise<Copied> =>
    copyPath(pathOf(scratch.path(source)), pathOf(scratch.path(destination)), {
      temps,
      recursive: true,
      overwrite: true,
      followSymlinks: false,
      alike: false,
      check: () => {},
      ...options,
    });
  const mkfifo = (name: string): void => {
    expect(spawnSync('mkfifo', [scratch.path(name)]).status).toBe(0);
  };

  it('names the source when that cannot be read', async () => {
    // What the host calls a regular file, and has no page at its beginning.
    const failed = copyPath(pathOf('/proc/self/mem'), pathOf(scratch.path('copy')), {
      temps,
      recursive: false,
      overwrite: true,
      followSymlinks: false,
      alike: false,
      check: () => {},
    });
    await expect(failed).rejects.toMatchObject({ data: { errno: 'EIO', path: '/proc/self/mem' } });
    expect(scratch.names()).toEqual([]);
  });

  it('replaces content and mode of a file, and follows a link to it', async () => {
    scratch.file('a', 'content', 0o750);
    scratch.file('b', 'old', 0o600);
    scratch.link('l', 'b');
    expect(await copy('a', 'l', { recursive: false })).toEqual({ skipped: 0 });
    expect([scratch.text('b'), scratch.mode('b'), scratch.stats('l').isSymbolicLink()]).toEqual([
      'content',
      0o750,
      true,
    ]);
  });

  it('leaves a file that is copied onto itself, by whatever name', async () => {
    scratch.file('f', 'content');
    linkSync(scratch.path('f'), scratch.path('hard'));
    scratch.link('soft', 'f');
    for (const name of ['f', 'hard', 'soft']) await copy('f', name);
    expect(scratch.text('f')).toBe('content');
  });

  it('copies a link as a link, and refuses a name that is taken', async () => {
    scratch.link('l', 'nowhere');
    await copy('l', 'm');
    expect(readlinkSync(scratch.path('m'))).toBe('nowhere');
    await expect(copy('l', 'm')).rejects.toMatchObject({ reason: 'fileExists' });
  });

  it('copies a tree with modes, links and odd names, and says what it left out', async () => {
    scratch.file('src/sub/deep/f', 'x', 0o755);
    chmodSync(scratch.folder('src/closed'), 0o500);
    chmodSync(scratch.path('src/sub'), 0o2710);
    scratch.link('src/l', 'sub');
    scratch.link('src/sub/dangling', '../none');
    writeFileSync(Buffer.from(`${scratch.root}/src/\xff\n`, 'latin1'), '');
    mkfifo('src/fifo');
    mkfifo('src/sub/fifo');
    expect(await copy('src', 'new/parent/dst')).toEqual({ skipped: 2 });
    const expected = scratch.names('src').filter((name) => !name.endsWith('fifo'));
    expect(scratch.names('new/parent/dst')).toEqual(expected);
    expect(['closed', 'sub', 'sub/deep/f'].map((name) => scratch.mode(`new/parent/dst/${name}`))).toEqual([
      0o500, 0o2710, 0o755,
    ]);
    expect(readlinkSync(scratch.path('new/parent/dst/l'))).toBe('sub');
  });

  it.runIf(isRoot)('fills a folder that its owner may not write to', () => {
    const files = new URL('../../dist/files/', import.meta.url).href;
    scratch.file('src/read-only/f', 'x', 0o444);
    chmodSync(scratch.path('src/read-only'), 0o555);
    chmodSync(scratch.root, 0o777);
    asNobody(`
      import { copyPath } from '${files}copyTree.js';
      import { TempFiles } from '${files}tempFiles.js';
      const temps = new TempFiles({ life: 'nobody', list() {}, unlist() {} });
      const options = { temps, recursive: true, overwrite: true, followSymlinks: false, alike: false, check() {} };
      await copyPath('${scratch.root}/src', '${scratch.root}/dst', options);`);
    expect([scratch.mode('dst/read-only'), scratch.text('dst/read-only/f')]).toEqual([0o555, 'x']);
  });

  it('merges a folder into a folder, and not into anything else', async () => {
    scratch.file('src/f', 'new');
    scratch.file('src/sub/g', 'new');
    scratch.file('dst/f', 'old');
    scratch.file('dst/kept', 'kept');
    scratch.link('to-dst', 'dst');
    await copy('src', 'to-dst');
    expect([scratch.text('dst/f'), scratch.text('dst/sub/g'), scratch.text('dst/kept')]).toEqual([
      'new',
      'new',
      'kept',
    ]);
    scratch.file('file');
    await expect(copy('src', 'file')).rejects.toMatchObject({ reason: 'fileExists' });
    scratch.folder('other');
    scratch.folder('outside');
    scratch.link('other/sub', '../outside');
    await expect(copy('src', 'other')).rejects.toMatchObject({ reason: 'fileExists' });
    expect(scratch.names('outside')).toEqual([]);
  });

  it('refuses with overwrite: false every destination that exists', async () => {
    scratch.file('src/f', 'new');
    scratch.file('dst/f', 'old');
    await expect(copy('src', 'dst', { overwrite: false })).rejects.toMatchObject({ reason: 'fileExists' });
    await expect(copy('src/f', 'dst/f', { overwrite: false })).rejects.toMatchObject({ reason: 'fileExists' });
    await expect(copy('src/f', 'src/f', { overwrite: false })).rejects.toMatchObject({ reason: 'fileExists' });
    await copy('src', 'fresh', { overwrite: false });
    expect([scratch.text('dst/f'), scratch.text('fresh/f')]).toEqual(['old', 'new']);
  });

  it('refuses a folder into itself, through links as well', async () => {
    scratch.file('src/f', 'x');
    scratch.link('link', 'src');
    for (const destination of ['src', 'src/in', 'src/in/deeper', 'link', 'link/in']) {
      await expect(copy('src', destination)).rejects.toMatchObject({ reason: 'invalidArgument', message: descendant });
    }
    await copy('src', 'src2');
    expect(scratch.names()).toEqual(['link', 'src', 'src/f', 'src2', 'src2/f']);
  });

  it('follows links when asked to, and refuses those that lead in a circle or into the copy', async () => {
    scratch.file('outside/f', 'x');
    scratch.folder('src');
    scratch.link('src/l', '../outside');
    scratch.link('to-src', 'src');
    await copy('to-src', 'dst', { followSymlinks: true });
    expect(scratch.names('dst')).toEqual(['l', 'l/f']);
    scratch.folder('src/loop');
    scratch.link('src/loop/up', '..');
    await expect(copy('src', 'dst2', { followSymlinks: true })).rejects.toMatchObject({ reason: 'tooManyLinks' });
    scratch.folder('a');
    scratch.folder('b');
    scratch.link('a/l', '../b');
    await expect(copy('a', 'b/dst', { followSymlinks: true })).rejects.toMatchObject({ message: descendant });
  });

  it('refuses what is no file, folder or link, folders without recursive, and missing parents of a file', async () => {
    mkfifo('fifo');
    scratch.folder('d');
    scratch.file('f');
    await expect(copy('fifo', 'x')).rejects.toMatchObject({
      code: -32600,
      message: 'fs/copy only supports regular files, directories, and symlinks',
      data: { kind: 'fifo' },
    });
    await expect(copy('d', 'x', { recursive: false })).rejects.toMatchObject({
      code: -32600,
      message: 'fs/copy requires recursive: true when sourcePath is a directory',
    });
    await expect(copy('none', 'x')).rejects.toMatchObject({ reason: 'fileNotFound' });
    await expect(copy('f', 'none/x')).rejects.toMatchObject({ reason: 'fileNotFound' });
    await expect(copy('f', 'd')).rejects.toMatchObject({ reason: 'isDirectory' });
  });

  it('keeps the holes of a file', async () => {
    const file = openSync(scratch.path('sparse'), 'w');
    writeSync(file, 'begin', 0);
    writeSync(file, 'middle', 32 * MIB + 7);
    ftruncateSync(file, 64 * MIB + 3);
    closeSync(file);
    await copy('sparse', 'copy');
    expect(scratch.stats('copy').size).toBe(64 * MIB + 3);
    expect(scratch.stats('copy').blocks * 512).toBeLessThan(2 * MIB);
    expect(readFileSync(scratch.path('copy')).equals(readFileSync(scratch.path('sparse')))).toBe(true);
  });

  it('reads a file of /proc to its end', async () => {
    await copyPath(pathOf('/proc/self/maps'), pathOf(scratch.path('maps')), {
      temps,
      recursive: false,
      overwrite: true,
      followSymlinks: false,
      alike: false,
      check: () => {},
    });
    expect(scratch.text('maps')).toContain('[stack]');
  });

  it('stops in the middle when it is told to, and leaves no temporary file', async () => {
    scratch.file('src/f', Buffer.alloc(MIB));
    let looks = 0;
    const check = (): void => {
      looks += 1;
      if (looks > 3) throw new WireError('sessionEnded', 'over');
    };
    await expect(copy('src', 'dst', { check })).rejects.toMatchObject({ reason: 'sessionEnded' });
    expect(scratch.names('dst')).toEqual([]);
  });
});
