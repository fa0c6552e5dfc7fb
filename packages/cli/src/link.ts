/** Opens the client a command works with, and says on stderr how its connection fares. */
import { type Client, type ClientState, connect, isClientError } from '@exec-server/client';
import { type Chosen, failureOfConnect, failureOfSession } from './connectFailures.js';
import { CommandError, ExitCode } from './exitCodes.js';
import { ownServerCommand } from './ownServer.js';
import { readTokenFile } from './tokenFile.js';

export interface ServerChoice {
  /** Undefined: a server of our own, for this command alone. */
  readonly url: string | undefined;
  readonly tokenFile: string | undefined;
}

export interface SessionWish {
  readonly resumeSessionId?: string | undefined;
  /** The life of the server the session belongs to. */
  readonly epoch?: string | undefined;
  readonly leaseMs?: number | undefined;
  readonly attach?: 'control' | 'observe' | undefined;
  readonly takeOver?: boolean | undefined;
}

/** A line on stderr. In raw mode the terminal does not return the carriage by itself. */
export function say(text: string): void {
  const end = process.stderr.isTTY && process.stdin.isRaw ? '\r\n' : '\n';
  process.stderr.write(`exec-server: ${text}${end}`);
}

/**
 * Throws what `connect` throws, and a CommandError where there is no connection at all. `command` names this client in the
 * server's log; `tell` says how the connection fares.
 */
export async function openClient(
  command: string,
  choice: ServerChoice,
  wish: SessionWish = {},
  tell = say,
): Promise<Client> {
  const { url, tokenFile } = choice;
  const common = { clientName: `exec-server ${command}`, onState: stateLine(tell), ...wish };
  if (url === undefined) {
    if (tokenFile !== undefined)
      throw new CommandError('--token-file is for the server that --url names; pass both, or neither', ExitCode.usage);
    return await dialed(connect({ command: ownServerCommand(), ...common }), choice);
  }
  const token = tokenFile === undefined ? undefined : readTokenFile('--token-file', tokenFile);
  return await dialed(connect({ url, token, ...common }), choice);
}

async function dialed(connecting: Promise<Client>, choice: ServerChoice): Promise<Client> {
  try {
    return await connecting;
  } catch (error) {
    throw isClientError(error) ? failureOfConnect(error, choice) : error;
  }
}

/** A failure of the client as the one sentence the command ends with; everything else is passed on. */
export function asCommandError(error: unknown, chosen: Chosen = {}): unknown {
  return isClientError(error) ? failureOfSession(error, chosen) : error;
}

function stateLine(tell: typeof say): (state: ClientState) => void {
  let lostAt: number | undefined;
  return (state) => {
    if (state === 'recovering' && lostAt === undefined) {
      lostAt = performance.now();
      tell('the connection was lost; the command goes on, reconnecting');
    } else if (state === 'ready' && lostAt !== undefined) {
      tell(`reconnected after ${Math.round(performance.now() - lostAt)} ms`);
      lostAt = undefined;
    }
  };
}
