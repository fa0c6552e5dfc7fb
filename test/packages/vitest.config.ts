import { defineConfig } from 'vitest/config';

/** The packages as users get them; run by `pnpm test:packages`, since it packs, installs and needs a browser. */
export default defineConfig({
  test: {
    include: ['test/packages/**/*.test.ts'],
    globalSetup: ['test/packages/rig/pack.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // npm may fetch dependencies for the first time.
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
