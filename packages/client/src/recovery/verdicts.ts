/** The errors the recovery machine itself comes to. Pure. */
import { ClientError } from '../errors.js';
import type { Policy } from './policy.js';

interface Tried {
  readonly attempt: number;
  readonly lastError: ClientError;
}

export function connectTimeout({ label, connectTimeoutMs }: Policy): ClientError {
  return new ClientError(
    'CONNECT_FAILED',
    `no connection to ${label} within ${connectTimeoutMs} ms, as it does not answer; check the URL and the network`,
    { url: label, retryable: true },
  );
}

export function initializeTimeout({ label, initializeTimeoutMs }: Policy): ClientError {
  return new ClientError(
    'INITIALIZE_TIMEOUT',
    `${label} did not answer \`initialize\` within ${initializeTimeoutMs} ms; check that it is an exec server, or try again when it has less to do`,
    { url: label, retryable: true },
  );
}

const STILL_THERE =
  'the processes may go on until the lease of the session ends; connect with resumeSessionId to look for them';

/** Retryable, as the next one is: a new client may succeed while the lease lasts. */
export function outOfTime({ label, recoveryMs }: Policy, { attempt, lastError }: Tried): ClientError {
  return new ClientError(
    'RECOVERY_FAILED',
    `the connection to ${label} was lost and not restored within ${recoveryMs} ms (${attempt} attempts; last: ${lastError.message}); ${STILL_THERE}`,
    { url: label, attempts: attempt, retryable: true },
    lastError,
  );
}

export function outOfAttempts({ label }: Policy, { attempt, lastError }: Tried): ClientError {
  return new ClientError(
    'RECOVERY_FAILED',
    `the connection to ${label} was lost and not restored in ${attempt} attempts (last: ${lastError.message}); ${STILL_THERE}`,
    { url: label, attempts: attempt, retryable: true },
    lastError,
  );
}
