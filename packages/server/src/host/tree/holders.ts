/** Who keeps a pipe from its end: the processes that hold its writing end open, as far as this user may see. */
import { fstatSync, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ifSeen, listPids, readArgv } from './procfs.js';

export interface Holder {
  readonly pid: number;
  /** As `readArgv`. */
  readonly argv: readonly string[];
}

/** Descriptors looked at in one call; most processes have a few dozen. */
const MOST_LINKS = 200_000;
/** About 2 ms of reading. */
const BATCH_LINKS = 256;
const OWNER_WRITES = 0o200;

/** What `countHolders` knows a pipe by; undefined when the descriptor is no pipe. */
export function pipeInode(descriptor: number): string | undefined {
  const stat = fstatSync(descriptor, { bigint: true });
  return stat.isFIFO() ? String(stat.ino) : undefined;
}

/**
 * Processes other than this one that can write to one of the pipes. At least these: descriptors of other users are not
 * seen, nor those beyond the bound, nor one that is on its way inside a socket.
 */
export async function countHolders(pipeInodes: readonly string[]): Promise<Holder[]> {
  const targets = new Set(pipeInodes.map((inode) => `pipe:[${inode}]`));
  const holders: Holder[] = [];
  let links = 0;
  // High numbers first: a holder is mostly younger than the pipe.
  for (const pid of (await listPids()).toReversed()) {
    if (pid === process.pid) continue;
    const folder = `/proc/${pid}/fd`;
    for (const name of ifSeen(() => readdirSync(folder)) ?? []) {
      if (links >= MOST_LINKS) return holders;
      links += 1;
      if (links % BATCH_LINKS === 0) await nextTurn();
      if (!isWriter(`${folder}/${name}`, targets)) continue;
      holders.push({ pid, argv: readArgv(pid) });
      break;
    }
  }
  return holders;
}

function isWriter(link: string, targets: ReadonlySet<string>): boolean {
  const target = ifSeen(() => readlinkSync(link));
  if (target === undefined || !targets.has(target)) return false;
  // The link itself has the mode its file was opened with.
  return ((ifSeen(() => lstatSync(link))?.mode ?? 0) & OWNER_WRITES) !== 0;
}
