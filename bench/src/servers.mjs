// @ts-check
// Starts a server under measurement, connects to it, and leaves nothing behind: neither process nor scratch directory.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openLines, openWebSocket, withResolvers } from './wire.mjs';

/**
 * @template T
 * @typedef {import('./wire.mjs').Resolvers<T>} Resolvers
 */

/**
 * @typedef {'ws' | 'stdio'} TransportName
 * @typedef {{ name: 'ours' | 'reference', command: string, args: string[],
 *   env?: Record<string, string> }} ServerSpec
 * @typedef {{ wire: import('./wire.mjs').Wire, directory: string, stop: () => Promise<void>,
 *   explain: (error: unknown) => Promise<unknown> }} RunningServer  `explain`: the server's end instead, if it is behind the error
 */

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 3_000;
/** An error on the wire is often the first sign of a server's end; its exit code and last words come a little later. */
const LAST_WORDS_MS = 50;
const EXPLAIN_TIMEOUT_MS = 300;
const STDERR_KEPT_BYTES = 2_000;

// What is still there; the exit handler removes what an interrupted run leaves.
/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();
/** @type {Set<string>} */
const directories = new Set();

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  for (const directory of directories) removeDirectory(directory);
});
for (const [signal, code] of /** @type {[NodeJS.Signals, number][]} */ ([
  ['SIGINT', 130],
  ['SIGTERM', 143],
])) {
  process.on(signal, () => process.exit(code));
}

/** @param {string} directory */
function removeDirectory(directory) {
  directories.delete(directory);
  rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
}

/**
 * The command of our server.
 * @param {string} mainPath its built entry point
 * @returns {ServerSpec}
 */
export function oursAt(mainPath) {
  return { name: 'ours', command: process.execPath, args: [mainPath] };
}

/**
 * The command of the reference server.
 * @param {import('./reference.mjs').Reference} reference
 * @returns {ServerSpec}
 */
export function referenceAt({ binary, home }) {
  return { name: 'reference', command: binary, args: ['exec-server'], env: { CODEX_HOME: home } };
}

/**
 * Starts a fresh server, connects and introduces the client.
 * @param {ServerSpec} spec
 * @param {TransportName} transport
 * @returns {Promise<RunningServer>}
 */
export async function startServer(spec, transport) {
  const directory = await mkdtemp(join(tmpdir(), 'exec-server-bench-'));
  directories.add(directory);
  const child = spawn(spec.command, [...spec.args, '--listen', transport === 'ws' ? 'ws://127.0.0.1:0' : 'stdio'], {
    cwd: directory,
    env: { ...process.env, ...spec.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  children.add(child);
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
    complaints = (complaints + text).slice(-STDERR_KEPT_BYTES);
  });
  /** @type {import('./wire.mjs').Wire | undefined} */
  let wire;
  /** Rejects when the server cannot be started or ends before it is told to. @type {Resolvers<never>} */
  const ended = withResolvers();
  /** @param {string} how */
  const reportEnd = (how) => {
    const error = new Error(`the server ${how}${complaints ? `; its last words: ${complaints.trim()}` : ''}`);
    ended.reject(error);
    wire?.fail(error);
  };
  child.on('error', (error) => {
    children.delete(child);
    reportEnd(`did not start: ${error.message}`);
  });
  child.on('exit', (code, signal) => {
    children.delete(child);
    setTimeout(() => reportEnd(`ended by itself (${signal ?? `code ${code}`})`), LAST_WORDS_MS);
  });

  /** @param {unknown} sign */
  const explain = (sign) =>
    Promise.race([ended.promise.catch((/** @type {unknown} */ end) => end), sleep(EXPLAIN_TIMEOUT_MS, sign)]);

  const stop = async () => {
    wire?.fail(new Error('the measure is over'));
    child.stdin.end();
    if (transport === 'ws') child.kill('SIGTERM');
    if (children.has(child) && !(await endsWithin(child, STOP_TIMEOUT_MS))) {
      child.kill('SIGKILL');
      await endsWithin(child, STOP_TIMEOUT_MS);
    }
    children.delete(child);
    // Should something else hold the other ends, they do not keep this program from ending.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    removeDirectory(directory);
  };

  try {
    const timeout = AbortSignal.timeout(START_TIMEOUT_MS);
    /** @type {Resolvers<never>} */
    const late = withResolvers();
    timeout.addEventListener('abort', () => late.reject(new Error(`no server after ${START_TIMEOUT_MS / 1000} s`)));
    const connect = async () => {
      wire =
        transport === 'stdio'
          ? openLines(child.stdin, child.stdout)
          : await openWebSocket(await firstLine(child.stdout), START_TIMEOUT_MS);
      await wire.hello();
      return wire;
    };
    return { wire: await Promise.race([connect(), ended.promise, late.promise]), directory, stop, explain };
  } catch (error) {
    const reason = await explain(error);
    await stop();
    throw reason;
  }
}

/**
 * The address that a listening server prints; later lines are read and dropped.
 * @param {import('node:stream').Readable} output
 * @returns {Promise<string>}
 */
async function firstLine(output) {
  /** @type {Resolvers<string>} */
  const line = withResolvers();
  let text = '';
  output.setEncoding('utf8').on('data', (/** @type {string} */ piece) => {
    if (text.includes('\n')) return;
    text += piece;
    const at = text.indexOf('\n');
    if (at >= 0) line.resolve(text.slice(0, at).trim());
  });
  output.on('end', () => line.reject(new Error('the server printed no address')));
  const address = await line.promise;
  if (!/^wss?:\/\//.test(address)) throw new Error(`the server's first line is no address: ${address.slice(0, 200)}`);
  return address;
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {number} timeoutMs
 */
async function endsWithin(child, timeoutMs) {
  if (child.exitCode !== null || child.signalCode !== null) return true;
  const timer = new AbortController();
  const outcome = await Promise.race([
    once(child, 'exit', { signal: timer.signal }).then(() => true),
    sleep(timeoutMs, false, { signal: timer.signal }),
  ]);
  timer.abort();
  return outcome;
}
