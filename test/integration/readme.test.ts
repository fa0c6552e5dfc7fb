import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { clientErrorCodes, connect } from '@exec-server/client';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8');

const documents = [
  'README.md',
  'docs/protocol.md',
  'docs/recovery.md',
  'docs/errors.md',
  'docs/operating.md',
  'docs/compatibility.md',
  'docs/architecture.md',
  'docs/CONTRIBUTING.md',
];

/** What code hosts make of headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

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
  it('has the examples as they stand, and every program of it is one of them', async () => {
    const readme = await read('README.md');
    const shown = [...readme.matchAll(/<!-- (examples\/\S+) -->\n\n```js\n([\s\S]*?)```/g)];
    expect(shown.map((match) => match[1])).toEqual([
      'examples/stdio-agent/agent.mjs',
      'examples/remote/remote.mjs',
      'examples/embedded/embedded.mjs',
    ]);
    for (const [, path = '', program] of shown) expect(program, path).toBe(await read(path));
    expect([...readme.matchAll(/```(js|ts)\n/g)]).toHaveLength(shown.length);
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

  it.each([
    ['client', '0 apple\npear\n\nhello\n'],
    ['protocol', "[ 'argv' ]\n{ method: 'ping' }"],
    ['cli', 'Linux\n'],
  ])('of the %s package has a program that runs as it stands', async (name, expected) => {
    const [, program = ''] = /```js\n([\s\S]*?)```/.exec(await read(`packages/${name}/README.md`)) ?? [];
    expect(await runInWorkspace(program)).toBe(expected);
  });

  it('of the server package has a program that serves until it is told to stop', async () => {
    const [, program = ''] = /```js\n([\s\S]*?)```/.exec(await read('packages/server/README.md')) ?? [];
    const folder = await mkdtemp(join(root, 'node_modules', '.readme-'));
    try {
      await writeFile(join(folder, 'token'), 'secret\n');
      await writeFile(join(folder, 'program.mjs'), program);
      const env = { TOKEN_FILE: join(folder, 'token') };
      const server = execa(process.execPath, [join(folder, 'program.mjs')], { env, reject: false });
      const { value: url } = await server[Symbol.asyncIterator]().next();
      const client = await connect({ url: String(url), token: 'secret' });
      expect((await client.run(['echo', 'here'])).text()).toBe('here\n');
      await client.close();
      server.kill('SIGTERM');
      expect(await server).toMatchObject({ exitCode: 0, stderr: '' });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('names the same test command as the continuous integration', async () => {
    const command = /npx -y pnpm@[0-9.]+ test/.exec(await read('README.md'))?.[0] ?? 'none';
    expect(await read('.ci/run')).toContain(command);
  });

  it.each(documents)('%s links only to what exists, headings included', async (path) => {
    const text = await read(path);
    for (const [, target = '', , anchor] of text.matchAll(/\]\(([^)#:]*)(#([^)]+))?\)/g)) {
      const file = target === '' ? path : join(dirname(path), target);
      const linked = await read(file);
      if (anchor !== undefined) expect(anchorsOf(linked), `${path} → ${target}#${anchor}`).toContain(anchor);
    }
  });
});

describe('docs/errors.md', () => {
  it('has every code of the client with its meaning', async () => {
    const document = await read('docs/errors.md');
    for (const [code, meaning] of Object.entries(clientErrorCodes))
      expect(document).toContain(`| \`${code}\` | ${meaning} |`);
  });
});
