/** Failures of the client in the words of the command: what happened, what still runs, what to do. Pure. */
import type { ClientError } from '@exec-server/client';
import { CommandError, ExitCode } from './exitCodes.js';

/** Exit codes of shells for a program that is missing, and for one that cannot be executed. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;

/** What the command line said about the process that was to start. */
export interface Wanted {
  readonly cwd?: string | undefined;
  readonly processId?: string | undefined;
}

/** Why the command did not start; nothing runs then. */
export function failureOfStart(program: string, error: ClientError, wanted: Wanted = {}): CommandError {
  const path = pathOf(error);
  switch (error.data.argument === 'cwd' ? 'invalidPath' : error.data.reason) {
    case 'programNotFound': {
      const advice = program.includes(' ')
        ? 'pass the program and its arguments as words of their own, as in `run -- npm test`'
        : 'check the name, and the PATH of the server';
      return new CommandError(`${program}: not found; ${advice}`, NOT_FOUND);
    }
    case 'emptyProgram':
      return new CommandError('the name of the program is empty; name one behind `--`', NOT_FOUND);
    case 'interpreterNotFound':
      return new CommandError(
        `${program}: its interpreter ${path} was not found; install it, or mend the first line of the script`,
        NOT_FOUND,
      );
    case 'notExecutable':
      return new CommandError(
        `${program}: not executable: it is a folder, or lacks the permission; chmod +x sets it`,
        NOT_EXECUTABLE,
      );
    case 'badExecutable':
      return new CommandError(
        `${program}: not a program this host can execute; a script needs a first line such as #!/bin/sh`,
        NOT_EXECUTABLE,
      );
    case 'cwdNotFound':
      return new CommandError(
        `the working directory ${path} does not exist on the server; create it, or pass another --cwd`,
      );
    case 'cwdNotDirectory':
      return new CommandError(`the working directory ${path} is not a directory; pass another --cwd`);
    case 'cwdDenied':
      return new CommandError(
        `the server may not enter the working directory ${path}; change its permissions, or pass another --cwd`,
      );
    case 'invalidPath':
      return new CommandError(
        `--cwd ${wanted.cwd ?? ''}: expected an absolute path of the server, such as /srv`,
        ExitCode.usage,
      );
    case 'duplicateProcess':
    case 'startDiffers':
      return new CommandError(
        `cannot start ${program}: the session has a process ${wanted.processId ?? 'of this id'} already, which is not touched; pass another --id`,
      );
    case 'terminalUnavailable':
      return new CommandError(
        `cannot start ${program}: ${hostWords(error)}; \`exec-server run\` without --tty needs none`,
      );
    default:
      return isOfConnection(error)
        ? failureOfRun(error)
        : new CommandError(`cannot start ${program}: ${wordsOf(error)}`);
  }
}

/** Why the command is lost that was running. `again`: the command line that goes on with it. */
export function failureOfRun(error: ClientError, again?: string): CommandError {
  const server = error.data.url ?? 'the server';
  switch (error.code) {
    case 'RECOVERY_FAILED': {
      const output =
        again === undefined
          ? 'its output is out of reach'
          : `\`${again}\` goes on with it once the server can be reached`;
      return new CommandError(
        `the connection to ${server} did not come back${lastOf(error)}; the command may run on there until the lease of its session is over, ${output}`,
      );
    }
    case 'SESSION_EXPIRED':
      return new CommandError(
        `${server} no longer has the session of the command, which was killed: the server was restarted, or the connection was away longer than the lease; run it again`,
      );
    case 'TAKEN_OVER':
      return takenOver();
    case 'SERVER_GONE':
      if (error.data.reason === 'otherEpoch') {
        return new CommandError(`${server} was restarted, and the command was killed; run it again`);
      }
      return new CommandError(`the server has ended${endOf(error)}, and the command with it; run it again`);
    default:
      return new CommandError(wordsOf(error));
  }
}

/** The words of the server for a call it refused, without the name of the method, which says nothing to a user. */
export function wordsOf({ message }: ClientError): string {
  return message.replace(/^the server (?:refused|failed at) [\w/]+: /, '');
}

/** A cursor behind the last event there is. */
export function failureOfCursor(error: ClientError, processId: string): CommandError | undefined {
  const { cursor, lastSeq } = error.data;
  if (error.code !== 'OUTPUT_LOST' || typeof cursor !== 'number' || typeof lastSeq !== 'number') return undefined;
  return new CommandError(
    `process ${processId} has no event ${cursor} yet, its last is ${lastSeq}; it is not affected; pass --after ${lastSeq} for what comes, or leave --after out for all that is kept`,
  );
}

/** The session has another client now. */
export function takenOver(): CommandError {
  return new CommandError(
    'another client took the session over; the process runs on there; `exec-server attach` with --observe looks on, with --take-over takes it back',
  );
}

const isOfConnection = ({ code }: ClientError): boolean =>
  code === 'RECOVERY_FAILED' || code === 'SESSION_EXPIRED' || code === 'SERVER_GONE' || code === 'TAKEN_OVER';

function pathOf({ data: { serverData } }: ClientError): string {
  const hasPath = typeof serverData === 'object' && serverData !== null && 'path' in serverData;
  return hasPath && typeof serverData.path === 'string' ? serverData.path : '(unnamed)';
}

/** What the server says of its host, without the advice that is for programs. */
function hostWords({ cause, message }: ClientError): string {
  return cause instanceof Error ? cause.message : message;
}

function lastOf({ cause }: ClientError): string {
  return cause instanceof Error ? ` (last attempt: ${cause.message})` : '';
}

function endOf({ data: { exitCode, stderr } }: ClientError): string {
  const parts = [
    ...(typeof exitCode === 'number' ? [`exit code ${exitCode}`] : []),
    ...(stderr === undefined ? [] : [`its stderr ends: ${stderr}`]),
  ];
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`;
}
