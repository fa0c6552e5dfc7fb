/** Ends whatever still carries a mark of one session, wherever it went: the last thing done for a session that is over. */
import type { Clock } from '../../clock.js';
import { errnoCode } from '../startErrors.js';
import { signalMember } from './killTree.js';
import { MARK_VARIABLE } from './mark.js';
import { isDead, listPids, procView, readArgv, readEnviron, readStat, visitPids } from './procfs.js';
import type { TreeMember } from './findTree.js';

/** Looks at the host; a tree that forks faster than it is killed is given up after so many. */
const MOST_LOOKS = 40;
/** Between two looks, for the killed to go. */
const PAUSE_MS = 10;

/**
 * Resolves when a look finds nobody, or none of those found can be signalled. Without /proc nothing is done. A list that
 * the host refuses (no descriptor is free) is asked for again; rejects with the refusal when the last look meets it.
 */
export async function sweepLife(life: string, clock: Clock, list: typeof listPids = listPids): Promise<void> {
  if (procView() === 'none') return;
  const marked = new RegExp(`(?:^|\\0)${MARK_VARIABLE}=(?:[0-9A-Za-z_-]*:)*(${life}-[0-9]+)(?=[:\\0]|$)`);
  for (let look = 1; look <= MOST_LOOKS; look += 1) {
    try {
      const found = await lookFor(marked, await list());
      const sent = found.map(({ member, mark }) => signalMember(member, mark, 'SIGKILL'));
      if (!sent.includes('sent')) return;
    } catch (error) {
      if (look === MOST_LOOKS || errnoCode(error) === undefined) throw error;
    }
    await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
  }
}

interface Found {
  readonly member: TreeMember;
  readonly mark: string;
}

async function lookFor(marked: RegExp, pids: readonly number[]): Promise<Found[]> {
  const found: Found[] = [];
  await visitPids(pids, (pid) => {
    if (pid === process.pid) return;
    const mark = marked.exec(readEnviron(pid)?.toString('latin1') ?? '')?.[1];
    if (mark === undefined) return;
    const stat = readStat(pid);
    if (stat === undefined || isDead(stat)) return;
    const { startTime, state, session } = stat;
    found.push({ member: { pid, startTime, argv: readArgv(pid), state, session, inGroup: false }, mark });
  });
  return found;
}
