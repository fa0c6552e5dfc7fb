import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { clientErrorCodes } from '@exec-server/client';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { stdioCommand } from '../support/links.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8');

/** Inside the workspace, so that the packages are found. */
async function runInWorkspace(program: string): Promise<string> {
  const folder = await mkdtemp(join(root, 'node_modules', '.readme-'));
  try {
    const file = join(folder, 'program.mjs');
    await writeFile(file, program);
    return (await execa(process.execPath, [file])).stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

describe('the README', () => {
  it('has a program that runs as it stands', async () => {
    const readme = await read('README.md');
    const program = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
    expect(program).toContain("['exec-server', '--listen', 'stdio']");
    const stdout = await runInWorkspace(
      program.replace("['exec-server', '--listen', 'stdio']", JSON.stringify(stdioCommand)),
    );
    expect(stdout.split('\n').slice(0, 3)).toEqual(['0 apple', 'pear', '']);
    expect(stdout.split('\n').slice(3).sort()).toEqual(['', 'exit code 3', 'hello', 'stderr 2 4', 'stdout 1 4']);
  });

  it('of the testing package has an example that runs as it stands, and with the rule it shows', async () => {
    const readme = await read('packages/testing/README.md');
    const blocks = [...readme.matchAll(/```(js|ts)\n([\s\S]*?)```/g)].map((match) => match[2] ?? '');
    const [program = '', rule = ''] = blocks;
    expect(blocks).toHaveLength(2);
    expect(program).toContain('startFaultProxy');
    expect(await runInWorkspace(program)).toBe('');
    const withRule = program.replace('const client =', `${rule}\nconst client =`);
    expect(withRule).not.toBe(program);
    await runInWorkspace(`import { hasMethod } from '@exec-server/testing';\n${withRule}`);
  });

  it('names the same test command as the continuous integration', async () => {
    const command = /npx -y pnpm@[0-9.]+ test/.exec(await read('README.md'))?.[0] ?? 'none';
    expect(await read('.ci/run')).toContain(command);
  });

  it('links only to what exists', async () => {
    const readme = await read('README.md');
    const files = [...readme.matchAll(/\]\(([^)#]+)(#[^)]*)?\)/g)].map((match) => match[1] ?? '');
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) await expect(read(file), file).resolves.toBeTypeOf('string');
  });
});

describe('docs/errors.md', () => {
  it('has every code of the client with its meaning', async () => {
    const document = await read('docs/errors.md');
    for (const [code, meaning] of Object.entries(clientErrorCodes))
      expect(document).toContain(`| \`${code}\` | ${meaning} |`);
  });
});
