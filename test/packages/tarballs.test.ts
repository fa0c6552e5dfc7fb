import { readFile } from 'node:fs/promises';
import { checkPackage, createPackageFromTarballData, type Problem } from '@arethetypeswrong/core';
import { execa } from 'execa';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { describe, expect, inject, it } from 'vitest';
import { packageNames } from './rig/workspace.js';

/** The packages are ES modules only: how old resolvers and `require` see them is not promised. */
const isPromised = (problem: Problem): boolean =>
  !('resolutionKind' in problem && (problem.resolutionKind === 'node10' || problem.resolutionKind === 'node16-cjs'));

describe.each(packageNames)('the tarball of %s', (name) => {
  it('holds the code, its sources, licence and readme, and nothing of the tests', async () => {
    const { stdout } = await execa('tar', ['-tzf', inject('tarballs')[name]]);
    const files = stdout.split('\n').map((file) => file.replace('package/', ''));
    expect(files).toEqual(
      expect.arrayContaining(['package.json', 'README.md', 'LICENSE', 'dist/index.js', 'src/index.ts']),
    );
    expect(files.filter((file) => /\.test\.|testSupport|scripts\/|tsbuildinfo|node_modules/.test(file))).toEqual([]);
    // Each map leads to a source that is there.
    const maps = files.filter((file) => file.endsWith('.js.map'));
    expect(maps.length).toBeGreaterThan(0);
    const sources = maps.map((map) => map.replace(/^dist/, 'src').replace(/js\.map$/, 'ts'));
    expect(sources.filter((source) => !files.includes(source))).toEqual([]);
  });

  it('has versions where the workspace has references', async () => {
    const { stdout } = await execa('tar', ['-xzOf', inject('tarballs')[name], 'package/package.json']);
    expect(stdout).not.toMatch(/workspace:|catalog:/);
  });

  it('is clean by publint', async () => {
    const tarball = await readFile(inject('tarballs')[name]);
    const { messages, pkg } = await publint({ pack: { tarball: exactBuffer(tarball) }, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  it('has types that are found wherever its code is', async () => {
    const pack = createPackageFromTarballData(await readFile(inject('tarballs')[name]));
    const result = await checkPackage(pack);
    if (result.types === false) throw new Error('the package has no types');
    expect(result.problems.filter(isPromised)).toEqual([]);
  });
});

function exactBuffer({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer {
  const copy = new ArrayBuffer(byteLength);
  new Uint8Array(copy).set(new Uint8Array(buffer, byteOffset, byteLength));
  return copy;
}
