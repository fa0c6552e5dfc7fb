import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { isFileError } from '../files/fileErrors.js';
import { onDisk } from './localErrors.js';

it.each([
  ['of this realm', Object.assign(new Error('denied'), { code: 'EACCES' })],
  ['of another realm, as under Jest', runInNewContext('Object.assign(new Error("denied"), { code: "EACCES" })')],
])('makes a FileError of an error of the host: %s', async (_whose, thrown) => {
  const refused = (): Promise<never> => Promise.reject(thrown);
  const failure = await onDisk('/srv/a', refused).catch((error: unknown) => error);
  expect(isFileError(failure)).toBe(true);
  expect(failure).toMatchObject({ code: 'EACCES', data: { path: '/srv/a' } });
  expect(await onDisk('/srv/a', refused, ['EACCES'])).toBeUndefined();
});
