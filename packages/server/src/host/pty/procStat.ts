/** What /proc tells of a process and its terminal. Linux; elsewhere nothing is known. */
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcStat {
  readonly alive: boolean;
  readonly group: number;
  readonly session: number;
  /** Foreground process group of its terminal; undefined where it has none. */
  readonly foreground: number | undefined;
  /** False for a fork that has not come to its exec. */
  readonly execed: boolean;
}

/** The kernel's PF_FORKNOEXEC. */
const FORKED_NO_EXEC = 0x40;

/** Undefined for a process that is gone. */
export function readProcStat(pid: number | string): ProcStat | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    // It was reaped, or there is no /proc.
    return undefined;
  }
  // The name in parentheses may hold anything; after it: state, parent, group, session, terminal, foreground, flags.
  const [state, , group, session, , foreground, flags] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    alive: state !== 'Z' && state !== 'X',
    group: Number(group),
    session: Number(session),
    foreground: Number(foreground) > 0 ? Number(foreground) : undefined,
    execed: (Number(flags) & FORKED_NO_EXEC) === 0,
  };
}

/** Whether the group has a live member in the session. Usually one look: at the group's leader. */
export function isGroupOfSession(group: number, session: number): boolean {
  const belongs = (pid: number | string): boolean => {
    const stat = readProcStat(pid);
    return stat !== undefined && stat.alive && stat.group === group && stat.session === session;
  };
  return belongs(group) || processNumbers().some(belongs);
}

function processNumbers(): readonly string[] {
  try {
    return readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  } catch {
    // No /proc.
    return [];
  }
}
