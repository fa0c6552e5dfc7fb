import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manualClock.js';
import { Scratch } from '../../../../test/support/scratch.js';
import { pathOf } from '../paths.js';
import { TempFiles } from './tempFiles.js';

describe('temporary files', () => {
  let scratch: Scratch;
  let lines: string[];
  let temps: TempFiles;
  beforeEach(() => {
    scratch = new Scratch();
    lines = [];
    temps = new TempFiles({
      life: 'life',
      list: (key, begins) => lines.push(`+${key} ${begins.slice(scratch.root.length)} ${scratch.names().length}`),
      unlist: (key) => lines.push(`-${key}`),
    });
  });
  afterEach(() => scratch.remove());

  it('are listed before they exist, a folder once', async () => {
    const root = pathOf(scratch.root);
    const first = await temps.create(root);
    const second = await temps.create(root);
    expect(scratch.names()).toEqual(['.exec-server-life-1.tmp', '.exec-server-life-2.tmp']);
    await first.remove();
    await second.moveTo(pathOf(scratch.path('f')));
    await second.remove();
    await (await temps.create(root)).remove();
    expect(lines).toEqual(['+1 /.exec-server-life- 0']);
    expect([scratch.names(), temps.size]).toEqual([['f'], 0]);
  });

  it('keep few folders on the list once they are gone', async () => {
    const kept = await temps.create(pathOf(scratch.folder('kept')));
    for (let index = 0; index < 70; index += 1) {
      await (await temps.create(pathOf(scratch.folder(String(index))))).remove();
    }
    expect(lines.filter((line) => line.startsWith('-'))).toEqual(['-2', '-3', '-4', '-5', '-6', '-7']);
    await kept.remove();
  });

  it('leave no entry behind when they cannot be made', async () => {
    await expect(temps.create(pathOf(scratch.path('none')))).rejects.toMatchObject({ code: 'ENOENT' });
    expect(temps.size).toBe(0);
  });

  it('are waited for at the close, and removed when that takes too long', async () => {
    const clock = new ManualClock();
    const temp = await temps.create(pathOf(scratch.root));
    const quick = temps.close(clock, 1000);
    await temp.remove();
    await quick;
    const slow = await temps.create(pathOf(scratch.root));
    const folder = temps.reserve(pathOf(scratch.root));
    scratch.file(`${folder.path.slice(scratch.root.length)}/x`);
    const closing = temps.close(clock, 1000);
    clock.advance(1000);
    await closing;
    expect([scratch.names(), temps.size]).toEqual([[], 0]);
    await expect(slow.moveTo(pathOf(scratch.path('f')))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('are gone when somebody else removed them', async () => {
    const temp = await temps.create(pathOf(scratch.root));
    rmSync(temp.path);
    await temp.remove();
    expect(temps.size).toBe(0);
  });
});
