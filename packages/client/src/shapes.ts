/** Small checks of values a server sends, and the pieces several messages share. Pure. */
import type { StreamName } from '@exec-server/protocol';
import type { Closing, Exit } from './events.js';

export type Members = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const isText = (value: unknown): value is string => typeof value === 'string';
export const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0;
export const isSeq = (value: unknown): value is number => isCount(value) && value >= 1;
export const isInteger = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value);
export const isStream = (value: unknown): value is StreamName =>
  value === 'stdout' || value === 'stderr' || value === 'pty';
export const absent = (value: unknown): value is undefined | null => value === undefined || value === null;

/** `exitCode`, `signal` and `reason`; undefined without a code. A reason of a later version is left out. */
export function exitOf(value: unknown): Exit | undefined {
  if (!isObject(value)) return undefined;
  const { exitCode, signal, reason } = value;
  if (!isInteger(exitCode)) return undefined;
  const known = reason === 'exited' || reason === 'timedOut' || reason === 'terminated';
  return { exitCode, ...(isText(signal) ? { signal } : {}), ...(known ? { reason } : {}) };
}

export function closingOf(reason: unknown, holders: unknown): Closing {
  const known = reason === 'ended' || reason === 'heldOpen';
  return { ...(known ? { reason } : {}), ...(isCount(holders) ? { holders } : {}) };
}
