/** Limits the kernel sets for this process, read once. Linux only; elsewhere the kernel answers when a limit is hit. */
import { closeSync, openSync, readFileSync } from 'node:fs';

export interface HostLimits {
  /** Longest argument or `NAME=value`, without its NUL. */
  readonly argumentBytes: number;
  /** All of argv, environment and program path, each with its NUL, plus a pointer for each argument and variable. */
  readonly totalBytes: number;
  readonly openFiles: number;
}

/** execve(2): a string takes at most 32 pages, all together a quarter of the stack limit, at least 128 KiB, at most 6 MiB. */
const PAGES_PER_ARGUMENT = 32;
const LEAST_TOTAL_BYTES = 128 * 1024;
const MOST_TOTAL_BYTES = 6 * 1024 * 1024;
/** Bytes of a pointer; Node 20 has no 32-bit Linux builds. */
export const POINTER_BYTES = 8;
const AT_PAGESZ = 6n;

function readOrEmpty(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    // No /proc: the callers have defaults.
    return Buffer.alloc(0);
  }
}

/** The soft limit of a line of /proc/self/limits. */
export function softLimit(limits: string, name: string): number {
  const value = limits
    .split('\n')
    .find((line) => line.startsWith(name))
    ?.slice(name.length)
    .trim()
    .split(/\s+/)[0];
  return value === undefined || value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value);
}

/** The page size of the auxiliary vector: pairs of native 64-bit words. */
export function pageBytes(auxiliaryVector: Buffer): number {
  const words = new BigUint64Array(auxiliaryVector.length >> 3);
  new Uint8Array(words.buffer).set(auxiliaryVector.subarray(0, words.byteLength));
  for (let index = 0; index + 1 < words.length; index += 2) {
    if (words[index] === AT_PAGESZ) return Number(words[index + 1]);
  }
  return 4096;
}

function read(): HostLimits {
  const limits = readOrEmpty('/proc/self/limits').toString();
  const openFiles = softLimit(limits, 'Max open files');
  if (process.platform !== 'linux') {
    return { argumentBytes: Number.POSITIVE_INFINITY, totalBytes: Number.POSITIVE_INFINITY, openFiles };
  }
  const quarter = Math.floor(softLimit(limits, 'Max stack size') / 4);
  return {
    argumentBytes: PAGES_PER_ARGUMENT * pageBytes(readOrEmpty('/proc/self/auxv')) - 1,
    totalBytes: Math.max(LEAST_TOTAL_BYTES, Math.min(MOST_TOTAL_BYTES, quarter)),
    openFiles,
  };
}

let known: HostLimits | undefined;

export function hostLimits(): HostLimits {
  known ??= read();
  return known;
}

/**
 * Whether `count` more descriptors can be opened. Asked before a spawn with Node's own 'pipe' stdio: where descriptors
 * run out inside of it, Node forgets the sockets it has made and they stay open for good.
 */
export function descriptorsLeft(count: number): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < count) opened.push(openSync('/dev/null', 'r'));
    return true;
  } catch {
    // EMFILE or ENFILE.
    return false;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}
