/** `exec-server ps`: the processes of a session. */
import type { ProcessSummary } from '@exec-server/protocol';
import { ExitCode } from '../exitCodes.js';
import { withOutput } from '../output.js';
import { inSession, type SessionChoice } from '../sessions.js';
import { table } from '../table.js';

export interface PsOptions extends SessionChoice {
  readonly json: boolean;
}

export function ps(options: PsOptions): Promise<number> {
  return inSession('ps', options, { attach: 'observe' }, async (client) => {
    const { processes } = await client.list();
    const now = Date.now();
    return await withOutput(async (output) => {
      await output.pass(options.json ? `${JSON.stringify(processes, null, 2)}\n` : listing(processes, now));
      return ExitCode.ok;
    });
  });
}

/** `now`: milliseconds since 1970; the clocks of server and client may differ. */
function listing(processes: readonly ProcessSummary[], now: number): string {
  return table([
    ['ID', 'PID', 'STATE', 'AGE', 'BYTES', 'COMMAND'],
    ...processes.map((entry) => [
      entry.processId,
      entry.pid === undefined ? '-' : String(entry.pid),
      stateOf(entry),
      age(now - entry.startedAtMs),
      String(entry.outputBytes),
      entry.argv.map(shown).join(' '),
    ]),
  ]);
}

function stateOf({ state, exit }: ProcessSummary): string {
  if (exit === undefined) return state;
  const how = exit.signal ?? String(exit.exitCode);
  return exit.reason === 'timedOut' ? `${state} ${how} timeout` : `${state} ${how}`;
}

function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${seconds % 60}s`;
  return `${Math.floor(seconds / 3600)}h${Math.floor((seconds % 3600) / 60)}m`;
}

/** An argument on one line of a terminal, whatever is in it. */
function shown(argument: string): string {
  return /^[\w./:=,@%+-]+$/.test(argument) ? argument : JSON.stringify(argument);
}
