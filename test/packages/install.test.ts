import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Installed, install } from './rig/installed.js';
import { closureOf, packageNames, root, scoped } from './rig/workspace.js';

const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const nodeTypes = join(root, 'node_modules', '@types');

/** A line of each package that its types have to carry. */
const uses = {
  protocol: `import { limits, type Transport } from '@exec-server/protocol';
import { requestSchemas } from '@exec-server/protocol/schemas';
export const lease: number = limits.SESSION_LEASE_MS; export const label = (transport: Transport): string => transport.label; export { requestSchemas };`,
  server: `import { createExecServer, type ExecServer, type Gauges } from '@exec-server/server';
export const server: ExecServer = createExecServer(); export const gauges: Gauges = server.gauges();`,
  client: `import { connect, isClientError, type RunResult } from '@exec-server/client';
const client = await connect({ url: 'ws://127.0.0.1:1', token: async () => 'secret' });
export const result: RunResult = await client.run(['true']); export const code: number | null = result.exitCode; export { isClientError };`,
  testing: `import { startFaultProxy, type FaultRule } from '@exec-server/testing';
const rule: FaultRule = { when: { direction: 'down', aboutEveryBytes: 50_000 }, do: 'cut', times: 5 };
export const proxy = startFaultProxy({ target: 'ws://127.0.0.1:1', rules: [rule] });`,
  cli: `import { serverCommand } from '@exec-server/cli';
export const command: readonly [string, ...string[]] = serverCommand();`,
} as const;

describe.each(packageNames)('%s in an empty folder, by npm alone', (name) => {
  let user: Installed;
  beforeAll(async () => {
    user = await install(...closureOf(name));
  });
  afterAll(() => user.remove());

  it('is imported as it is named', async () => {
    await user.write('use.mjs', `import * as all from '${scoped(name)}'; console.log(Object.keys(all).length);`);
    expect(Number(await user.run('node', 'use.mjs'))).toBeGreaterThan(0);
  });

  it.each(['nodenext', 'bundler'])('has types for a strict program under %s', async (moduleResolution) => {
    await user.write('use.mts', uses[name]);
    const module = moduleResolution === 'bundler' ? 'esnext' : 'nodenext';
    await user.write(
      `tsconfig.${moduleResolution}.json`,
      JSON.stringify({
        compilerOptions: {
          module,
          moduleResolution,
          target: 'es2022',
          lib: ['es2023', 'esnext.disposable'],
          types: ['node'],
          typeRoots: [nodeTypes],
          strict: true,
          noEmit: true,
          skipLibCheck: false,
        },
        files: ['use.mts'],
      }),
    );
    expect(await user.run('node', compiler, '-p', `tsconfig.${moduleResolution}.json`)).toBe('');
  });
});

describe('the client in an empty folder', () => {
  it('has types for a page, where there are none of Node', async () => {
    const user = await install(...closureOf('client'));
    try {
      await user.write('page.ts', uses.client);
      const compilerOptions = {
        module: 'esnext',
        moduleResolution: 'bundler',
        customConditions: ['browser'],
        target: 'es2022',
        lib: ['es2023', 'esnext.disposable', 'dom'],
        types: [],
        strict: true,
        noEmit: true,
        skipLibCheck: false,
      };
      await user.write('tsconfig.page.json', JSON.stringify({ compilerOptions, files: ['page.ts'] }));
      expect(await user.run('node', compiler, '-p', 'tsconfig.page.json')).toBe('');
    } finally {
      await user.remove();
    }
  });
});

describe('the packages together', () => {
  let user: Installed;
  beforeAll(async () => {
    user = await install(...packageNames);
  });
  afterAll(() => user.remove());

  it('have the command under its name, which runs a command', async () => {
    expect(await user.run('exec-server', '--version')).toMatch(/^\d+\.\d+\.\d+$/);
    expect(await user.run('exec-server', 'run', '--', 'sh', '-c', 'echo from $0', 'here')).toBe('from here');
  });

  it.each(['stdio-agent/agent.mjs', 'remote/remote.mjs', 'embedded/embedded.mjs'])(
    'run the program of the README as it stands: %s',
    async (path) => {
      const name = basename(path);
      await user.write(name, await readFile(join(root, 'examples', path), 'utf8'));
      expect(await user.run('node', name)).toMatch(
        /exitCode: 143,\s+signal: 'SIGTERM'|each number came once, in order|nothing is left to wait for/,
      );
    },
  );

  it('say what a host without the terminal library lacks', async () => {
    expect(await user.run('exec-server', 'doctor')).toMatch(/no {2}terminal .*@lydell\/node-pty/);
    await expect(user.run('exec-server', 'run', '--tty', '--', 'true')).rejects.toMatchObject({
      stderr: expect.stringMatching(/terminal.*@lydell\/node-pty/) as unknown,
    });
  });
});
