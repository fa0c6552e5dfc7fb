/** Counts, sizes and times that callers give. Pure. */
import { ClientError } from './errors.js';

/** Throws INVALID_ARGUMENT for what is no whole number from 0 on. */
export function checkCount(argument: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return;
  const message = `${argument} cannot be used: ${value} is no whole number from 0 on; nothing was sent`;
  throw new ClientError('INVALID_ARGUMENT', message, { argument });
}
