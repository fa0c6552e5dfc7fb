/** Errno of a refused start → WireError. Texts are those of the C library, as the reference sends them. */
import { constants } from 'node:os';
import { types } from 'node:util';
import { type Reason, WireError } from '@exec-server/protocol';

const texts: Readonly<Record<string, string>> = {
  EPERM: 'Operation not permitted',
  ENOENT: 'No such file or directory',
  EIO: 'Input/output error',
  E2BIG: 'Argument list too long',
  ENOEXEC: 'Exec format error',
  EAGAIN: 'Resource temporarily unavailable',
  ENOMEM: 'Cannot allocate memory',
  EACCES: 'Permission denied',
  ENOTDIR: 'Not a directory',
  EISDIR: 'Is a directory',
  ENFILE: 'Too many open files in system',
  EMFILE: 'Too many open files',
  ETXTBSY: 'Text file busy',
  ENAMETOOLONG: 'File name too long',
  ELOOP: 'Too many levels of symbolic links',
};

const numbers: Readonly<Record<string, number | undefined>> = constants.errno;

/** `Permission denied (os error 13)`; an errno this table does not know keeps its name. */
export function osErrorText(code: string): string {
  const number = numbers[code];
  return `${texts[code] ?? code}${number === undefined ? '' : ` (os error ${number})`}`;
}

/** The errno name of a thrown value, such as `ENOENT`; undefined for anything else. */
export function errnoCode(thrown: unknown): string | undefined {
  // Not `instanceof`: under Jest the errors of the host are those of another realm.
  if (!types.isNativeError(thrown) || !('code' in thrown)) return undefined;
  return typeof thrown.code === 'string' ? thrown.code : undefined;
}

const startReasons: Readonly<Record<string, Reason>> = {
  ENOENT: 'programNotFound',
  EACCES: 'notExecutable',
  EPERM: 'notExecutable',
  ENOEXEC: 'badExecutable',
  E2BIG: 'argumentsTooLong',
  EMFILE: 'tooManyOpenFiles',
  ENFILE: 'tooManyOpenFiles',
  EAGAIN: 'resourcesExhausted',
  ENOMEM: 'resourcesExhausted',
};

const cwdReasons: Readonly<Record<string, Reason>> = {
  ENOENT: 'cwdNotFound',
  ENOTDIR: 'cwdNotDirectory',
  EACCES: 'cwdDenied',
  EPERM: 'cwdDenied',
};

/** The host refused the program at `path`, or refused to start anything. */
export function startError(code: string, path?: string): WireError {
  return new WireError(startReasons[code] ?? 'spawnFailed', osErrorText(code), path === undefined ? {} : { path });
}

export function cwdError(code: string, path: string): WireError {
  return new WireError(cwdReasons[code] ?? 'spawnFailed', osErrorText(code), { path, field: 'cwd' });
}
