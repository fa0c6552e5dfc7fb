/** `exec-server run`: one command, its streams passed through, its exit code as ours. */
import { resolve } from 'node:path';
import { isClientError, type ProcessHandle, type StartOptions } from '@exec-server/client';
import { failureOfStart } from '../clientFailures.js';
import { CommandError, ExitCode } from '../exitCodes.js';
import { follow } from '../follow.js';
import { ownSize, terminalVariables } from '../ownTerminal.js';
import { RunSession, type RunSessionChoice } from '../runSession.js';

export interface RunOptions extends RunSessionChoice {
  readonly command: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Names the process in its session; a random id without. */
  readonly processId: string | undefined;
  /** Run it on a terminal of the size of ours. */
  readonly tty: boolean;
  /** Start it and leave it to its session. */
  readonly detach: boolean;
}

/** How long a server may take to end what this command leaves behind in a session that goes on. */
const LEAVE_MS = 2_000;

export async function run(options: RunOptions): Promise<number> {
  if (options.detach && options.sessionFile === undefined) {
    throw new CommandError('--detach needs --session-file, or nobody would find the command again', ExitCode.usage);
  }
  const session = await RunSession.open(options);
  let how: 'detach' | 'close' = 'close';
  try {
    const handle = await start(session, options);
    if (!options.detach) return await followToEnd(session, handle, options);
    how = 'detach';
    process.stdout.write(`${handle.processId}\n`);
    return ExitCode.ok;
  } finally {
    await session.end(how);
  }
}

async function start({ client }: RunSession, options: RunOptions): Promise<ProcessHandle> {
  const isLocal = options.url === undefined && options.sessionFile === undefined;
  const cwd = options.cwd !== undefined && isLocal ? resolve(options.cwd) : options.cwd;
  const onTerminal: Partial<StartOptions> = {
    env: { ...terminalVariables(), ...options.env },
    // The size at birth is an extension; without it a terminal has the usual one.
    tty: (client.serverInfo === undefined ? undefined : ownSize()) ?? true,
  };
  try {
    return await client.start({
      argv: [...options.command],
      env: options.env,
      stdin: options.detach ? 'none' : 'pipe',
      processId: options.processId,
      cwd,
      ...(options.tty ? onTerminal : {}),
    });
  } catch (error) {
    throw isClientError(error) ? failureOfStart(options.command[0] ?? '', error, options) : error;
  }
}

async function followToEnd(
  { client, isNew }: RunSession,
  handle: ProcessHandle,
  { tty, sessionFile }: RunOptions,
): Promise<number> {
  const { exitCode, left } = await follow(client, handle, {
    input: true,
    // The file of a session that began here goes with this command.
    again:
      isNew || sessionFile === undefined
        ? undefined
        : () => `exec-server attach --session-file ${sessionFile} --after ${handle.cursor} ${handle.processId}`,
    ...(tty ? { terminal: { size: ownSize() } } : {}),
    // On a terminal Ctrl-C is a key, and a signal means that this command shall end: shells ignore most of them.
    signals: tty ? 'leave' : 'forward',
  });
  // A session of our own takes its command with it.
  if (left && !isNew) await handle.terminate({ timeoutMs: LEAVE_MS }).catch(() => undefined);
  return exitCode;
}
