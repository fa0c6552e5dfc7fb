import { defineConfig } from 'vitest/config';
import shared from '../vitest.config.js';
import { CompatibilityReporter } from './rig/compatibilityReporter.js';

const { include: _, exclude: __, ...test } = shared.test ?? {};

/** Against the reference itself; run by `pnpm test:interop`, since it needs the reference's program. */
export default defineConfig({
  ...shared,
  test: {
    ...test,
    include: ['test/interop/**/*.test.ts'],
    reporters: ['default', new CompatibilityReporter()],
    globalSetup: ['test/interop/rig/fetchReference.ts'],
    // The first run may download the reference, and a full one waits for long cuts.
    testTimeout: 90_000,
    hookTimeout: 30_000,
  },
});
