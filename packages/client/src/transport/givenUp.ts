/** How an attempt ends that nobody waits for. */
import { ClientError } from '../errors.js';

export function givenUp(label: string): ClientError {
  return new ClientError(
    'CONNECT_FAILED',
    `the attempt to connect to ${label} was given up, as its time was over or the client was closed`,
    { url: label },
  );
}
