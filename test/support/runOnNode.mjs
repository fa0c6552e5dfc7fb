// Runs the tests on another version of Node, which the npm registry has as a package: `pnpm test:node 24 [paths…]`.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const [version, ...rest] = process.argv.slice(2);
if (version === undefined || !/^\d+(\.\d+){0,2}$/.test(version)) {
  console.error('usage: pnpm test:node VERSION [vitest arguments]     for example: pnpm test:node 24');
  process.exit(2);
}

function run(program, args, options) {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: 'inherit', ...options });
  if (error !== undefined) console.error(String(error));
  if (status !== 0) process.exit(status ?? 1);
}

const folder = join(root, 'node_modules', '.cache', `node-${version}`);
const name = `node-${process.platform}-${process.arch}`;
mkdirSync(folder, { recursive: true });
run('npm', [
  'install',
  '--prefix',
  folder,
  '--no-save',
  '--no-audit',
  '--no-fund',
  '--prefer-offline',
  `${name}@${version}`,
]);

const bin = join(folder, 'node_modules', name, 'bin');
const node = join(bin, 'node');
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` };
run(node, ['--version'], { env });
run(
  node,
  [
    join(root, 'node_modules', 'vitest', 'vitest.mjs'),
    'run',
    '--root',
    '.',
    '--config',
    'test/vitest.config.ts',
    ...rest,
  ],
  { env },
);
