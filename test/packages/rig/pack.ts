/** Packs every package once, as a release would, for all tests. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import type { TestProject } from 'vitest/node';
import { folderOf, type PackageName, packageNames } from './workspace.js';

declare module 'vitest' {
  interface ProvidedContext {
    readonly tarballs: Readonly<Record<PackageName, string>>;
  }
}

export default async function packAll(project: TestProject): Promise<() => Promise<void>> {
  const [program, ...args] = packageManager();
  const folder = await mkdtemp(join(tmpdir(), 'exec-server-packed-'));
  const packed = packageNames.map(async (name) => {
    const place = join(folder, name);
    await execa(program, [...args, 'pack', '--pack-destination', place], { cwd: folderOf(name) });
    const [file = ''] = await readdir(place);
    return [name, join(place, file)] as const;
  });
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  const settled = await Promise.allSettled(packed);
  const failed = settled.find((result) => result.status === 'rejected');
  if (failed !== undefined) {
    await remove();
    throw failed.reason;
  }
  const tarballs = Object.fromEntries(await Promise.all(packed)) as Record<PackageName, string>;
  project.provide('tarballs', tarballs);
  return remove;
}

/** The one that runs this script, else the one on the path. */
function packageManager(): readonly [string, ...string[]] {
  const running = process.env['npm_execpath'];
  return running?.includes('pnpm') === true ? [process.execPath, running] : ['pnpm'];
}
