import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { pathOf } from '../paths.js';
import { refuseLinks } from './noFollow.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'links-'));
  await mkdir(join(folder, 'd'));
  await writeFile(join(folder, 'd/x'), '');
  await symlink('d', join(folder, 'l'));
  await symlink('nowhere', join(folder, 'dangling'));
});
afterAll(() => rm(folder, { recursive: true }));

it.each(['', 'd', 'd/x', 'd/none', 'none/none', 'd/x/below'])(
  'lets "%s" pass: no part that exists is a link',
  async (name) => {
    await expect(refuseLinks(pathOf(join(folder, name)))).resolves.toBeUndefined();
  },
);

it.each([
  ['l', 'ELOOP'],
  ['dangling', 'ELOOP'],
  ['l/x', 'ENOTDIR'],
  ['l/none', 'ENOTDIR'],
])('refuses %s with %s', async (name, errno) => {
  await expect(refuseLinks(pathOf(join(folder, name)))).rejects.toMatchObject({
    data: { errno, path: join(folder, name) },
  });
});

it('lets the root pass', async () => {
  await expect(refuseLinks(pathOf('/'))).resolves.toBeUndefined();
});
