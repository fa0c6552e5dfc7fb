/** Tests that draw random numbers: a failure says the seed, and `EXEC_SERVER_TEST_SEED` repeats a run. */
import { randomInt } from 'node:crypto';
import { describeSeed, seededRandom, type SeededRandom } from '@exec-server/testing';
import { onTestFailed } from 'vitest';

const wished = process.env['EXEC_SERVER_TEST_SEED'];

/** The body of a test. */
export function seeded(body: (random: SeededRandom) => Promise<void>): () => Promise<void> {
  return async () => {
    const random = seededRandom(wished === undefined ? randomInt(2 ** 31) : Number(wished));
    // For a test that runs out of time, whose error is not made here.
    onTestFailed(() => void process.stderr.write(`${describeSeed(random.seed)}\n`));
    try {
      await body(random);
    } catch (error) {
      if (error instanceof Error) error.message += ` [${describeSeed(random.seed)}]`;
      throw error;
    }
  };
}
