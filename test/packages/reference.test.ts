/** The API reference in docs/api against the docstrings it is made of. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeReference, pageNames, type Reference } from './rig/reference.js';
import { isUpdate } from './rig/update.js';
import { root } from './rig/workspace.js';

const folder = join(root, 'docs/api');
let reference: Reference;

beforeAll(async () => {
  reference = await makeReference();
  if (!isUpdate) return;
  await mkdir(folder, { recursive: true });
  for (const [name, text] of reference.pages) await writeFile(join(folder, `${name}.md`), text);
}, 120_000);

describe('the API reference', () => {
  it.each(pageNames)('docs/api/%s.md is what the docstrings say; run `pnpm test:packages:update`', async (name) => {
    expect(await readFile(join(folder, `${name}.md`), 'utf8')).toBe(reference.pages.get(name));
  });

  it('names no path of the machine it was made on', () => {
    const text = [...reference.pages.values()].join('\n');
    expect(text).not.toContain(root);
    expect(text).not.toMatch(/node_modules|file:\/\/\/(?:home|tmp|Users)\b/);
  });
});

describe('the docstrings', () => {
  const missing = /does not have any documentation$/;
  const unnamed = /but not included in the documentation$/;

  it('are there for every export, and for every public member of an exported class or interface', () => {
    expect(reference.faults.filter((fault) => missing.test(fault))).toEqual([]);
  });

  it('stand on types alone that can be imported', () => {
    expect(reference.faults.filter((fault) => unnamed.test(fault))).toEqual([]);
  });

  it('have no other fault, as links that lead nowhere', () => {
    expect(reference.faults.filter((fault) => !missing.test(fault) && !unnamed.test(fault))).toEqual([]);
  });
});
