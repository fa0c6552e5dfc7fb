/** `exec-server kill`: ends a process of a session, or signals it. */
import { type Client, isClientError } from '@exec-server/client';
import type { ProcessSummary } from '@exec-server/protocol';
import { CommandError, ExitCode } from '../exitCodes.js';
import { say } from '../link.js';
import { withOutput } from '../output.js';
import { inSession, type SessionChoice } from '../sessions.js';

export interface KillOptions extends SessionChoice {
  readonly processId: string;
  /** Only send this. */
  readonly signal: string | undefined;
  /** SIGTERM first, SIGKILL after this many ms. */
  readonly graceMs: number;
  /** What has left the process group as well. */
  readonly tree: boolean;
  /** Take control of the session from whoever has it. */
  readonly takeOver: boolean;
}

export function kill(options: KillOptions): Promise<number> {
  const attachment = { takeOver: options.takeOver, otherWays: 'or pass --take-over, which takes control of it' };
  return inSession('kill', options, attachment, async (client) => {
    await findProcess(client, options.processId);
    return options.signal === undefined ? await end(client, options) : await send(client, options, options.signal);
  });
}

/** Throws CommandError when the session does not have it. */
export async function findProcess(client: Client, processId: string): Promise<ProcessSummary> {
  const { processes } = await client.list();
  const found = processes.find((candidate) => candidate.processId === processId);
  if (found !== undefined) return found;
  throw new CommandError(
    `the session has no process ${processId}, or no longer; \`exec-server ps\` with the same session lists what there is`,
  );
}

async function send(client: Client, { processId }: KillOptions, name: string): Promise<number> {
  const signal = name.toUpperCase().startsWith('SIG') ? name.toUpperCase() : `SIG${name.toUpperCase()}`;
  const { delivered } = await client.call('process/signal', { processId, signal }).catch((error: unknown) => {
    if (!isClientError(error) || error.data.reason !== 'invalidParams') throw error;
    throw new CommandError(
      `--signal ${name}: the server knows no such signal, and none was sent; pass a name such as INT, TERM or KILL`,
      ExitCode.usage,
    );
  });
  if (delivered) return ExitCode.ok;
  say(`${processId} has ended; nothing was signalled`);
  return ExitCode.failure;
}

function end(client: Client, { processId, graceMs, tree }: KillOptions): Promise<number> {
  return withOutput(async (output) => {
    const leftovers = tree ? 'kill' : 'keep';
    const params = { processId, graceMs, leftovers, wait: true } as const;
    const {
      running,
      exit,
      left = [],
    } = await client.call('process/terminate', params, { timeoutMs: graceMs + 60_000 });
    if (exit !== undefined) {
      const how = exit.signal ?? `exit code ${exit.exitCode}`;
      await output.pass(`${processId} ${running ? 'was ended' : 'had ended before'} (${how})\n`);
    }
    for (const { pid, argv } of left) await output.pass(`still there: ${pid} ${argv.join(' ')}\n`);
    return tree && left.length > 0 ? ExitCode.failure : ExitCode.ok;
  });
}
