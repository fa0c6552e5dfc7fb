/** A folder of a user: packed packages installed by npm alone, without scripts and without optional dependencies. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { inject } from 'vitest';
import type { PackageName } from './workspace.js';

export interface Installed {
  readonly folder: string;
  /** Writes a file into the folder and gives its path. */
  write(name: string, text: string): Promise<string>;
  /** Runs a program of the folder's dependencies, or Node. Rejects where it fails. */
  run(program: string, ...args: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

export async function install(...names: readonly PackageName[]): Promise<Installed> {
  const tarballs = inject('tarballs');
  const folder = await mkdtemp(join(tmpdir(), 'exec-server-installed-'));
  await execa(
    'npm',
    [
      'install',
      '--ignore-scripts',
      '--omit=optional',
      '--no-audit',
      '--no-fund',
      '--prefer-offline',
      ...names.map((name) => tarballs[name]),
    ],
    { cwd: folder },
  );
  const bin = join(folder, 'node_modules', '.bin');
  return {
    folder,
    async write(name, text) {
      const path = join(folder, name);
      await writeFile(path, text);
      return path;
    },
    async run(program, ...args) {
      const path = program === 'node' ? process.execPath : join(bin, program);
      const { stdout } = await execa(path, args, { cwd: folder, timeout: 60_000, stdin: 'ignore' });
      return stdout;
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
