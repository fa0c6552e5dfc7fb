/** Signals to the group of one child, which leads its own session: pid, group id and session id are one number. */
import { readdirSync, readFileSync } from 'node:fs';
import { WireError } from '@exec-server/protocol';
import { errnoCode, osErrorText } from './startErrors.js';

/**
 * The kernel gives the number to nobody else while the leader is unreaped or a member is left. So once the group was
 * seen empty after the leader's end, it is never signalled again; until then the leader's number must not exist as a
 * process (it would be another's), and a live member must be in our session. What remains: the group emptied unseen,
 * the number went to a stranger that began a session, and the stranger ended before its members did.
 */
export class ProcessGroup {
  readonly #pid: number;
  #state: 'led' | 'leaderless' | 'gone' = 'led';

  constructor(pid: number) {
    this.#pid = pid;
  }

  /** To be called when the leader was reaped. */
  leaderExited(): void {
    this.#state = groupExists(this.#pid) ? 'leaderless' : 'gone';
  }

  signal(name: string): 'delivered' | 'gone' {
    if (this.#state === 'leaderless' && !hasOwnMember(this.#pid)) this.#state = 'gone';
    if (this.#state === 'gone') return 'gone';
    try {
      process.kill(-this.#pid, name);
      return 'delivered';
    } catch (error) {
      const code = errnoCode(error);
      if (code === 'ESRCH') return 'gone';
      const cause = code === undefined ? String(error) : osErrorText(code);
      throw new WireError('signalFailed', `failed to signal process: ${cause}`, { signal: name });
    }
  }
}

function groupExists(pid: number): boolean {
  try {
    process.kill(-pid, 0);
    return true;
  } catch (error) {
    // EPERM: members that changed user.
    return errnoCode(error) === 'EPERM';
  }
}

/** Whether a live process is of this group and session while no process has its number. Without /proc: no. */
function hasOwnMember(pid: number): boolean {
  if (!groupExists(pid)) return false;
  let found = false;
  for (const entry of processNumbers()) {
    if (Number(entry) === pid) return false;
    found ||= isLiveMember(entry, pid);
  }
  return found;
}

function processNumbers(): readonly string[] {
  try {
    return readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  } catch {
    // Not Linux: nothing can be proven.
    return [];
  }
}

function isLiveMember(entry: string, pid: number): boolean {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${entry}/stat`, 'latin1');
  } catch {
    // It ended since the listing.
    return false;
  }
  // The name in parentheses may hold anything; after it: state, parent, group, session.
  const [state, , group, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state !== 'Z' && state !== 'X' && Number(group) === pid && Number(session) === pid;
}
