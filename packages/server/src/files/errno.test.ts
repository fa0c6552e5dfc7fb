import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { errnoOf, fileError } from './errno.js';

const fields = { code: 'ENOENT', errno: -2 };

describe('an error of the host', () => {
  it.each([
    ['of this realm', Object.assign(new Error('no such file'), fields)],
    [
      'of another realm, as under Jest',
      runInNewContext('Object.assign(new Error("no such file"), fields)', { fields }),
    ],
  ])('is told by its errno: %s', (_whose, error) => {
    expect(errnoOf(error)).toBe('ENOENT');
    expect(fileError(error)).toMatchObject({ reason: 'fileNotFound', data: { errno: 'ENOENT' } });
  });

  it.each([
    ['a string', 'ENOENT'],
    ['null', null],
    ['an error without an errno', new Error('ENOENT')],
  ])('is not %s, which is returned as it is', (_what, thrown) => {
    expect(errnoOf(thrown)).toBeUndefined();
    expect(fileError(thrown)).toBe(thrown);
  });
});
