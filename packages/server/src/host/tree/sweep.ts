/** Ends whatever still carries a mark of one session, wherever it went: the last thing done for a session that is over. */
import type { Clock } from '../../clock.js';
import { signalMember } from './killTree.js';
import { MARK_VARIABLE } from './mark.js';
import { isDead, listPids, procView, readArgv, readEnviron, readStat, visitPids } from './procfs.js';
import type { TreeMember } from './findTree.js';

/** Looks at the host; a tree that forks faster than it is killed is given up after so many. */
const MOST_LOOKS = 40;
/** Between two looks, for the killed to go. */
const PAUSE_MS = 10;

/** Resolves when a look finds nobody, or none of those found can be signalled. Without /proc nothing is done. */
export async function sweepLife(life: string, clock: Clock): Promise<void> {
  if (procView() === 'none') return;
  const marked = new RegExp(`(?:^|\\0)${MARK_VARIABLE}=(?:[0-9A-Za-z_-]*:)*(${life}-[0-9]+)(?=[:\\0]|$)`);
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    const found = await lookFor(marked);
    const sent = found.map(({ member, mark }) => signalMember(member, mark, 'SIGKILL'));
    if (!sent.includes('sent')) return;
    await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
  }
}

interface Found {
  readonly member: TreeMember;
  readonly mark: string;
}

async function lookFor(marked: RegExp): Promise<Found[]> {
  const found: Found[] = [];
  await visitPids(await listPids(), (pid) => {
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
