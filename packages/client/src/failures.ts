/** What a failed handshake and a lost connection are to the caller. Pure. */
import { type CloseReason, ErrorCode, RemoteError } from '@exec-server/protocol';
import { ClientError, type ClientErrorData, fromRemote } from './errors.js';
import type { Dialer } from './transport/dialer.js';

/** Why an initialize failed, `sessionId` being the session it asked for, and whether another attempt can help. */
export function initializeFailure(
  error: unknown,
  sessionId: string | undefined,
  label: string,
): { error: ClientError; retryable: boolean } {
  if (!(error instanceof RemoteError)) {
    const isOurs = error instanceof ClientError;
    const text = error instanceof Error ? error.message : String(error);
    return {
      error: isOurs
        ? error
        : new ClientError('CONNECT_FAILED', `initialize at ${label} failed: ${text}`, { url: label }, error),
      retryable: !isOurs,
    };
  }
  const refused = refusal(error, sessionId, label);
  if (refused.data.reason === 'otherEpoch') {
    return { error: serverRestarted(label, refused.data, refused), retryable: false };
  }
  if (sessionId !== undefined && refused.data.reason === 'serverStopping') {
    return { error: serverStopped(label, 'it is shutting down', refused.data, refused), retryable: false };
  }
  if (refused.code === 'TAKEN_OVER') {
    const message = `another client took the session at ${label} over; its processes run on there; connect with \`takeOver\` to take it back, or with \`attach: 'observe'\` to look on`;
    return { error: new ClientError('TAKEN_OVER', message, refused.data, refused), retryable: false };
  }
  // A foreign server has one code for all; asked to resume, it refuses with it only a session it does not have.
  const expired =
    refused.code === 'SESSION_EXPIRED' ||
    (sessionId !== undefined && refused.data.reason === undefined && error.code === ErrorCode.invalidRequest);
  if (!expired) return { error: refused, retryable: refused.data.retryable === true };
  return {
    error: new ClientError(
      'SESSION_EXPIRED',
      endedWords(label, refused.data.reason),
      { ...refused.data, retryable: false },
      refused,
    ),
    retryable: false,
  };
}

/** Why there is no session to resume. Foreign servers do not tell which it is. */
function endedWords(label: string, reason: string | undefined): string {
  const next = 'connect without resumeSessionId to begin a new one';
  if (reason === 'unknownSession') {
    return `${label} knows no session of this id: it was never there, or it ended long ago; check the id, or ${next}`;
  }
  const why = reason === undefined ? '' : ': it was detached for longer than its lease, or was closed';
  return `${label} no longer has the session${why}; its processes were killed; ${next}`;
}

/** The life of the server that held the session is over. */
export function serverRestarted(label: string, data: ClientErrorData = {}, cause?: unknown): ClientError {
  const message = `${label} was restarted; the processes of this session and their output are gone; make a new client`;
  return new ClientError('SERVER_GONE', message, { url: label, ...data, retryable: false }, cause);
}

/** The server that held the session has said that it stops. */
function serverStopped(label: string, detail: string, data: ClientErrorData, cause?: unknown): ClientError {
  const message = `${label} was stopped (${detail}); the processes of this session were ended with it; make a new client once it is back`;
  return new ClientError('SERVER_GONE', message, { ...data, retryable: false }, cause);
}

/** Servers repeat the session id in their refusals; it is a secret, and errors go into logs. */
function refusal({ code, message, data }: RemoteError, sessionId: string | undefined, label: string): ClientError {
  const shown = sessionId === undefined ? message : message.replaceAll(sessionId, '…');
  return fromRemote(new RemoteError(code, `${shown} (at ${label})`, data), 'initialize', { url: label });
}

/** The loss of a connection; `wasReady`: whether there was a session on it. */
export function lossError(
  { kind, detail }: CloseReason,
  { label, ownsServer, redials }: Pick<Dialer, 'label' | 'ownsServer' | 'redials'>,
  wasReady: boolean,
  report: ClientErrorData = {},
): ClientError {
  const data = { url: label, ...report };
  if (kind === 'violation') {
    const advice = ownsServer
      ? 'its stdout must carry the protocol alone, so let it log to stderr'
      : 'check that it is an exec server of a version that fits';
    const message = `${label} does not keep to the protocol: ${detail}; the connection was cut; ${advice}`;
    return new ClientError('PROTOCOL_VIOLATION', message, data);
  }
  if (!wasReady) {
    const message = ownsServer
      ? `the server program ended before it had answered: ${detail}; check the command (${label})`
      : `${label} ended the connection before it had answered \`initialize\`: ${detail}; check that it is an exec server`;
    return new ClientError('CONNECT_FAILED', message, { ...data, retryable: true });
  }
  if (ownsServer) {
    const message = `the server program has ended (${detail}), its processes with it; make a new client to go on (${label})`;
    return new ClientError('SERVER_GONE', message, data);
  }
  if (kind === 'stopped') {
    return serverStopped(label, detail, data);
  }
  const next = redials
    ? 'its session is kept until its lease ends'
    : 'it is not dialed again; its session ends with its lease';
  const message = `the connection to ${label} was lost (${detail}); ${next}`;
  return new ClientError('RECOVERY_FAILED', message, { ...data, retryable: redials });
}
