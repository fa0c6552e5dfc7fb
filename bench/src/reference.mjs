// @ts-check
// Gets the reference, server and agent in one: its npm package, pinned, kept in a cache directory and run as the native
// program inside it (the package's own launcher is a Node script that would stand between us and the server).

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

/**
 * @typedef {{ binary: string, home: string }} Reference
 *   `home`: where it keeps its state, so that the user's own is not touched; it refuses to work fully under the temporary
 *   directory
 */

const run = promisify(execFile);

export const REFERENCE_PACKAGE = '@openai/codex';
export const REFERENCE_VERSION = '0.171.0';

const FETCH_TIMEOUT_MS = 300_000;
const PROBE_TIMEOUT_MS = 20_000;

/** EXEC_SERVER_REFERENCE_CACHE, or the user's cache directory by the customs of the platform. */
function cacheRoot() {
  if (process.env['EXEC_SERVER_REFERENCE_CACHE']) return process.env['EXEC_SERVER_REFERENCE_CACHE'];
  if (process.env['XDG_CACHE_HOME']) return process.env['XDG_CACHE_HOME'];
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Caches');
  if (process.platform === 'win32') return process.env['LOCALAPPDATA'] ?? join(homedir(), 'AppData', 'Local');
  return join(homedir(), '.cache');
}

/**
 * The reference's program, fetched when it is not in the cache yet.
 * @param {(line: string) => void} say told before a download
 * @returns {Promise<Reference>} rejects with a sentence when the reference cannot be had here
 */
export async function findReference(say) {
  const directory = join(cacheRoot(), 'exec-server-bench', `codex-${REFERENCE_VERSION}`);
  if (!existsSync(directory)) {
    say(`fetching ${REFERENCE_PACKAGE}@${REFERENCE_VERSION} with npm into ${directory} (about 430 MB unpacked)`);
    await fetchInto(directory);
  }
  const binary = await findBinary(directory);
  const { stdout } = await run(binary, ['--version'], { timeout: PROBE_TIMEOUT_MS });
  if (!stdout.includes(REFERENCE_VERSION)) {
    throw new Error(`${binary} calls itself "${stdout.trim()}", not ${REFERENCE_VERSION}; remove ${directory}`);
  }
  const home = join(directory, 'home');
  await mkdir(home, { recursive: true });
  return { binary, home };
}

/**
 * Installs beside the final place and renames, so that a broken download is never taken for a good one.
 * @param {string} directory
 */
async function fetchInto(directory) {
  await mkdir(dirname(directory), { recursive: true });
  const staging = await mkdtemp(`${directory}-fetching-`);
  try {
    const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=1'];
    const wanted = `${REFERENCE_PACKAGE}@${REFERENCE_VERSION}`;
    await run('npm', ['install', '--prefix', staging, ...flags, wanted], {
      cwd: staging,
      timeout: FETCH_TIMEOUT_MS,
      shell: process.platform === 'win32',
    }).catch((/** @type {unknown} */ error) => {
      throw new Error(`npm could not install ${wanted}: ${npmReason(error)}`, { cause: error });
    });
    await rename(staging, directory).catch((/** @type {unknown} */ error) => {
      // Another run was faster: its copy is as good.
      if (!existsSync(directory)) throw error;
    });
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/**
 * The line of npm's complaint that says most.
 * @param {unknown} error
 */
function npmReason(error) {
  const lines = String(error instanceof Error ? error.message : error).split('\n');
  const telling = lines.find((line) => /^npm error (?!code|syscall|errno)\S/.test(line)) ?? lines[0] ?? '';
  return telling.replace(/^npm error\s*/, '').trim();
}

/**
 * The native program lies in an optional dependency, one per platform, under `vendor/<target triple>/bin`.
 * @param {string} directory
 */
async function findBinary(directory) {
  const platformPackage = `${REFERENCE_PACKAGE}-${process.platform}-${process.arch}`;
  const require = createRequire(join(directory, 'node_modules', REFERENCE_PACKAGE, 'package.json'));
  let vendor;
  try {
    vendor = join(dirname(require.resolve(`${platformPackage}/package.json`)), 'vendor');
  } catch (cause) {
    throw new Error(`there is no ${platformPackage} in ${directory}`, { cause });
  }
  const program = process.platform === 'win32' ? 'codex.exe' : 'codex';
  for (const triple of await readdir(vendor)) {
    const candidate = join(vendor, triple, 'bin', program);
    if (existsSync(candidate)) return candidate;
  }
  throw new Error(`there is no ${program} under ${vendor}`);
}
