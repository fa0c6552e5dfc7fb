import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Scratch } from '../../../../test/support/scratch.js';
import { pathOf } from '../paths.js';
import { removePath } from './remove.js';

describe('removing', () => {
  let scratch: Scratch;
  beforeEach(() => {
    scratch = new Scratch();
  });
  afterEach(() => scratch.remove());

  const remove = (name: string, options: { recursive?: boolean; force?: boolean } = {}): Promise<void> =>
    removePath(pathOf(scratch.path(name)), { recursive: true, force: true, ...options });

  it('takes a tree away and leaves what its links point to', async () => {
    scratch.file('kept/x', 'x');
    scratch.file('tree/a/b/c/f');
    for (let index = 0; index < 200; index += 1) scratch.file(`tree/many/${index}/f`);
    scratch.folder('tree/empty');
    scratch.link('tree/to-folder', '../kept');
    scratch.link('tree/dangling', 'none');
    expect(spawnSync('mkfifo', [scratch.path('tree/fifo')]).status).toBe(0);
    mkdirSync(Buffer.from(`${scratch.root}/tree/\xff\n`, 'latin1'));
    await remove('tree');
    expect(scratch.names()).toEqual(['kept', 'kept/x']);
  });

  it('removes a link and not its target', async () => {
    scratch.file('d/x');
    scratch.link('to-d', 'd');
    scratch.link('loop', 'loop');
    await remove('to-d');
    await remove('loop', { recursive: false, force: false });
    expect(scratch.names()).toEqual(['d', 'd/x']);
  });

  it('refuses a folder that is not empty without recursive, and removes an empty one', async () => {
    scratch.file('d/x');
    scratch.folder('e');
    await expect(remove('d', { recursive: false })).rejects.toMatchObject({ reason: 'directoryNotEmpty' });
    await remove('e', { recursive: false });
    expect(scratch.names()).toEqual(['d', 'd/x']);
  });

  it('hides with force that there is nothing, and no other error', async () => {
    scratch.file('f');
    await remove('none');
    await remove('none/deeper');
    await expect(remove('none', { force: false })).rejects.toMatchObject({ reason: 'fileNotFound' });
    await expect(remove('f/x')).rejects.toMatchObject({ reason: 'notDirectory' });
  });

  it('refuses the root', async () => {
    await expect(removePath(pathOf('/'), { recursive: true, force: true })).rejects.toMatchObject({
      reason: 'invalidArgument',
    });
  });

  it('takes a tree away that is deeper than a path may be long', async () => {
    const deep = Array.from({ length: 15 }, () => 'n'.repeat(200)).join('/');
    scratch.file(`inner/${deep}/f`);
    scratch.folder(`tree/${deep}`);
    renameSync(scratch.path('inner'), scratch.path('tree', deep, 'inner'));
    await remove('tree');
    expect(scratch.names()).toEqual([]);
  });

  it('removes side by side what others remove as well', async () => {
    for (let index = 0; index < 50; index += 1) scratch.file(`tree/${index}/f`);
    await Promise.all(Array.from({ length: 6 }, () => remove('tree')));
    expect(scratch.names()).toEqual([]);
  });
});
