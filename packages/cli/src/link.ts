/** Opens the client a command works with, and says on stderr how its connection fares. */
import { type Client, type ClientState, connect, isClientError } from '@exec-server/client';
import { takenOver } from './clientFailures.js';
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

/** Throws what `connect` throws; `command` names this client in the server's log. `tell` says how the connection fares. */
export async function openClient(
  command: string,
  choice: ServerChoice,
  wish: SessionWish = {},
  tell = say,
): Promise<Client> {
  const { url, tokenFile } = choice;
  const common = { clientName: `exec-server ${command}`, onState: stateLine(tell), ...wish };
  if (url === undefined) {
    if (tokenFile !== undefined) throw new CommandError('--token-file needs --url', ExitCode.usage);
    return await connect({ command: ownServerCommand(), ...common });
  }
  const token = tokenFile === undefined ? undefined : readTokenFile('--token-file', tokenFile);
  return await connect({ url, token, ...common });
}

/**
 * A failure of the client as the one sentence the command ends with; everything else is passed on. `otherWays`: what this
 * command can do while another client holds the session.
 */
export function asCommandError(error: unknown, otherWays?: string): unknown {
  if (!isClientError(error)) return error;
  if (error.code === 'TAKEN_OVER') return takenOver();
  switch (error.data.reason) {
    case 'attachedElsewhere': {
      const ways = otherWays === undefined ? '' : `; ${otherWays}`;
      return new CommandError(`another client holds the session; it has to leave or lose its connection first${ways}`);
    }
    case 'observeOnly':
      return new CommandError('this id lets look on and nothing else: `ps` and `attach --observe` take it');
    default:
      return new CommandError(error.message);
  }
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
