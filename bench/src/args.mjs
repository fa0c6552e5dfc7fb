// @ts-check
// The command line of the bench. Problems come back as one sentence.

import { parseArgs } from 'node:util';
import { MEASURES } from './measures.mjs';

/**
 * @typedef {import('./servers.mjs').TransportName} TransportName
 * @typedef {{ transports: TransportName[], only: string[], rounds: number, scale: number, ours: string | undefined,
 *   withOurs: boolean, withReference: boolean, parse: boolean, json: boolean, help: boolean }} BenchArgs
 */

const NAMES = MEASURES.map((measure) => measure.name);

export const HELP = `Usage: pnpm bench [options]

Measures our server beside the reference server over the same transport, alternating, and prints medians and ratios.

  --transport ws|stdio|both  transports to measure (default both)
  --only NAME                one measure: ${NAMES.join(', ')}; may be given more than once
  --rounds N                 fresh servers per measure, transport and side (default 3)
  --scale X                  multiplies the counts of every measure: 0.1 for a quick run (default 1)
  --ours PATH                JavaScript entry point of our server (default packages/cli/dist/main.js)
  --no-ours                  measure the reference alone
  --no-reference             measure ours alone; nothing is fetched
  --parse                    bulk: parse every message instead of reading the payload's length off it
  --json                     print one JSON document instead of tables
  --help                     print this text
`;

/** @type {Record<string, { type: 'string' | 'boolean' }>} */
const OPTIONS = {
  transport: { type: 'string' },
  only: { type: 'string' },
  rounds: { type: 'string' },
  scale: { type: 'string' },
  ours: { type: 'string' },
  'no-ours': { type: 'boolean' },
  'no-reference': { type: 'boolean' },
  parse: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean' },
};

/** A command line that cannot be followed. */
export class UsageError extends Error {}

/**
 * @param {readonly string[]} argv without program and script
 * @returns {BenchArgs}
 */
export function parseBenchArgs(argv) {
  // Package managers hand on the `--` that separates their options from ours.
  const args = argv[0] === '--' ? argv.slice(1) : [...argv];
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, tokens: true });
  /** @type {BenchArgs} */
  const result = {
    transports: ['ws', 'stdio'],
    only: [],
    rounds: 3,
    scale: 1,
    ours: undefined,
    withOurs: true,
    withReference: true,
    parse: false,
    json: false,
    help: false,
  };
  for (const token of tokens) {
    if (token.kind === 'positional') throw new UsageError(`Unexpected argument "${token.value}".`);
    if (token.kind === 'option') applyOption(result, token.name, token.rawName, token.value);
  }
  if (!result.withOurs && !result.withReference) throw new UsageError('--no-ours and --no-reference leave no server.');
  return result;
}

/**
 * @param {BenchArgs} result
 * @param {string} name
 * @param {string} rawName as typed
 * @param {string | undefined} value
 */
function applyOption(result, name, rawName, value) {
  const type = Object.hasOwn(OPTIONS, name) ? OPTIONS[name]?.type : undefined;
  if (type === undefined) throw new UsageError(`Unknown option ${rawName}; --help lists the known ones.`);
  if (type === 'boolean') {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value.`);
    if (name === 'no-ours') result.withOurs = false;
    else if (name === 'no-reference') result.withReference = false;
    else if (name === 'parse') result.parse = true;
    else if (name === 'json') result.json = true;
    else result.help = true;
    return;
  }
  if (value === undefined || value === '') throw new UsageError(`${rawName} needs a value.`);
  if (name === 'transport') {
    if (value !== 'ws' && value !== 'stdio' && value !== 'both') {
      throw new UsageError(`--transport is ws, stdio or both, not "${value}".`);
    }
    result.transports = value === 'both' ? ['ws', 'stdio'] : [value];
  } else if (name === 'only') {
    if (!NAMES.includes(value)) throw new UsageError(`--only is one of ${NAMES.join(', ')}, not "${value}".`);
    result.only.push(value);
  } else if (name === 'rounds') {
    result.rounds = Number(value);
    if (!/^\d+$/.test(value) || result.rounds < 1 || result.rounds > 1000) {
      throw new UsageError(`--rounds is a whole number from 1 to 1000, not "${value}".`);
    }
  } else if (name === 'scale') {
    result.scale = Number(value);
    if (!(result.scale > 0 && result.scale <= 100)) {
      throw new UsageError(`--scale is a number above 0 and up to 100, not "${value}".`);
    }
  } else {
    result.ours = value;
  }
}
