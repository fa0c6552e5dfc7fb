import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  linkSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { asNobody, isRoot, NOBODY } from '../../../../test/support/nobody.js';
import { Scratch } from '../../../../test/support/scratch.js';
import { unguardedTemps } from '../../../../test/support/temps.js';
import { pathOf } from '../paths.js';
import { writeAll } from './content.js';
import { commitTemp, type Fill, replaceFile, type ReplaceOptions, type Written } from './replaceFile.js';
import type { TempFiles } from './tempFiles.js';

const files = new URL('../../dist/files/', import.meta.url).href;

describe.skipIf(process.platform !== 'linux')('replacing a file', () => {
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

  const fill =
    (text: string): Fill =>
    (file) =>
      writeAll(file, Buffer.from(text));
  const write = (name: string, text: string, options: ReplaceOptions = {}): Promise<Written> =>
    replaceFile(temps, pathOf(scratch.path(name)), fill(text), options);
  const identity = (name: string): number => scratch.stats(name).ino;

  it('puts another file in the place of the old one, with its mode and its owner', async () => {
    scratch.file('f', 'old');
    if (isRoot) chownSync(scratch.path('f'), 12, 34);
    chmodSync(scratch.path('f'), 0o4640);
    const { ino, uid, gid } = scratch.stats('f');
    expect(await write('f', 'new')).toEqual({});
    expect(scratch.text('f')).toBe('new');
    expect(scratch.stats('f')).toMatchObject({ uid, gid });
    expect([scratch.mode('f'), identity('f') === ino]).toEqual([0o4640, false]);
    expect(scratch.names()).toEqual(['f']);
  });

  it('creates a file with 0666 without the umask, or with the permissions asked for', async () => {
    await write('f', 'a');
    await write('g', 'b', { permissions: 0o666 });
    await write('g', 'c', { permissions: 0o600 });
    expect([scratch.mode('f'), scratch.mode('g'), scratch.text('g')]).toEqual([0o666 & ~process.umask(), 0o666, 'c']);
  });

  it('takes names of 255 bytes, and names that are not UTF-8', async () => {
    const long = 'n'.repeat(255);
    await write(long, 'long');
    await write(long, 'again');
    const odd = pathOf(Buffer.concat([Buffer.from(`${scratch.root}/`), Buffer.from([0x66, 0xff, 0x0a])]));
    await replaceFile(temps, odd, fill('odd'));
    expect(scratch.text(long)).toBe('again');
    expect(readFileSync(Buffer.from(odd, 'latin1'), 'utf8')).toBe('odd');
  });

  it('follows links to the file, and creates the target of a dangling one', async () => {
    scratch.file('real/f', 'old');
    scratch.link('folder', 'real');
    scratch.link('one', 'folder/two');
    scratch.link('real/two', '../real/f');
    scratch.link('dangling', 'folder/./next');
    scratch.link('real/next', '../real/fresh');
    expect(await write('one', 'new')).toEqual({});
    expect(await write('dangling', 'made')).toEqual({});
    expect([scratch.text('real/f'), scratch.text('real/fresh')]).toEqual(['new', 'made']);
    expect(['one', 'real/two', 'dangling', 'real/next'].map((name) => scratch.stats(name).isSymbolicLink())).toEqual(
      Array.from({ length: 4 }, () => true),
    );
  });

  it('refuses folders, circles of links, and links to folders that do not exist', async () => {
    scratch.folder('d');
    scratch.link('to-d', 'd');
    scratch.link('a', 'b');
    scratch.link('b', 'a');
    scratch.link('slash', 'none/');
    await expect(write('d', '')).rejects.toMatchObject({ reason: 'isDirectory' });
    await expect(write('to-d', '')).rejects.toMatchObject({ reason: 'isDirectory' });
    await expect(write('slash', '')).rejects.toMatchObject({ reason: 'isDirectory' });
    await expect(write('a', '')).rejects.toMatchObject({ reason: 'tooManyLinks' });
    await expect(write('none/f', '')).rejects.toMatchObject({ reason: 'fileNotFound', data: { errno: 'ENOENT' } });
    await expect(write('n'.repeat(256), '')).rejects.toMatchObject({ reason: 'nameTooLong' });
  });

  it('leaves the old file, and nothing beside it, when the content fails', async () => {
    scratch.file('f', 'old');
    const broken: Fill = async (file) => {
      await file.write('half');
      throw new Error('broken');
    };
    await expect(replaceFile(temps, pathOf(scratch.path('f')), broken)).rejects.toThrow('broken');
    expect([scratch.text('f'), scratch.names()]).toEqual(['old', ['f']]);
  });

  it('writes in place what has other names, and where it is asked to', async () => {
    scratch.file('f', 'old content');
    linkSync(scratch.path('f'), scratch.path('other'));
    expect(await write('f', 'new')).toEqual({ inPlace: 'hardLinks' });
    expect([scratch.text('other'), identity('f')]).toEqual(['new', identity('other')]);
    scratch.file('g', 'old content');
    const ino = identity('g');
    expect(await write('g', 'new', { inPlace: true, fsync: true })).toEqual({ inPlace: 'asked' });
    expect(await write('g', '+', { append: true })).toEqual({ inPlace: 'asked' });
    expect(await write('h', 'made', { append: true })).toEqual({ inPlace: 'asked' });
    expect([scratch.text('g'), identity('g'), scratch.text('h')]).toEqual(['new+', ino, 'made']);
  });

  it('refuses what exists with exclusive, dangling links too, and lets one of many win', async () => {
    scratch.file('f', 'old');
    scratch.link('dangling', 'none');
    for (const options of [{}, { inPlace: true }, { append: true }]) {
      for (const name of ['f', 'dangling', '.']) {
        await expect(write(name, 'new', { ...options, exclusive: true })).rejects.toMatchObject({
          reason: 'fileExists',
        });
      }
    }
    const tries = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) => write('won', String(index), { exclusive: true, fsync: true })),
    );
    const winners = tries.flatMap(({ status }, index) => (status === 'fulfilled' ? [String(index)] : []));
    expect(winners).toEqual([scratch.text('won')]);
    expect([scratch.text('f'), scratch.has('none')]).toEqual(['old', false]);
    expect(scratch.names()).toEqual(['dangling', 'f', 'won']);
  });

  it('writes to devices and FIFOs what they take at once, and fails with the rest', async () => {
    expect(await replaceFile(temps, pathOf('/dev/null'), fill('x'))).toEqual({ inPlace: 'notRegularFile' });
    const fifo = scratch.path('fifo');
    expect(spawnSync('mkfifo', [fifo]).status).toBe(0);
    await expect(write('fifo', 'x')).rejects.toMatchObject({ reason: 'fileFailed', data: { errno: 'ENXIO' } });
    const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
    expect(await write('fifo', 'hello')).toEqual({ inPlace: 'notRegularFile' });
    const got = Buffer.alloc(16);
    expect(got.toString('utf8', 0, readSync(reader, got))).toBe('hello');
    await expect(write('fifo', 'x'.repeat(1 << 21))).rejects.toMatchObject({ data: { errno: 'EAGAIN' } });
    closeSync(reader);
    expect(scratch.stats('fifo').isFIFO()).toBe(true);
  });

  it('writes to a file without a name through the link that leads to it', async () => {
    const file = openSync(scratch.file('f', 'old content'), 'r+');
    rmSync(scratch.path('f'));
    const path = pathOf(`/proc/self/fd/${file}`);
    expect(await replaceFile(temps, path, fill('new'))).toEqual({ inPlace: 'notRegularFile' });
    expect(readFileSync(`/proc/self/fd/${file}`, 'utf8')).toBe('new');
    closeSync(file);
    expect(scratch.names()).toEqual([]);
  });

  it('takes a file of /proc, where nothing can be created', async () => {
    const path = pathOf('/proc/self/comm');
    const before = readFileSync('/proc/self/comm', 'utf8');
    expect(await replaceFile(temps, path, fill('renamed'))).toEqual({ inPlace: 'directoryNotWritable' });
    expect(readFileSync('/proc/self/comm', 'utf8')).toBe('renamed\n');
    await replaceFile(temps, path, fill(before.trim()));
  });

  it.runIf(isRoot)('writes in place what is mounted itself', async (context) => {
    scratch.file('source', 'old content');
    scratch.file('target', 'hidden');
    if (spawnSync('mount', ['--bind', scratch.path('source'), scratch.path('target')]).status !== 0) {
      context.skip('no privilege to mount');
    }
    try {
      expect(await write('target', 'new')).toEqual({ inPlace: 'mount' });
      expect(scratch.text('source')).toBe('new');
    } finally {
      spawnSync('umount', [scratch.path('target')]);
    }
    expect(scratch.text('target')).toBe('hidden');
    expect(scratch.names()).toEqual(['source', 'target']);
  });

  it('replaces by a copy where the temporary file lies on another file system', async () => {
    scratch.file('f', 'old content', 0o640);
    const ino = identity('f');
    const elsewhere = new Scratch('/dev/shm');
    const temp = await temps.create(pathOf(elsewhere.root));
    await fill('new')(temp.file);
    expect(await commitTemp(temps, temp, pathOf(scratch.path('f')))).toEqual({});
    await temp.remove();
    expect([scratch.text('f'), scratch.mode('f'), identity('f') === ino]).toEqual(['new', 0o640, false]);
    expect([scratch.names(), elsewhere.names()]).toEqual([['f'], []]);
    elsewhere.remove();
  });

  it('commits what was written although the temporary file, or its folder, was removed meanwhile', async () => {
    for (const remove of ['rm -f folder/.exec-server-*', 'rm -r folder && mkdir folder']) {
      scratch.file('folder/f', 'old');
      const temp = await temps.create(pathOf(scratch.path('folder')));
      await fill('new')(temp.file);
      expect(spawnSync('sh', ['-c', remove], { cwd: scratch.root }).status).toBe(0);
      expect(await commitTemp(temps, temp, pathOf(scratch.path('folder/f')))).toEqual({});
      await temp.remove();
      expect([scratch.names('folder'), scratch.text('folder/f')]).toEqual([['f'], 'new']);
    }
  });

  describe.runIf(isRoot)('as a user without privileges', () => {
    const attempt = (name: string, options = '{}'): string =>
      asNobody(`
        import { replaceFile } from '${files}replaceFile.js';
        import { TempFiles } from '${files}tempFiles.js';
        const temps = new TempFiles({ life: 'nobody', list() {}, unlist() {} });
        const fill = (file) => file.write('new');
        await replaceFile(temps, ${JSON.stringify(scratch.path(name))}, fill, ${options}).then(
          (written) => console.log(written.inPlace ?? 'renamed'),
          (error) => console.log(error.reason),
        );`);

    it('keeps an owner it could not give, and writes in place', () => {
      chmodSync(scratch.root, 0o777);
      scratch.file('theirs', 'old content');
      chmodSync(scratch.path('theirs'), 0o666);
      const ino = identity('theirs');
      expect(attempt('theirs')).toBe('owner');
      expect(scratch.stats('theirs')).toMatchObject({ uid: 0, ino });
      expect([scratch.text('theirs'), scratch.names()]).toEqual(['new', ['theirs']]);
    });

    it('writes in place where no temporary file can be made', () => {
      chmodSync(scratch.root, 0o755);
      scratch.file('mine', 'old content');
      chownSync(scratch.path('mine'), NOBODY, NOBODY);
      expect(attempt('mine')).toBe('directoryNotWritable');
      expect(scratch.text('mine')).toBe('new');
      expect(attempt('none')).toBe('permissionDenied');
    });

    it('does not get around the permissions of a file by a rename', () => {
      chmodSync(scratch.root, 0o777);
      scratch.file('f', 'old');
      chmodSync(scratch.path('f'), 0o644);
      expect(attempt('f')).toBe('permissionDenied');
      expect([scratch.text('f'), scratch.names()]).toEqual(['old', ['f']]);
    });

    it("writes in place another one's file in a folder with the sticky bit", () => {
      chmodSync(scratch.root, 0o1777);
      const path = scratch.file('f', 'old content');
      chownSync(path, 0, NOBODY);
      chmodSync(path, 0o664);
      expect(attempt('f')).toBe('owner');
      expect([scratch.text('f'), scratch.names()]).toEqual(['new', ['f']]);
    });
  });

  it('gives a copy the set-id bits of its source only with the same owner', async () => {
    scratch.file('source');
    chmodSync(scratch.path('source'), 0o4755);
    await write('same', 'x', { like: scratch.stats('source') });
    expect(scratch.mode('same')).toBe(0o4755);
    if (!isRoot) return;
    chownSync(scratch.path('source'), NOBODY, NOBODY);
    chmodSync(scratch.path('source'), 0o4755);
    await write('other', 'x', { like: scratch.stats('source') });
    await write('owned', 'x', { like: scratch.stats('source'), alike: true });
    expect([scratch.mode('other'), scratch.mode('owned'), scratch.stats('owned').uid]).toEqual([0o755, 0o4755, NOBODY]);
  });
});
