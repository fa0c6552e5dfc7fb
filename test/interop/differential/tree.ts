/** Describes what lies below a folder: kinds, modes, contents, links. Names are taken as latin1, since they may be any bytes. */
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Tree } from './step.js';

export async function readTree(folder: string): Promise<Tree> {
  const tree: Record<string, string> = {};
  await describeBelow(folder, '', tree).catch((error: NodeJS.ErrnoException) => {
    // The sequence removed the folder it worked in.
    if (error.code !== 'ENOENT') throw error;
    tree['.'] = 'gone';
  });
  return tree;
}

/** By hand, since `readdir` with `recursive` enters links, loops included. */
async function describeBelow(folder: string, below: string, tree: Record<string, string>): Promise<void> {
  const here = Buffer.from(join(folder, below), 'latin1');
  for (const entry of await readdir(here, { withFileTypes: true, encoding: 'buffer' })) {
    const name = join(below, entry.name.toString('latin1'));
    tree[name] = await describe(Buffer.from(join(folder, name), 'latin1'));
    if (entry.isDirectory()) await describeBelow(folder, name, tree);
  }
}

async function describe(path: Buffer): Promise<string> {
  const stats = await lstat(path);
  const mode = (stats.mode & 0o7777).toString(8);
  if (stats.isSymbolicLink()) return `link to ${await readlink(path)}`;
  if (stats.isDirectory()) return `folder ${mode}`;
  if (stats.isFile()) return `file ${mode} ${(await readFile(path)).toString('base64')}`;
  return `other ${mode}`;
}
