/** What the local disk says → the errors of the client, with the local path. */
import { Buffer } from 'node:buffer';
import { types } from 'node:util';
import { shownBytes } from '../transfer/bytePath.js';
import { localError } from '../transfer/transferErrors.js';

/** What the calls of the host take for a path that is a string of bytes. */
export function native(path: string): Buffer {
  return Buffer.from(path, 'latin1');
}

/** Runs an operation on a local path. Throws FileError; undefined for a failure whose errno is among `expected`. */
export async function onDisk<T>(path: string, action: () => Promise<T>): Promise<T>;
export async function onDisk<T>(
  path: string,
  action: () => Promise<T>,
  expected: readonly string[],
): Promise<T | undefined>;
export async function onDisk<T>(
  path: string,
  action: () => Promise<T>,
  expected: readonly string[] = [],
): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    // Not `instanceof`: under Jest the errors of the host are those of another realm.
    const code = types.isNativeError(error) && 'code' in error ? error.code : undefined;
    const errno = typeof code === 'string' ? code : undefined;
    if (errno === undefined) throw error;
    if (expected.includes(errno)) return undefined;
    throw localError(errno, shownBytes(path), error);
  }
}
