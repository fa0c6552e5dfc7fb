// @ts-check
// The measures of file work, and of echoes beside it.

import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { inFlight, oneByOne, scaled, SETTLE_MS } from './samples.mjs';

/**
 * @typedef {import('./measures.mjs').Bench} Bench
 * @typedef {import('./measures.mjs').Echo} Echo
 * @typedef {import('./measures.mjs').Measure} Measure
 * @typedef {import('./measures.mjs').Outcome} Outcome
 */

const KIB = 1024;
const MIB = 1024 * KIB;
const SMALL_BYTES = 4 * KIB;
const SMALL_READS = 1_000;
/** The reference can lock up for good when several hundred are sent at once. */
const SMALL_AT_A_TIME = 64;
const LARGE_READS = 200;
const SMALL_FILES = 16;
const IN_FLIGHT = 32;
const BLOCK_BYTES = MIB;
const BLOCKS_IN_FLIGHT = 4;
const BLOCK_FILE_BYTES = 64 * MIB;

/**
 * A file of random bytes in the folder of the bench; gives its URI.
 * @param {Bench} bench
 * @param {string} name
 * @param {number} bytes
 */
async function makeFile({ directory }, name, bytes) {
  const path = join(directory, name);
  await writeFile(path, randomBytes(bytes));
  return pathToFileURL(path).href;
}

/**
 * Reads a whole file, and fails when it has not this many bytes.
 * @param {Bench} bench
 * @param {string} path
 * @param {number} bytes
 */
async function readWhole({ wire }, path, bytes) {
  const read = await wire.callForBytes('fs/readFile', { path });
  if (read !== bytes) throw new Error(`fs/readFile answered with ${read} bytes of ${bytes}`);
}

/**
 * Echoes one after another until so many reads are done, and this several times over. Beside 200 reads sent at once a server
 * that answers in order has one echo.
 * @param {(bench: Bench) => Promise<Echo>} openEcho
 * @param {Bench} bench
 * @param {{ reads: number, atATime: number, bytes: number, bursts: number }} load
 * @returns {Promise<Outcome>}
 */
async function echoBeside(openEcho, bench, { reads, atATime, bytes, bursts }) {
  const path = await makeFile(bench, 'load', bytes);
  const { once, close } = await openEcho(bench);
  await inFlight(20, 4, () => readWhole(bench, path, bytes));
  await sleep(SETTLE_MS);
  /** @type {number[]} */
  const samples = [];
  for (let burst = 0; burst < bursts; burst++) {
    const progress = { left: reads };
    const load = inFlight(reads, atATime, async () => {
      await readWhole(bench, path, bytes);
      progress.left -= 1;
    });
    const echoes = async () => {
      while (progress.left > 0) samples.push(await once());
    };
    await Promise.all([load, echoes()]);
  }
  await close();
  return { samples };
}

/**
 * @param {Bench} bench
 * @returns {Promise<Outcome>}
 */
async function smallReads(bench) {
  const paths = await Promise.all(
    Array.from({ length: SMALL_FILES }, (_, index) => makeFile(bench, `small-${index}`, SMALL_BYTES)),
  );
  /** @param {number} index */
  const one = (index) => readWhole(bench, paths[index % paths.length] ?? '', SMALL_BYTES);
  await inFlight(500, IN_FLIGHT, one);
  await sleep(SETTLE_MS);
  const total = scaled(5_000, bench.scale, 500);
  const begin = performance.now();
  await inFlight(total, IN_FLIGHT, one);
  return { samples: [total / ((performance.now() - begin) / 1000)] };
}

/**
 * @param {Bench} bench
 * @returns {Promise<Outcome>}
 */
async function blocks(bench) {
  const { wire } = bench;
  const size = scaled(BLOCK_FILE_BYTES / BLOCK_BYTES, bench.scale, 8) * BLOCK_BYTES;
  const path = await makeFile(bench, 'blocks', size);
  const once = async () => {
    const begin = performance.now();
    await wire.call('fs/open', { handleId: 'bench', path });
    let bytes = 0;
    await inFlight(size / BLOCK_BYTES, BLOCKS_IN_FLIGHT, async (index) => {
      const offset = index * BLOCK_BYTES;
      const read = await wire.callForBytes('fs/readBlock', { handleId: 'bench', offset, len: BLOCK_BYTES });
      bytes += read;
    });
    await wire.call('fs/close', { handleId: 'bench' });
    return { megabytesPerSecond: bytes / 1e6 / ((performance.now() - begin) / 1000), missingBytes: size - bytes };
  };
  await once();
  await sleep(SETTLE_MS);
  const { megabytesPerSecond, missingBytes } = await once();
  return { samples: [megabytesPerSecond], missingBytes };
}

/**
 * @param {Bench} bench
 * @returns {Promise<Outcome>}
 */
async function writes({ wire, directory, scale }) {
  const dataBase64 = randomBytes(KIB).toString('base64');
  let count = 0;
  const once = async () => {
    count += 1;
    const path = pathToFileURL(join(directory, `written-${count % SMALL_FILES}`)).href;
    const begin = performance.now();
    await wire.call('fs/writeFile', { path, dataBase64 });
    return performance.now() - begin;
  };
  await oneByOne(100, once);
  await sleep(SETTLE_MS);
  return { samples: await oneByOne(scaled(500, scale, 50), once) };
}

/**
 * @param {(bench: Bench) => Promise<Echo>} openEcho
 * @returns {readonly Measure[]}
 */
export function fileMeasures(openEcho) {
  return [
    {
      name: 'echo-small',
      title: 'echo beside 1,000 reads of 4 KiB',
      unit: 'ms',
      better: 'lower',
      guide: 0.5,
      run: (bench) =>
        echoBeside(openEcho, bench, {
          reads: SMALL_READS,
          atATime: SMALL_AT_A_TIME,
          bytes: SMALL_BYTES,
          bursts: scaled(10, bench.scale, 1),
        }),
    },
    {
      name: 'echo-large',
      title: 'echo beside 200 reads of 1 MiB',
      unit: 'ms',
      better: 'lower',
      guide: 50,
      run: (bench) =>
        echoBeside(openEcho, bench, {
          reads: LARGE_READS,
          atATime: LARGE_READS,
          bytes: MIB,
          bursts: scaled(3, bench.scale, 1),
        }),
    },
    {
      name: 'reads',
      title: 'reads of 4 KiB, 32 in flight',
      unit: '1/s',
      better: 'higher',
      guide: 0.2,
      run: smallReads,
    },
    { name: 'blocks', title: '64 MiB by blocks of 1 MiB', unit: 'MB/s', better: 'higher', guide: 0.35, run: blocks },
    { name: 'write', title: 'fs/writeFile, 1 KiB', unit: 'ms', better: 'lower', guide: 0.25, run: writes },
  ];
}
