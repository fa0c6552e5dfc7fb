import { spawnSync } from 'node:child_process';
import { chmodSync, linkSync, readlinkSync, utimesSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { asNobody, isRoot, NOBODY } from '../../../../test/support/nobody.js';
import { Scratch } from '../../../../test/support/scratch.js';
import { unguardedTemps } from '../../../../test/support/temps.js';
import { pathOf } from '../paths.js';
import { movePath } from './movePath.js';
import type { TempFiles } from './tempFiles.js';

const files = new URL('../../dist/files/', import.meta.url).href;

describe.skipIf(process.platform !== 'linux')('moving', () => {
  let scratch: Scratch;
  let other: Scratch;
  let temps: TempFiles;
  beforeEach(() => {
    scratch = new Scratch();
    other = new Scratch('/dev/shm');
    temps = unguardedTemps();
  });
  afterEach(() => {
    expect(temps.size).toBe(0);
    scratch.remove();
    other.remove();
  });

  const between = (source: string, destination: string, overwrite = true): Promise<boolean> =>
    movePath(pathOf(source), pathOf(destination), { temps, overwrite, check: () => {} });
  const move = (source: string, destination: string, overwrite = true): Promise<boolean> =>
    between(scratch.path(source), scratch.path(destination), overwrite);

  it('renames, and replaces a file by a file and an empty folder by a folder', async () => {
    scratch.file('f', 'new');
    scratch.file('g', 'old');
    scratch.file('d/x', 'x');
    scratch.folder('e');
    const { ino } = scratch.stats('f');
    expect([await move('f', 'g'), await move('d', 'e')]).toEqual([false, false]);
    expect(scratch.names()).toEqual(['e', 'e/x', 'g']);
    expect(scratch.stats('g').ino).toBe(ino);
  });

  it('refuses what a rename refuses', async () => {
    scratch.file('f');
    scratch.file('d/x');
    scratch.file('full/x');
    scratch.link('to-d', 'd');
    await expect(move('f', 'd')).rejects.toMatchObject({ reason: 'isDirectory' });
    await expect(move('d', 'f')).rejects.toMatchObject({ reason: 'notDirectory' });
    await expect(move('d', 'full')).rejects.toMatchObject({ reason: 'directoryNotEmpty' });
    await expect(move('none', 'x')).rejects.toMatchObject({ reason: 'fileNotFound' });
    await expect(move('f', 'none/x')).rejects.toMatchObject({ reason: 'fileNotFound' });
    for (const destination of ['d/in', 'to-d/in']) {
      for (const overwrite of [true, false]) {
        await expect(move('d', destination, overwrite)).rejects.toMatchObject({
          reason: 'invalidArgument',
          message: 'fs/move cannot move a directory to itself or one of its descendants',
        });
      }
    }
    expect(scratch.names()).toEqual(['d', 'd/x', 'f', 'full', 'full/x', 'to-d']);
  });

  it('does nothing onto itself, and takes one name of two away', async () => {
    scratch.file('d/f', 'x');
    scratch.link('to-d', 'd');
    linkSync(scratch.path('d/f'), scratch.path('hard'));
    expect([await move('d/f', 'd/f'), await move('d/f', 'to-d/f'), await move('d', 'd')]).toEqual([
      false,
      false,
      false,
    ]);
    expect(scratch.names()).toEqual(['d', 'd/f', 'hard', 'to-d']);
    expect(await move('hard', 'd/f')).toBe(false);
    expect([scratch.names(), scratch.text('d/f')]).toEqual([['d', 'd/f', 'to-d'], 'x']);
  });

  it('refuses with overwrite: false whatever is there, and lets one of many win', async () => {
    scratch.file('f', 'f');
    scratch.file('d/x');
    scratch.link('dangling', 'none');
    scratch.folder('empty');
    for (const destination of ['empty', 'dangling', 'd', 'f']) {
      if (destination !== 'f')
        await expect(move('f', destination, false)).rejects.toMatchObject({ reason: 'fileExists' });
      if (destination !== 'd')
        await expect(move('d', destination, false)).rejects.toMatchObject({ reason: 'fileExists' });
    }
    await move('f', 'g', false);
    await move('d', 'e', false);
    await move('dangling', 'l', false);
    expect([scratch.names(), readlinkSync(scratch.path('l'))]).toEqual([['e', 'e/x', 'empty', 'g', 'l'], 'none']);
    for (let index = 0; index < 8; index += 1) scratch.file(`many/${index}`, String(index));
    const tries = await Promise.allSettled(
      Array.from({ length: 8 }, (_, index) => move(`many/${index}`, 'won', false)),
    );
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect([scratch.has(`many/${scratch.text('won')}`), scratch.names('many').length]).toEqual([false, 7]);
  });

  it('copies and removes between file systems, with modes, times and links', async () => {
    scratch.file('src/sub/f', 'x', 0o640);
    scratch.link('src/l', 'sub/f');
    chmodSync(scratch.path('src/sub'), 0o750);
    utimesSync(scratch.path('src/sub/f'), 1_000_000, 2_000_000);
    utimesSync(scratch.path('src/sub'), 3_000_000, 4_000_000);
    expect(await between(scratch.path('src'), other.path('dst'))).toBe(true);
    expect([scratch.names(), other.names()]).toEqual([[], ['dst', 'dst/l', 'dst/sub', 'dst/sub/f']]);
    expect([other.mode('dst/sub/f'), other.stats('dst/sub/f').mtimeMs]).toEqual([0o640, 2_000_000_000]);
    expect([other.mode('dst/sub'), other.stats('dst/sub').mtimeMs]).toEqual([0o750, 4_000_000_000]);
    other.file('f', 'new');
    scratch.file('g', 'old');
    expect(await between(other.path('f'), scratch.path('g'))).toBe(true);
    expect([scratch.text('g'), other.has('f')]).toEqual(['new', false]);
  });

  it('refuses between file systems what it could not bring over whole, and leaves both sides as they were', async () => {
    scratch.file('src/f', 'x');
    expect(spawnSync('mkfifo', [scratch.path('src/fifo')]).status).toBe(0);
    other.file('full/x');
    other.file('file', 'old');
    await expect(between(scratch.path('src'), other.path('dst'))).rejects.toMatchObject({ reason: 'notRegularFile' });
    await expect(between(scratch.path('src/fifo'), other.path('p'))).rejects.toMatchObject({
      reason: 'notRegularFile',
    });
    await expect(between(scratch.path('src'), other.path('file'))).rejects.toMatchObject({ reason: 'notDirectory' });
    await expect(between(scratch.path('src/f'), other.path('full'))).rejects.toMatchObject({ reason: 'isDirectory' });
    await expect(between(scratch.path('src/f'), other.path('file'), false)).rejects.toMatchObject({
      reason: 'fileExists',
    });
    scratch.file('whole/f', 'x');
    await expect(between(scratch.path('whole'), other.path('full'))).rejects.toMatchObject({
      reason: 'directoryNotEmpty',
    });
    expect(other.names()).toEqual(['file', 'full', 'full/x']);
    expect(scratch.names()).toEqual(['src', 'src/f', 'src/fifo', 'whole', 'whole/f']);
    expect(await between(scratch.path('whole'), other.path('free'), false)).toBe(true);
  });

  /** What became of a move between file systems by a user without privileges: its result, or the reason of its error. */
  const moveAsNobody = (source: string, destination: string): string =>
    asNobody(`
      import { movePath } from '${files}movePath.js';
      import { TempFiles } from '${files}tempFiles.js';
      const temps = new TempFiles({ life: 'nobody', list() {}, unlist() {} });
      const options = { temps, overwrite: true, check() {} };
      const moving = movePath('${scratch.path(source)}', '${other.path(destination)}', options);
      console.log(await moving.catch((error) => error.reason));`);

  it.runIf(isRoot)('takes folders that may not be written to between file systems, and leaves nothing of them', () => {
    chmodSync(other.root, 0o777);
    for (const name of ['good', 'bad']) {
      scratch.file(`${name}/locked/inner/f`, 'x');
      chmodSync(scratch.path(`${name}/locked/inner`), 0o555);
      chmodSync(scratch.path(`${name}/locked`), 0o555);
    }
    expect(spawnSync('mkfifo', [scratch.path('bad/z')]).status).toBe(0);
    expect(spawnSync('chown', ['-R', String(NOBODY), scratch.root]).status).toBe(0);
    expect([moveAsNobody('bad', 'bad'), moveAsNobody('good', 'good')]).toEqual(['notRegularFile', 'true']);
    expect(other.names()).toEqual(['good', 'good/locked', 'good/locked/inner', 'good/locked/inner/f']);
    expect([other.mode('good/locked'), other.mode('good/locked/inner')]).toEqual([0o555, 0o555]);
    expect(scratch.names()).toEqual(['bad', 'bad/locked', 'bad/locked/inner', 'bad/locked/inner/f', 'bad/z']);
  });

  it.runIf(isRoot)('copies nothing between file systems that it could not remove in the end', () => {
    chmodSync(other.root, 0o777);
    scratch.file('sticky/f', 'x');
    scratch.file('closed/f', 'x');
    chmodSync(scratch.path('sticky'), 0o1777);
    chmodSync(scratch.path('closed'), 0o755);
    chmodSync(scratch.root, 0o755);
    expect([moveAsNobody('sticky/f', 'f'), moveAsNobody('closed/f', 'g')]).toEqual([
      'permissionDenied',
      'permissionDenied',
    ]);
    expect([other.names(), scratch.names()]).toEqual([[], ['closed', 'closed/f', 'sticky', 'sticky/f']]);
  });
});
