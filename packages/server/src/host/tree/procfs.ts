/**
 * What /proc says about processes. A process that vanished, or that this user may not look at, is `undefined`; what
 * concerns this server instead (no descriptors left) is thrown. Reads are synchronous, since one takes microseconds
 * (stat 14, environ 6) and a trip through the thread pool ten times that; a walk over all gives way after each batch.
 */
import { closeSync, openSync, readlinkSync, readSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errnoCode } from '../startErrors.js';

export interface ProcessStat {
  readonly pid: number;
  /** Short name of the program, at most 15 bytes, chosen by itself. */
  readonly name: string;
  /** One letter: R, S, D run or wait, T and t are stopped, Z and X are dead. */
  readonly state: string;
  readonly ppid: number;
  readonly pgrp: number;
  readonly session: number;
  /** Foreground group of its terminal; -1 without one. */
  readonly tpgid: number;
  readonly threads: number;
  /** Clock ticks since boot; with the pid it names one process for good. It survives exec. */
  readonly startTime: number;
  /** A thread of the kernel, which has no environment. */
  readonly kernel: boolean;
}

const UNSEEN = new Set(['ENOENT', 'ESRCH', 'EACCES', 'EPERM']);
const KERNEL_THREAD = 0x00_20_00_00;
/** execve(2) admits no larger environment. */
const MOST_ENVIRON_BYTES = 6 * 1024 * 1024;
const MOST_ARGV_BYTES = 4096;
const MOST_STAT_BYTES = 4096;
/** About 1 to 2 ms of reading. */
const BATCH = 64;

const shared = Buffer.allocUnsafe(64 * 1024);

/** What `read` returns; undefined when the process vanished or may not be looked at. */
export function ifSeen<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (UNSEEN.has(errnoCode(error) ?? '')) return undefined;
    throw error;
  }
}

/** The bytes are good until the next read. */
function readUpTo(path: string, most: number): Buffer {
  const descriptor = openSync(path, 'r');
  try {
    const full: Buffer[] = [];
    let length = 0;
    for (let total = 0; total < most; ) {
      const count = readSync(descriptor, shared, length, Math.min(shared.length - length, most - total), null);
      if (count === 0) break;
      length += count;
      total += count;
      if (length === shared.length) {
        full.push(Buffer.from(shared));
        length = 0;
      }
    }
    const last = shared.subarray(0, length);
    return full.length === 0 ? last : Buffer.concat([...full, last]);
  } finally {
    closeSync(descriptor);
  }
}

export function readStat(pid: number): ProcessStat | undefined {
  const text = ifSeen(() => readUpTo(`/proc/${pid}/stat`, MOST_STAT_BYTES).toString());
  return text === undefined ? undefined : parseStat(text);
}

/** One line of proc_pid_stat(5); undefined when it is not whole. */
export function parseStat(line: string): ProcessStat | undefined {
  // The name may hold blanks and parentheses; nothing after it does.
  const close = line.lastIndexOf(')');
  const fields = line.slice(close + 2).split(' ');
  const number = (index: number): number => Number(fields[index]);
  const stat: ProcessStat = {
    pid: Number.parseInt(line, 10),
    name: line.slice(line.indexOf('(') + 1, close),
    state: fields[0] ?? '',
    ppid: number(1),
    pgrp: number(2),
    session: number(3),
    tpgid: number(5),
    threads: number(17),
    startTime: number(19),
    kernel: (number(6) & KERNEL_THREAD) !== 0,
  };
  return close > 0 && Number.isSafeInteger(stat.startTime) ? stat : undefined;
}

/** Whether it runs nothing any more. The first thread of a process may be over while others go on. */
export function isDead(stat: ProcessStat): boolean {
  return stat.state === 'X' || (stat.state === 'Z' && stat.threads <= 1);
}

/** Its arguments as they are in its memory now, cut at 4 KiB; `[name]` where there are none. Empty when it vanished. */
export function readArgv(pid: number): string[] {
  const text = ifSeen(() => readUpTo(`/proc/${pid}/cmdline`, MOST_ARGV_BYTES).toString());
  if (text !== undefined && text !== '') return (text.endsWith('\0') ? text.slice(0, -1) : text).split('\0');
  const name = readStat(pid)?.name;
  return name === undefined ? [] : [`[${name}]`];
}

/** The environment of its last exec, good until the next read from here. */
export function readEnviron(pid: number): Buffer | undefined {
  return ifSeen(() => readUpTo(`/proc/${pid}/environ`, MOST_ENVIRON_BYTES));
}

/** Whether it has no memory to read: it is dead, or for a moment within an exec or an exit. Arguments are never empty else. */
export function isBetween(pid: number): boolean {
  return ifSeen(() => readUpTo(`/proc/${pid}/cmdline`, 1).length === 0) ?? true;
}

/** Every process that /proc lists. */
export async function listPids(): Promise<number[]> {
  const names = await readdir('/proc');
  return names.map(Number).filter((pid) => Number.isSafeInteger(pid) && pid > 0);
}

/** Calls `visit` for each; other work of the event loop gets its turn in between. */
export async function visitPids(pids: Iterable<number>, visit: (pid: number) => void): Promise<void> {
  let left = BATCH;
  for (const pid of pids) {
    visit(pid);
    left -= 1;
    if (left > 0) continue;
    left = BATCH;
    await nextTurn();
  }
}

/** `own`: other users' processes are hidden. `none`: no /proc, or that of another pid namespace. */
export function procView(): 'whole' | 'own' | 'none' {
  try {
    if (process.platform !== 'linux' || readlinkSync('/proc/self') !== String(process.pid)) return 'none';
  } catch {
    // Not mounted.
    return 'none';
  }
  return readStat(1) === undefined ? 'own' : 'whole';
}
