/** A command that does nothing before it is released, and whose start the agent has surely been told of: it comes through any cut. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentRun } from './agentRun.js';
import type { CalledTool } from './modelEvents.js';
import { type CommandReport, commandReport, execCommand, runningSession, writeStdin } from './toolCalls.js';

export interface HeldCommand {
  /** Once; the command goes on. */
  release(): Promise<void>;
  /** The agent waits for the end, and asks again after each 30 s; its last report, with the output of all of them. */
  readonly ended: Promise<CommandReport>;
}

/**
 * A message that a cut takes away on its way is seen by the recorder all the same, and of a start without an answer the agent
 * says that it failed. So the agent reports first that the command runs.
 */
export async function startHeld(run: AgentRun, script: string): Promise<HeldCommand> {
  const cmd = `until [ -e go ]; do sleep 0.05; done; ${script}`;
  const [running] = await run.model.turn(execCommand({ cmd, yield_time_ms: 250 }));
  const session_id = runningSession(running);
  const wait = (): Promise<CalledTool[]> =>
    run.model.call(writeStdin({ session_id, chars: '', yield_time_ms: 30_000 }));
  const ended = reportOfEnd(run, await wait(), wait);
  // Whoever awaits it later is told.
  ended.catch(() => undefined);
  return { release: () => writeFile(join(run.folder, 'go'), ''), ended };
}

async function reportOfEnd(
  { model }: AgentRun,
  first: readonly CalledTool[],
  again: () => Promise<readonly CalledTool[]>,
): Promise<CommandReport> {
  let [called] = first;
  let output = '';
  let tokens = 0;
  for (;;) {
    if (called === undefined) throw new Error('the model called nothing');
    const report = commandReport(await model.reportOn(called));
    output += report.output;
    tokens += report.tokens;
    if (report.exitCode !== undefined) return { ...report, output, tokens };
    [called] = await again();
  }
}
