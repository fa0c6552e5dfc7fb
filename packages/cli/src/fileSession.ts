/** A client for a command that works with files, and what these commands have in common. */
import { type Client, isClientError } from '@exec-server/client';
import { CommandError, ExitCode } from './exitCodes.js';
import { faultOfOperand } from './fileFailures.js';
import { asCommandError, openClient, say, type ServerChoice } from './link.js';
import { type Operand, remotePath } from './operands.js';

/** 128 + SIGINT, SIGTERM, SIGHUP. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export interface FileSession {
  readonly client: Client;
  /** Aborted by a signal to this command. */
  readonly signal: AbortSignal;
  /** Says a line on stderr. */
  readonly tell: (text: string) => void;
}

/** Runs `use` with a session of its own. A signal aborts it, and is the exit code then; a second one ends the command at once. */
export async function withFiles(
  command: string,
  choice: ServerChoice,
  use: (session: FileSession) => Promise<number>,
  tell = say,
): Promise<number> {
  const abort = new AbortController();
  let byCode: number | undefined;
  const stops = Object.entries(SIGNALS).map(([name, code]) => {
    const stop = (): void => {
      if (byCode !== undefined) process.exit(code);
      byCode = code;
      abort.abort();
    };
    process.on(name, stop);
    return () => process.off(name, stop);
  });
  try {
    const client = await openClient(command, choice, {}, tell);
    try {
      return await use({ client, signal: abort.signal, tell });
    } finally {
      await client.close();
    }
  } catch (error) {
    if (byCode === undefined) throw failureOfFiles(error);
    tell('stopped; what was complete stays; run it again for the rest');
    return byCode;
  } finally {
    for (const stop of stops) stop();
  }
}

/** A connection that is lost takes no process along here: what is complete stays, and the command can be run again. */
function failureOfFiles(error: unknown): unknown {
  if (!isClientError(error)) return error;
  const { url = '' } = error.data;
  // A server of our own has a command line there, which nobody asked for.
  const server = /^wss?:/.test(url) ? url : 'the server';
  switch (error.code) {
    case 'RECOVERY_FAILED':
      return new CommandError(`the connection to ${server} did not come back; what was complete stays; run it again`);
    case 'SESSION_EXPIRED':
    case 'SERVER_GONE':
      return new CommandError(`${server} has ended or was restarted; what was complete stays; run it again`);
    default:
      return asCommandError(error);
  }
}

/** The path of the server that an operand names; what is relative begins at the server's working directory. */
export async function pathOnServer({ client }: FileSession, { path }: Operand): Promise<string> {
  if (path.startsWith('/') || /^file:/i.test(path)) return path;
  return remotePath(path, client.environmentInfo.cwd ?? (await askForCwd(client)));
}

async function askForCwd(client: Client): Promise<string> {
  const { cwd }: { readonly cwd?: unknown } = await client.call('environment/info', {});
  if (typeof cwd === 'string') return cwd;
  throw new CommandError('the server does not say its working directory; pass absolute paths', ExitCode.usage);
}

/**
 * One path after the other: what a path is at fault for is said and the next one is done. Anything else, and the end of the
 * connection, ends the command.
 */
export async function eachOperand(
  session: FileSession,
  operands: readonly Operand[],
  action: (operand: Operand) => Promise<boolean>,
): Promise<number> {
  let isFine = true;
  for (const operand of operands) {
    try {
      isFine = (await action(operand)) && isFine;
    } catch (error) {
      if (!isClientError(error) || session.client.state === 'failed' || session.signal.aborted) throw error;
      session.tell(faultOfOperand(error, operand));
      isFine = false;
    }
  }
  return isFine ? ExitCode.ok : ExitCode.failure;
}
