// @ts-check
// `pnpm bench`: our server beside the reference, each measure in alternating rounds on fresh servers.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HELP, parseBenchArgs, UsageError } from './args.mjs';
import { MEASURES } from './measures.mjs';
import { findReference, REFERENCE_PACKAGE, REFERENCE_VERSION } from './reference.mjs';
import { describeMachine, figure, machineLine, medianOf, ratioOf, summarize, table } from './report.mjs';
import { oursAt, referenceAt, startServer } from './servers.mjs';

/**
 * @typedef {import('./args.mjs').BenchArgs} BenchArgs
 * @typedef {import('./measures.mjs').Measure} Measure
 * @typedef {import('./measures.mjs').Outcome} Outcome
 * @typedef {import('./report.mjs').Row} Row
 * @typedef {import('./servers.mjs').ServerSpec} ServerSpec
 * @typedef {import('./servers.mjs').TransportName} TransportName
 */

const BUILT_MAIN = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url));
/** For one run of one measure at scale 1, warm-up included; the slowest takes about ten seconds. */
const RUN_TIMEOUT_MS = 120_000;

/** Progress goes to stderr: stdout has the tables or the JSON alone. @param {string} line */
function say(line) {
  process.stderr.write(`${line}\n`);
}

/** @param {unknown} error */
function textOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * One run of one measure on a fresh server.
 * @param {ServerSpec} spec
 * @param {TransportName} transport
 * @param {Measure} measure
 * @param {BenchArgs} args
 * @returns {Promise<Outcome>}
 */
async function runOnce(spec, transport, measure, { scale, parse }) {
  const server = await startServer(spec, transport);
  const timeoutMs = RUN_TIMEOUT_MS * Math.max(1, scale);
  const timer = setTimeout(() => server.wire.fail(new Error(`not done after ${timeoutMs / 1000} s`)), timeoutMs);
  try {
    return await measure.run({ wire: server.wire, directory: server.directory, scale, parse });
  } catch (error) {
    throw await server.explain(error);
  } finally {
    clearTimeout(timer);
    await server.stop();
  }
}

/**
 * All rounds of one measure over one transport; the side that goes first changes with every round.
 * @param {readonly ServerSpec[]} specs
 * @param {TransportName} transport
 * @param {Measure} measure
 * @param {BenchArgs} args
 * @returns {Promise<Row>}
 */
async function runRounds(specs, transport, measure, args) {
  /** @type {Row} */
  const row = { transport, measure, failures: [] };
  /** @type {Map<ServerSpec, Outcome[]>} */
  const outcomes = new Map(specs.map((spec) => [spec, []]));
  for (let round = 0; round < args.rounds; round++) {
    for (const spec of round % 2 === 0 ? specs : specs.toReversed()) {
      const place = `${measure.name} on ${spec.name} over ${transport}, round ${round + 1} of ${args.rounds}`;
      try {
        const outcome = await runOnce(spec, transport, measure, args);
        outcomes.get(spec)?.push(outcome);
        say(`${place}: ${figure(medianOf(outcome.samples))} ${measure.unit}`);
      } catch (error) {
        row.failures.push(`${place} FAILED: ${textOf(error)}`);
        say(`${place} FAILED: ${textOf(error)}`);
      }
    }
  }
  for (const [spec, done] of outcomes) {
    if (done.length > 0) row[spec.name] = summarize(measure, done);
  }
  return row;
}

/**
 * The servers to measure, ours first.
 * @param {BenchArgs} args
 * @returns {Promise<ServerSpec[]>}
 */
async function collectServers(args) {
  /** @type {ServerSpec[]} */
  const specs = [];
  if (args.withOurs) {
    const main = args.ours === undefined ? BUILT_MAIN : resolve(args.ours);
    if (!existsSync(main)) throw new UsageError(`Our server is not at ${main}: build it, or name it with --ours.`);
    specs.push(oursAt(main));
  }
  if (args.withReference) {
    try {
      specs.push(referenceAt(await findReference(say)));
    } catch (error) {
      say(`The reference server cannot be had here (${textOf(error)}).`);
      if (!args.withOurs) throw new UsageError('There is no server to measure.');
      say('Going on with ours alone.');
    }
  }
  return specs;
}

/** @param {BenchArgs} args */
async function bench(args) {
  const specs = await collectServers(args);
  const machine = describeMachine();
  const measures = MEASURES.filter((measure) => args.only.length === 0 || args.only.includes(measure.name));
  const reference = specs.some((spec) => spec.name === 'reference')
    ? `${REFERENCE_PACKAGE} ${REFERENCE_VERSION}`
    : null;
  /** @type {Row[]} */
  const rows = [];
  for (const transport of args.transports) {
    for (const measure of measures) rows.push(await runRounds(specs, transport, measure, args));
  }
  if (args.json) {
    const results = rows.map(({ transport, measure, ours, reference, failures }) => ({
      transport,
      measure: measure.name,
      unit: measure.unit,
      better: measure.better,
      ours: ours ?? null,
      reference: reference ?? null,
      ratio: ratioOf({ transport, measure, failures, ...(ours && { ours }), ...(reference && { reference }) }) ?? null,
      guide: transport === 'ws' ? measure.guide : null,
      failures,
    }));
    const { rounds, scale, parse } = args;
    process.stdout.write(`${JSON.stringify({ machine, reference, rounds, scale, parse, results }, null, 2)}\n`);
  } else {
    process.stdout.write(`${machineLine(machine)}\n`);
    process.stdout.write(
      `reference: ${reference ?? 'not measured'}; rounds: ${args.rounds}; scale: ${args.scale}${args.parse ? '; parsing' : ''}\n`,
    );
    for (const transport of args.transports) {
      const title = transport === 'ws' ? 'WebSocket' : 'stdio';
      const mine = rows.filter((row) => row.transport === transport);
      process.stdout.write(`\n${title}\n${table(transport, mine)}\n`);
    }
    process.stdout.write('\nMedians; p95 of a rate is its slow end; ratio: times better than the reference.\n');
  }
  // Lost output is as much a failure as a run that did not end.
  const whole = rows.every(
    (row) => row.failures.length === 0 && !row.ours?.missingBytes && !row.reference?.missingBytes,
  );
  process.exitCode = whole ? 0 : 1;
}

try {
  const args = parseBenchArgs(process.argv.slice(2));
  if (args.help) process.stdout.write(HELP);
  else await bench(args);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  say(error.message);
  process.exitCode = 2;
}
