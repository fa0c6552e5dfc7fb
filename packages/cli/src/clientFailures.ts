/** Failures of the client in the words of the command: what happened, what still runs, what to do. Pure. */
import type { ClientError } from '@exec-server/client';
import { CommandError } from './exitCodes.js';

/** Exit codes of shells for a program that is missing, and for one that cannot be executed. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;

/** Why the command did not start; nothing runs then. */
export function failureOfStart(program: string, error: ClientError): CommandError {
  const path = pathOf(error);
  switch (error.data.reason) {
    case 'programNotFound':
      return new CommandError(`${program}: not found`, NOT_FOUND);
    case 'emptyProgram':
      return new CommandError('the name of the program is empty', NOT_FOUND);
    case 'interpreterNotFound':
      return new CommandError(`${program}: its interpreter ${path} was not found`, NOT_FOUND);
    case 'notExecutable':
      return new CommandError(`${program}: not executable`, NOT_EXECUTABLE);
    case 'badExecutable':
      return new CommandError(`${program}: not a program this host can execute`, NOT_EXECUTABLE);
    case 'cwdNotFound':
      return new CommandError(`the working directory ${path} does not exist on the server`);
    case 'cwdNotDirectory':
      return new CommandError(`the working directory ${path} is not a directory`);
    case 'cwdDenied':
      return new CommandError(`the server may not enter the working directory ${path}`);
    case 'invalidPath':
      return new CommandError(`--cwd: expected an absolute path of the server (${error.message})`);
    default:
      return isOfConnection(error)
        ? failureOfRun(error)
        : new CommandError(`cannot start ${program}: ${error.message}`);
  }
}

/** Why the command is lost that was running. */
export function failureOfRun(error: ClientError): CommandError {
  const server = error.data.url ?? 'the server';
  switch (error.code) {
    case 'RECOVERY_FAILED':
      return new CommandError(
        `the connection to ${server} did not come back${lastOf(error)}; the command may run on there until the lease of its session is over, its output is out of reach`,
      );
    case 'SESSION_EXPIRED':
      return new CommandError(
        `${server} no longer has the session of the command, which was killed: the server was restarted, or the connection was away longer than the lease`,
      );
    case 'TAKEN_OVER':
      return takenOver();
    case 'SERVER_GONE':
      if (error.data.reason === 'otherEpoch') {
        return new CommandError(`${server} was restarted, and the command was killed; run it again`);
      }
      return new CommandError(`the server has ended${endOf(error)}, and the command with it; run it again`);
    default:
      return new CommandError(error.message);
  }
}

/** The session has another client now. */
export function takenOver(): CommandError {
  return new CommandError('another client took the session over; the process runs on there');
}

const isOfConnection = ({ code }: ClientError): boolean =>
  code === 'RECOVERY_FAILED' || code === 'SESSION_EXPIRED' || code === 'SERVER_GONE' || code === 'TAKEN_OVER';

function pathOf({ data: { serverData } }: ClientError): string {
  const hasPath = typeof serverData === 'object' && serverData !== null && 'path' in serverData;
  return hasPath && typeof serverData.path === 'string' ? serverData.path : '(unnamed)';
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
