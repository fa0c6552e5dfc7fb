import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';

const source = (path: string): string => fileURLToPath(new URL(`../packages/${path}`, import.meta.url));

/** Full counts and long soaks, run by `pnpm test:extended`; the short form stays under five minutes on two cores. */
const full = process.env['EXEC_SERVER_TEST_SCALE'] === 'full';

export default defineConfig({
  resolve: {
    alias: [
      { find: /^@exec-server\/protocol\/schemas$/, replacement: source('protocol/src/schemas.ts') },
      { find: /^#host$/, replacement: source('client/src/transport/nodeHost.ts') },
      { find: /^@exec-server\/(protocol|server|client|testing)$/, replacement: source('$1/src/index.ts') },
    ],
  },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/interop/**', 'test/packages/**'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: full ? 300_000 : 60_000,
    hookTimeout: 30_000,
  },
});
