/** Why a command has no server, or not its session, in the words of the command. Pure. */
import type { ClientError } from '@exec-server/client';
import { takenOver } from './clientFailures.js';
import { CommandError } from './exitCodes.js';

/** What the user said on the command line about the server and the session. */
export interface Chosen {
  /** Undefined: a server of our own. */
  readonly url?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly sessionFile?: string | undefined;
  /** What the command can do while another client holds the session. */
  readonly otherWays?: string | undefined;
}

const OF_DIAL: ReadonlySet<string> = new Set(['CONNECT_FAILED', 'REFUSED', 'INITIALIZE_TIMEOUT', 'PROTOCOL_VIOLATION']);

/** A dial that failed; any other failure stays what it is. Nothing was done at the server then. */
export function failureOfConnect(error: ClientError, { url, tokenFile }: Chosen): Error {
  if (!OF_DIAL.has(error.code)) return error;
  if (url === undefined) {
    const next = '`exec-server doctor` says what works here';
    return new CommandError(
      `the server of this command could not be started, so nothing runs: ${error.message}; ${next}`,
    );
  }
  const { status, body, url: server = url } = error.data;
  if (status !== 401) return new CommandError(error.message);
  const why = body === undefined || body === '' ? '' : ` (${body})`;
  return new CommandError(
    tokenFile === undefined
      ? `${server} wants a token${why}; pass the file that holds it with --token-file`
      : `${server} does not take the token in ${tokenFile}${why}; pass the file of this server with --token-file; a signed token may have expired`,
  );
}

/** The session cannot be had, or the client failed otherwise: the one sentence the command ends with. */
export function failureOfSession(error: ClientError, chosen: Chosen): CommandError {
  const server = error.data.url ?? 'the server';
  const { sessionFile, otherWays } = chosen;
  const next =
    sessionFile === undefined
      ? `begin a new session with \`exec-server run --url ${server} --session-file FILE -- COMMAND\``
      : `\`exec-server run --session-file ${sessionFile} -- COMMAND\` begins a new one`;
  switch (error.code) {
    case 'TAKEN_OVER':
      return takenOver();
    case 'SERVER_GONE':
      return error.data.reason === 'otherEpoch' || error.data.exitCode === undefined
        ? new CommandError(`${server} was restarted; the processes of the session and their output are gone; ${next}`)
        : new CommandError(error.message);
    case 'SESSION_EXPIRED':
      return new CommandError(
        error.data.reason === 'unknownSession'
          ? `${server} knows no session of this id: it was never there, or it ended long ago; check the id, or ${next}`
          : `${server} no longer has the session: its lease was over, or it was closed; its processes were killed; ${next}`,
      );
    case 'RECOVERY_FAILED':
      return new CommandError(
        `the connection to ${server} did not come back; what runs in the session goes on until its lease is over; try again`,
      );
    default:
      return failureByReason(error, otherWays);
  }
}

function failureByReason(error: ClientError, otherWays: string | undefined): CommandError {
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
