import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { errnoCode } from './startErrors.js';

it('knows the errno of an error, also of another realm, as under Jest', () => {
  expect(errnoCode(Object.assign(new Error('spawn'), { code: 'EACCES' }))).toBe('EACCES');
  expect(errnoCode(runInNewContext('Object.assign(new Error("spawn"), { code: "EACCES" })'))).toBe('EACCES');
  expect(errnoCode(new Error('EACCES'))).toBeUndefined();
  expect(errnoCode({ code: 'EACCES' })).toBeUndefined();
});
