/** Ends a process, its group or its whole tree, politely if asked, and says what is left. */
import type { ExitSummary, Leftover } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import type { Process } from './process.js';
import { exitSummary } from './summary.js';
import { findTree } from '../host/tree/findTree.js';
import { killTree } from '../host/tree/killTree.js';

/** How long the exit of a killed process is waited for before the answer says that it still runs. */
const REAP_MS = 5_000;

export interface TerminateOptions {
  readonly clock: Clock;
  /** The environment mark of the tree. */
  readonly mark: string;
  readonly graceMs: number;
  /** End descendants that left the group as well, of an exited process too. */
  readonly wholeTree: boolean;
}

export interface TerminateOutcome {
  readonly exit: ExitSummary | undefined;
  readonly escalated: boolean;
  readonly left: readonly Leftover[];
  readonly method: string;
  readonly treeComplete: boolean;
}

/** Settles when everything that was to end is dead, or cannot be killed. The process was told its end before. */
export async function terminateTree(
  process: Process,
  running: boolean,
  options: TerminateOptions,
): Promise<TerminateOutcome> {
  const { clock, mark, graceMs, wholeTree } = options;
  const { leader } = process;
  let escalated = false;
  if (leader === undefined) {
    escalated = running && (await endGroup(process, clock, graceMs));
  } else if (running || wholeTree) {
    const select = wholeTree ? {} : { select: ({ inGroup }: { readonly inGroup: boolean }) => inGroup };
    const killed = await killTree({ clock, graceMs, mark, groupLeader: leader, ...select });
    // Without a view of the host nothing was signalled.
    escalated = killed.method === 'none' ? running && (await endGroup(process, clock, graceMs)) : killed.escalated;
  }
  if (running) await exitOf(process, clock, REAP_MS);
  const exit = exitSummary(process);
  if (leader === undefined) return { exit, escalated, left: [], method: 'none', treeComplete: false };
  const { members, method, complete } = await findTree({ mark, groupLeader: leader });
  const left = members.map(({ pid, argv }) => ({ pid, argv: [...argv] }));
  return { exit, escalated, left, method, treeComplete: complete };
}

/** Signals the group alone; whether KILL was needed after the grace. */
async function endGroup(process: Process, clock: Clock, graceMs: number): Promise<boolean> {
  if (graceMs > 0) {
    process.signalGroup('SIGTERM');
    process.signalGroup('SIGCONT');
    await exitOf(process, clock, graceMs);
    if (process.log.exited !== undefined) return false;
  }
  process.signalGroup('SIGKILL');
  return graceMs > 0;
}

function exitOf(process: Process, clock: Clock, withinMs: number): Promise<void> {
  if (process.log.exited !== undefined) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      stop();
      cancel();
      resolve();
    };
    const cancel = clock.after(withinMs, done);
    const stop = process.watch(() => {
      if (process.log.exited !== undefined) done();
    });
  });
}
