/**
 * Master descriptors of live terminals. The addon does not make them close-on-exec and Node cannot, so each way to
 * start a child has its own remedy here. A child that holds a master could read what is meant for the server, and
 * would keep the terminal of another process alive.
 */
import { closeSync, openSync } from 'node:fs';

const live = new Map<number, object>();

export function liveMasterFds(): readonly number[] {
  return [...live.keys()];
}

export function masterOpened(fd: number, owner: object): void {
  live.set(fd, owner);
}

/** The number may already be a newer terminal's; then nothing changes. */
export function masterClosed(fd: number, owner: object): void {
  if (live.get(fd) === owner) live.delete(fd);
}

/** An element of `stdio` of `node:child_process`. */
export type StdioEntry = 'ignore' | 'pipe' | number;

/**
 * Calls `spawn` with `stdio` extended such that the child has /dev/null under the number of each live master. Without
 * terminals `stdio` is passed as it is. Throws what opening /dev/null throws.
 */
export function withoutMasters<T>(stdio: StdioEntry[], spawn: (stdio: StdioEntry[]) => T): T {
  if (live.size === 0) return spawn(stdio);
  const nothing = openSync('/dev/null', 'r+');
  try {
    const covered = [...stdio];
    for (const fd of live.keys()) {
      // `ignore` leaves a number above 2 as it is.
      while (covered.length <= fd) covered.push('ignore');
      covered[fd] = nothing;
    }
    return spawn(covered);
  } finally {
    closeSync(nothing);
  }
}

/** Filling this many takes a few milliseconds. */
const MOST_FILLERS = 1024;

/**
 * Calls `fork` of the addon with no unused number below the highest live master. Its child marks inherited descriptors
 * close-on-exec one by one and stops at the first unused number above 15; a master beyond that would stay open in it.
 * That is how it ends where more than `MOST_FILLERS` numbers are unused, or descriptors run out.
 */
export function withoutGaps<T>(fork: () => T): T {
  const fillers = fillGaps(Math.max(-1, ...live.keys()));
  try {
    return fork();
  } finally {
    closeAll(fillers);
  }
}

function fillGaps(highest: number): number[] {
  const fillers: number[] = [];
  try {
    for (let fd = -1; fd < highest; fillers.push(fd)) {
      if (fillers.length === MOST_FILLERS) throw new Error('too many unused numbers');
      fd = openSync('/dev/null', 'r');
    }
  } catch {
    // The start matters more than what its child inherits.
    closeAll(fillers.splice(0));
  }
  return fillers;
}

function closeAll(fds: readonly number[]): void {
  for (const fd of fds) closeSync(fd);
}
