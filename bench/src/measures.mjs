// @ts-check
// The measures, of processes here. Each runs against one fresh, connected server, warms it up, and returns its samples.

import { existsSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { fileMeasures } from './fileMeasures.mjs';
import { inFlight, oneByOne, scaled, SETTLE_MS } from './samples.mjs';

/**
 * @typedef {import('./wire.mjs').Wire} Wire
 * @typedef {{ wire: Wire, directory: string, scale: number, parse: boolean }} Bench
 * @typedef {{ samples: number[], missingBytes?: number }} Outcome
 * @typedef {{ once: () => Promise<number>, close: () => Promise<void> }} Echo  `once`: the ms that one write took
 * @typedef {{ name: string, title: string, unit: string, better: 'lower' | 'higher', guide: number,
 *   run: (bench: Bench) => Promise<Outcome>}} Measure  `guide`: ratio to expect over WebSocket
 */

const TRUE = existsSync('/bin/true') ? '/bin/true' : '/usr/bin/true';
const IN_FLIGHT = 32;
const BULK_BYTES = 256 * 1024 * 1024;
/** How long events that were numbered before `closed` may come behind it. */
const STRAGGLERS_MS = 2_000;

/**
 * @param {Bench} bench
 * @param {string} processId
 * @param {string[]} argv
 * @param {boolean} [pipeStdin]
 */
function start({ wire, directory }, processId, argv, pipeStdin = false) {
  return wire.call('process/start', {
    processId,
    argv,
    cwd: pathToFileURL(directory).href,
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
    tty: false,
    pipeStdin,
  });
}

/**
 * Runs `/bin/true`; the time from sending the start to the arrival of `process/closed`.
 * @param {Bench} bench
 */
async function startToClosedMs(bench) {
  const processId = bench.wire.newProcessId();
  const watch = bench.wire.watch(processId);
  const begin = performance.now();
  const [, closedAt] = await Promise.all([start(bench, processId, [TRUE]), watch.closed.promise]);
  bench.wire.unwatch(processId);
  if (watch.exitCode !== undefined && watch.exitCode !== 0) throw new Error(`${TRUE} exited with ${watch.exitCode}`);
  return closedAt - begin;
}

/**
 * @param {Bench} bench
 * @returns {Promise<Outcome>}
 */
async function startToClosed(bench) {
  await oneByOne(20, () => startToClosedMs(bench));
  await sleep(SETTLE_MS);
  return { samples: await oneByOne(scaled(100, bench.scale, 10), () => startToClosedMs(bench)) };
}

/**
 * @param {Bench} bench
 * @returns {Promise<Outcome>}
 */
async function startsPerSecond(bench) {
  const one = () => startToClosedMs(bench);
  await inFlight(64, IN_FLIGHT, one);
  await sleep(SETTLE_MS);
  const total = scaled(400, bench.scale, 64);
  const begin = performance.now();
  await inFlight(total, IN_FLIGHT, one);
  return { samples: [total / ((performance.now() - begin) / 1000)] };
}

/**
 * A `cat` that is written to.
 * @param {Bench} bench
 * @returns {Promise<Echo>}
 */
async function openEcho(bench) {
  const { wire } = bench;
  const processId = wire.newProcessId();
  const watch = wire.watch(processId);
  await start(bench, processId, ['cat'], true);
  let count = 0;
  const once = async () => {
    count += 1;
    const sent = Buffer.from(`${String(count).padStart(63, '.')}\n`);
    let got = '';
    let arrivedAt = 0;
    /** @type {Promise<void>} */
    const echoed = new Promise((resolve) => {
      watch.onChunk = (base64) => {
        arrivedAt = performance.now();
        got += Buffer.from(base64, 'base64').toString();
        if (got.length >= sent.length) resolve();
      };
    });
    const ended = watch.closed.promise.then(() => {
      throw new Error('cat ended by itself');
    });
    const begin = performance.now();
    const reply = wire
      .call('process/write', { processId, chunk: sent.toString('base64'), writeId: `write-${count}` })
      .then((result) => {
        const answer = JSON.stringify(result);
        if (!answer.includes('"accepted"')) throw new Error(`process/write answered ${answer}`);
        return performance.now();
      });
    const [repliedAt] = await Promise.all([reply, Promise.race([echoed, ended])]);
    if (got !== sent.toString())
      throw new Error(`cat answered ${JSON.stringify(got)} to ${JSON.stringify(sent.toString())}`);
    return Math.max(repliedAt, arrivedAt) - begin;
  };
  await oneByOne(20, once);
  const close = async () => {
    await wire.call('process/terminate', { processId });
    await watch.closed.promise;
    wire.unwatch(processId);
  };
  return { once, close };
}

/**
 * @param {Bench} bench
 * @returns {Promise<Outcome>}
 */
async function echo(bench) {
  const { once, close } = await openEcho(bench);
  await sleep(SETTLE_MS);
  const samples = await oneByOne(scaled(200, bench.scale, 10), once);
  await close();
  return { samples };
}

/**
 * @param {Bench} bench
 * @returns {Promise<Outcome>}
 */
async function bulk(bench) {
  /** @param {number} bytes */
  const once = async (bytes) => {
    const { wire } = bench;
    const processId = wire.newProcessId();
    const watch = wire.watch(processId, { countOnly: !bench.parse });
    const begin = performance.now();
    const [, closedAt] = await Promise.all([
      start(bench, processId, ['head', '-c', String(bytes), '/dev/zero']),
      watch.closed.promise,
    ]);
    const endedAt = await Promise.race([watch.complete.promise, sleep(STRAGGLERS_MS, closedAt)]);
    wire.unwatch(processId);
    if (watch.bytes > bytes) throw new Error(`${watch.bytes} bytes arrived where ${bytes} were written`);
    return { megabytesPerSecond: bytes / 1e6 / ((endedAt - begin) / 1000), missingBytes: bytes - watch.bytes };
  };
  await once(scaled(32 * 1024 * 1024, Math.min(1, bench.scale), 4 * 1024 * 1024));
  await sleep(SETTLE_MS);
  const { megabytesPerSecond, missingBytes } = await once(scaled(BULK_BYTES, bench.scale, 8 * 1024 * 1024));
  return { samples: [megabytesPerSecond], missingBytes };
}

/**
 * @param {Bench} bench
 * @returns {Promise<Outcome>}
 */
async function status({ wire, scale }) {
  const once = async () => {
    const begin = performance.now();
    await wire.call('environment/status');
    return performance.now() - begin;
  };
  await oneByOne(500, once);
  await sleep(SETTLE_MS);
  return { samples: await oneByOne(scaled(2000, scale, 50), once) };
}

/** @type {readonly Measure[]} */
export const MEASURES = [
  { name: 'start', title: 'start to closed, /bin/true', unit: 'ms', better: 'lower', guide: 15, run: startToClosed },
  { name: 'rate', title: 'starts, 32 in flight', unit: '1/s', better: 'higher', guide: 2, run: startsPerSecond },
  { name: 'echo', title: 'echo through cat', unit: 'ms', better: 'lower', guide: 150, run: echo },
  { name: 'bulk', title: 'bulk output, 256 MiB', unit: 'MB/s', better: 'higher', guide: 1.5, run: bulk },
  { name: 'status', title: 'round trip, environment/status', unit: 'ms', better: 'lower', guide: 0.8, run: status },
  ...fileMeasures(openEcho),
];
