/** The same requests to the reference and to our server: the same answers and files, but for a table of differences. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { HttpFixture } from '../support/httpFixture.js';
import { compare, type Comparison } from './differential/compare.js';
import { converse, type Place } from './differential/converse.js';
import { handleSequence, pathSequence } from './differential/fsSteps.js';
import { normalised } from './differential/normalise.js';
import { processSequence } from './differential/processSteps.js';
import { scriptedSequences } from './differential/scripted.js';
import type { Step } from './differential/step.js';
import { type ServerName, startServer } from './rig/servers.js';

/** Fixed, so that a run proves the same every time; another one looks elsewhere. */
const seed = Number(process.env['EXEC_SERVER_TEST_SEED'] ?? 20_261);
/** Multiplies the number of sequences. A server holds 1,024 sessions, which bounds those of one test. */
const scale = Number(process.env['EXEC_SERVER_INTEROP_SCALE'] ?? 1);

interface Servers {
  readonly reference: Place;
  readonly ours: Place;
}

/** Two fresh servers, each with a folder whose path is as long as the other's. */
async function withServers(use: (servers: Servers) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'exec-server-differential-'));
  const web = await HttpFixture.start();
  const stops: (() => Promise<void>)[] = [() => web[Symbol.asyncDispose]()];
  const place = async (name: ServerName): Promise<Place> => {
    const folder = join(root, name.padEnd(9, '_'));
    await mkdir(folder);
    const { program, url } = await startServer(name, folder);
    stops.push(() => program.stop());
    return { url, folder, web: web.url };
  };
  try {
    await use({ reference: await place('reference'), ours: await place('ours') });
  } finally {
    await Promise.all(stops.map((stop) => stop()));
    await rm(root, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function compared({ reference, ours }: Servers, steps: readonly Step[]): Promise<Comparison> {
  const [theirs, own] = await Promise.all([converse(reference, steps), converse(ours, steps)]);
  return compare(steps, normalised(theirs), normalised(own));
}

/** How often each difference of the table was met. */
class Tally {
  readonly #counts = new Map<string, number>();

  add(names: readonly string[]): void {
    for (const name of names) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  get text(): string {
    return [...this.#counts].map(([name, count]) => `${name} ×${count}`).join(', ');
  }
}

const generated = [
  { what: 'paths', sequences: pathSequence, count: 150, offset: 0 },
  { what: 'paths, again', sequences: pathSequence, count: 150, offset: 1 },
  { what: 'handles', sequences: handleSequence, count: 200, offset: 2 },
  { what: 'processes', sequences: processSequence, count: 75, offset: 3 },
  { what: 'processes, again', sequences: processSequence, count: 75, offset: 4 },
];

describe.skipIf(inject('referenceBinary') === null)('the reference and ours agree', () => {
  it.concurrent.each(generated)('on generated sequences about $what', async ({ what, sequences, count, offset }) => {
    const tally = new Tally();
    const numRuns = Math.min(1000, Math.round(count * scale));
    let runs = 0;
    await withServers(async (servers) => {
      const agrees = fc.asyncProperty(sequences, async (steps) => {
        const { unexplained, explained } = await compared(servers, steps);
        tally.add(explained);
        runs += 1;
        expect(unexplained).toBeUndefined();
      });
      await fc.assert(agrees, { numRuns, seed: seed + offset, interruptAfterTimeLimit: 55_000 });
    });
    process.stderr.write(
      `${runs} sequences about ${what}, seed ${seed + offset}; differences of the table: ${tally.text}\n`,
    );
  });

  it.concurrent('on scripted sequences', async () => {
    await withServers(async (servers) => {
      for (const { what, steps } of scriptedSequences) {
        const comparison = await compared(servers, steps);
        expect(comparison.unexplained, what).toBeUndefined();
        expect(comparison.steps, what).toBe(steps.length);
      }
    });
  });
});
