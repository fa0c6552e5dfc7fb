/** A file that names a session, so that later commands find it: a secret, since who knows the id controls the session. */
import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isServerUrl } from './args.js';
import { CommandError } from './exitCodes.js';
import { fileFault } from './hostFaults.js';

export interface SessionRecord {
  readonly url: string;
  readonly sessionId: string;
  /** How long the session was asked to live while nobody is attached; its successor is asked for the same. */
  readonly leaseMs?: number | undefined;
  /** The life of the server that made it: after a restart that is said, and not that the session has expired. */
  readonly epoch?: string | undefined;
}

/** Undefined when there is no such file. Throws CommandError when it cannot be read or is something else. */
export function readSessionFile(path: string): SessionRecord | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new CommandError(`--session-file ${path}: ${fileFault(error)}`);
  }
  const record = parse(text);
  if (record === undefined)
    throw new CommandError(
      `--session-file ${path}: this is not a session file; it was left as it is; name another one`,
    );
  if (!isServerUrl(record.url)) {
    throw new CommandError(
      `--session-file ${path}: the address in it, ${record.url}, is not ws:// or wss://; name another file`,
    );
  }
  return record;
}

/** Readable for this user alone, also where a file of other rights was there before. */
export function writeSessionFile(path: string, record: SessionRecord): void {
  const temporary = `${path}.${randomUUID()}`;
  try {
    writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    const why = fileFault(error, {
      ENOENT: 'its folder does not exist; create it',
      EISDIR: 'it is a folder; name a file in it',
      EACCES: 'this user may not write into its folder; choose another place',
    });
    throw new CommandError(`--session-file ${path}: it cannot be written, so nothing was started: ${why}`);
  }
}

export function removeSessionFile(path: string): void {
  rmSync(path, { force: true });
}

function parse(text: string): SessionRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The caller says what it is not.
    return undefined;
  }
  if (typeof value !== 'object' || value === null || !('url' in value) || !('sessionId' in value)) return undefined;
  const { url, sessionId } = value;
  if (typeof url !== 'string' || typeof sessionId !== 'string') return undefined;
  const leaseMs = 'leaseMs' in value && typeof value.leaseMs === 'number' ? value.leaseMs : undefined;
  const epoch = 'epoch' in value && typeof value.epoch === 'string' ? value.epoch : undefined;
  return { url, sessionId, leaseMs, epoch };
}
