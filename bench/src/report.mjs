// @ts-check
// Numbers into words: medians, ratios, the table, and the line that names machine and commit.

import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release } from 'node:os';

/**
 * @typedef {import('./measures.mjs').Measure} Measure
 * @typedef {import('./measures.mjs').Outcome} Outcome
 * @typedef {{ median: number, p95: number, samples: number, rounds: number[], missingBytes: number }} Summary
 *   `p95`: the time that 95 of 100 samples stay within; of a rate, the value that 95 of 100 reach. `rounds`: the median of each.
 * @typedef {{ transport: string, measure: Measure, ours?: Summary, reference?: Summary, failures: string[] }} Row
 * @typedef {{ node: string, platform: string, cores: number, cpu: string, load: number, commit: string, date: string }} Machine
 */

/**
 * @param {readonly number[]} values
 * @param {number} quantile 0 to 1, by nearest rank
 */
function quantileOf(values, quantile) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] ?? Number.NaN;
}

/** @param {readonly number[]} values */
export function medianOf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * All rounds of one measure on one server.
 * @param {Measure} measure
 * @param {readonly Outcome[]} outcomes
 * @returns {Summary}
 */
export function summarize(measure, outcomes) {
  const samples = outcomes.flatMap((outcome) => outcome.samples);
  return {
    median: medianOf(samples),
    p95: quantileOf(samples, measure.better === 'lower' ? 0.95 : 0.05),
    samples: samples.length,
    rounds: outcomes.map((outcome) => medianOf(outcome.samples)),
    missingBytes: outcomes.reduce((sum, outcome) => sum + (outcome.missingBytes ?? 0), 0),
  };
}

/**
 * How many times better than the reference ours is: above 1 is better for times and for rates.
 * @param {Row} row
 */
export function ratioOf({ measure, ours, reference }) {
  if (!ours || !reference) return undefined;
  return measure.better === 'lower' ? reference.median / ours.median : ours.median / reference.median;
}

/** @param {number} value */
export function figure(value) {
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  return value >= 1 ? value.toFixed(2) : value.toFixed(3);
}

/** @param {string[]} args */
function git(args) {
  try {
    return execFileSync('git', args, { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'ignore'], timeout: 10_000 })
      .toString()
      .trim();
  } catch {
    return undefined; // not a checkout, or one without a commit
  }
}

/** @returns {Machine} */
export function describeMachine() {
  const commit = git(['rev-parse', '--short', 'HEAD']);
  return {
    node: process.version,
    platform: `${process.platform} ${process.arch} ${release()}`,
    cores: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown processor',
    load: loadavg()[0] ?? 0,
    commit: commit ? `commit ${commit}${git(['status', '--porcelain']) ? ' with changes' : ''}` : 'no commit',
    date: new Date().toISOString(),
  };
}

/** @param {Machine} machine */
export function machineLine({ node, platform, cores, cpu, load, commit, date }) {
  return `node ${node}, ${cores} cores of ${cpu}, ${platform}, load ${load.toFixed(1)}, ${commit}, ${date}`;
}

/**
 * @param {readonly string[][]} lines the first is the heading; the first column is set left, the others right
 */
function align(lines) {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) => line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))))
    .map((cells) => cells.join('  ').trimEnd())
    .join('\n');
}

/**
 * The table of one transport.
 * @param {string} transport
 * @param {readonly Row[]} rows
 */
export function table(transport, rows) {
  const lines = [['', 'unit', 'ours', 'p95', 'reference', 'p95', 'ratio', ...(transport === 'ws' ? ['guide'] : [])]];
  /** @type {string[]} */
  const notes = [];
  for (const row of rows) {
    const { measure, ours, reference } = row;
    const ratio = ratioOf(row);
    /** @param {Summary | undefined} summary */
    const cells = (summary) => (summary ? [figure(summary.median), figure(summary.p95)] : ['-', '-']);
    lines.push([
      measure.title,
      measure.unit,
      ...cells(ours),
      ...cells(reference),
      ratio === undefined ? '-' : `${figure(ratio)}x`,
      ...(transport === 'ws' ? [`${measure.guide}x`] : []),
    ]);
    for (const [name, summary] of Object.entries({ ours, reference })) {
      if (summary?.missingBytes) notes.push(`${measure.name}, ${name}: ${summary.missingBytes} bytes MISSING`);
    }
    notes.push(...row.failures);
  }
  return [align(lines), ...notes.map((note) => `! ${note}`)].join('\n');
}
