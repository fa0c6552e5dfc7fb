/**
 * The processes that descend from one child: all that carry its mark, all of its session and group, and the children of
 * any of these. Not found is a process that started with a cleared or rewritten environment, left the session, and lost
 * its parent; without privileges nothing ties it to us any more.
 */
import { hasMark } from './mark.js';
import {
  isBetween,
  isDead,
  listPids,
  type ProcessStat,
  procView,
  readArgv,
  readEnviron,
  readStat,
  visitPids,
} from './procfs.js';

export interface TreeQuery {
  /** Absent: found are the session, the group, and their children. */
  readonly mark?: string | undefined;
  /** The child, which leads its session and group; running or gone. */
  readonly groupLeader: { readonly pid: number; readonly startTime: number };
  /** Pid → start time of what was found before: it stays ours, whatever it looks like now. */
  readonly known?: ReadonlyMap<number, number>;
}

export interface TreeMember {
  readonly pid: number;
  readonly startTime: number;
  /** As `readArgv`. */
  readonly argv: readonly string[];
  /** As `ProcessStat.state`. */
  readonly state: string;
  readonly session: number;
  /** Whether a signal to the child's group reaches it. */
  readonly inGroup: boolean;
}

export type FindMethod = 'environment mark and process group' | 'process group' | 'none';

export interface Tree {
  /** Without the dead that nobody has reaped. */
  readonly members: readonly TreeMember[];
  readonly method: FindMethod;
  /**
   * Whether all that could belong was looked at; says nothing about the kind that cannot be found. Not while processes
   * of other users are younger than the child, nor, mostly, while others start hundreds of processes in a second.
   */
  readonly complete: boolean;
}

/** Lists of one scan; that many all have news only where more than a thousand processes start in a second. */
const MOST_PASSES = 8;

/** Rejects with the errno error when this server has no descriptors left. */
export async function findTree(query: TreeQuery): Promise<Tree> {
  const view = procView();
  if (view === 'none') return { members: [], method: 'none', complete: false };
  const sightings = new Map<number, Sighting>();
  const look = (pid: number): void => {
    const sighting = sight(pid, query);
    if (sighting === undefined) sightings.delete(pid);
    else sightings.set(pid, sighting);
  };
  const listed = new Set<number>();
  // A process may vanish before it is looked at and leave a child that is younger than the list; a list without news
  // proves that none did.
  let settled = false;
  for (let pass = 0; pass < MOST_PASSES && !settled; pass += 1) {
    const news = (await listPids()).filter((pid) => !listed.has(pid));
    await visitPids(news, look);
    for (const pid of news) listed.add(pid);
    settled = news.length === 0;
  }
  const unsettled = [...sightings.values()].filter(({ mark }) => mark === 'unsettled');
  await visitPids(
    unsettled.map(({ stat }) => stat.pid),
    look,
  );
  // Read last: if it is the child even now, its number was nobody else's during the scan.
  const leader = readStat(query.groupLeader.pid);
  const { members, doubts } = selectTree([...sightings.values()], query, leader);
  return {
    members: members.map((stat) => describe(stat, query)),
    method: query.mark === undefined ? 'process group' : 'environment mark and process group',
    complete: query.mark !== undefined && view === 'whole' && settled && !doubts,
  };
}

/** One process in one scan. */
export interface Sighting {
  readonly stat: ProcessStat;
  /** `unknown`: its environment may not be read. `unsettled`: it is within an exec or an exit. */
  readonly mark: 'has' | 'lacks' | 'unsettled' | 'unknown';
}

function sight(pid: number, { mark, groupLeader }: TreeQuery): Sighting | undefined {
  const stat = readStat(pid);
  if (stat === undefined) return undefined;
  // Nothing is older than what it descends from; this spares most environments of a busy host.
  if (stat.startTime < groupLeader.startTime || stat.kernel || isDead(stat)) return { stat, mark: 'lacks' };
  if (mark === undefined) return { stat, mark: 'unknown' };
  const environ = readEnviron(pid);
  if (environ !== undefined) {
    if (hasMark(environ, mark)) return { stat, mark: 'has' };
    return { stat, mark: environ.length === 0 && isBetween(pid) ? 'unsettled' : 'lacks' };
  }
  return readStat(pid)?.startTime === stat.startTime ? { stat, mark: 'unknown' } : undefined;
}

/**
 * Which of the sighted descend from the child. `leader` is who has its number now. The session and the group are the
 * child's while it has the number; a stranger with it proves them empty, since the kernel gives no number away while a
 * session or group has it. When nobody has it, one member that is ours proves it for all. Touches no process.
 */
export function selectTree(
  sightings: readonly Sighting[],
  { groupLeader, known }: TreeQuery,
  leader: Pick<ProcessStat, 'startTime'> | undefined,
): { readonly members: readonly ProcessStat[]; readonly doubts: boolean } {
  const young = sightings.filter(({ stat }) => stat.startTime >= groupLeader.startTime && stat.pid !== process.pid);
  const isOurs = ({ stat, mark }: Sighting): boolean => mark === 'has' || known?.get(stat.pid) === stat.startTime;
  const inSession = ({ stat }: Sighting): boolean => stat.session === groupLeader.pid || stat.pgrp === groupLeader.pid;
  const ledByChild = leader?.startTime === groupLeader.startTime;
  const sessionIsOurs = ledByChild || (leader === undefined && young.some((each) => inSession(each) && isOurs(each)));

  const members = new Map<number, ProcessStat>();
  const children = new Map<number, ProcessStat[]>();
  for (const sighting of young) {
    const { stat } = sighting;
    if (isDead(stat)) continue;
    if (isOurs(sighting) || (sessionIsOurs && inSession(sighting))) members.set(stat.pid, stat);
    const siblings = children.get(stat.ppid);
    if (siblings === undefined) children.set(stat.ppid, [stat]);
    else siblings.push(stat);
  }
  // A map visits what is added on the way, so this reaches the last grandchild.
  for (const [pid, parent] of members) {
    for (const child of children.get(pid) ?? []) {
      if (child.startTime >= parent.startTime) members.set(child.pid, child);
    }
  }
  const doubts = young.some((each) => {
    if (members.has(each.stat.pid) || isDead(each.stat) || each.stat.kernel) return false;
    return each.mark === 'unknown' || each.mark === 'unsettled' || (leader === undefined && inSession(each));
  });
  return { members: [...members.values()], doubts };
}

function describe(stat: ProcessStat, { groupLeader }: TreeQuery): TreeMember {
  const { pid, startTime, state, session, pgrp } = stat;
  return { pid, startTime, argv: readArgv(pid), state, session, inGroup: pgrp === groupLeader.pid };
}
