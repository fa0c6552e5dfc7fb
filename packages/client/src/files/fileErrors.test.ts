import { ErrorCode, RemoteError } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { fromRemote, isClientError } from '../errors.js';
import { FileError, fileErrorOf, isFileError } from './fileErrors.js';

const told = (code: number, message: string, data?: unknown, path = '/srv/a'): unknown =>
  fileErrorOf(fromRemote(new RemoteError(code, message, data), 'fs/readFile'), path);

describe('a refusal that is about a file', () => {
  it('has the name of the errno as its code, the path, what happened and what to do', () => {
    const error = told(ErrorCode.notFound, 'No such file or directory (os error 2)', {
      reason: 'fileNotFound',
      errno: 'ENOENT',
      path: '/srv/a',
    });
    expect(error).toBeInstanceOf(FileError);
    expect(isFileError(error)).toBe(true);
    expect(isClientError(error)).toBe(true);
    expect(error).toMatchObject({
      code: 'ENOENT',
      message:
        'the server refused fs/readFile: No such file or directory (/srv/a); check the path; a folder on the way to it may be missing',
      data: { path: '/srv/a', errno: 'ENOENT', reason: 'fileNotFound', wireCode: -32004 },
    });
  });

  it.each([
    ['permissionDenied', 'EPERM', 'EPERM'],
    ['noSpace', 'EDQUOT', 'EDQUOT'],
    ['fileFailed', 'EROFS', 'EROFS'],
    ['fileFailed', 'EPROTO', 'FILE_FAILED'],
    ['notRegularFile', undefined, 'NOT_REGULAR_FILE'],
    ['fileTooLarge', undefined, 'FILE_TOO_LARGE'],
    ['fileChanged', undefined, 'FILE_CHANGED'],
    ['unknownHandle', undefined, 'UNKNOWN_HANDLE'],
    ['archiveIncomplete', undefined, 'BAD_ARCHIVE'],
  ])('of the reason %s with %s is %s', (reason, errno, code) => {
    expect(told(ErrorCode.internal, 'x', { reason, errno })).toMatchObject({ code, data: { reason, path: '/srv/a' } });
  });

  it.each([
    [-32004, 'No such file or directory (os error 2)', 'ENOENT'],
    [-32603, 'Symbolic link loop (os error 40)', 'ELOOP'],
    [-32603, 'Protocol error (os error 71)', 'FILE_FAILED'],
    [-32004, 'unknown file handle `h`', 'UNKNOWN_HANDLE'],
    [-32600, 'path `/srv` is not a file', 'NOT_REGULAR_FILE'],
    [-32600, 'file is too large to read: limit is 536870912 bytes', 'FILE_TOO_LARGE'],
    [-32004, 'gone', 'ENOENT'],
  ])('of a foreign server, %i %s, is %s', (code, message, expected) => {
    const error = told(code, message);
    expect(error).toMatchObject({ code: expected, data: { path: '/srv/a', wireCode: code } });
    expect(String(error)).toContain('/srv/a');
  });

  it('names the argument at fault besides the path', () => {
    expect(told(ErrorCode.invalidRequest, 'too many', { reason: 'invalidArgument', field: 'maxBytes' })).toMatchObject({
      message: 'the server refused fs/readFile: too many (/srv/a, maxBytes); correct the named field',
    });
  });

  it('is none where the refusal is about something else', () => {
    expect(told(ErrorCode.invalidRequest, 'busy', { reason: 'tooManyRequests' })).toMatchObject({
      name: 'ClientError',
      code: 'SERVER_ERROR',
    });
    expect(told(ErrorCode.internal, 'boom')).toMatchObject({ code: 'SERVER_ERROR' });
    expect(told(ErrorCode.methodNotFound, 'no', { reason: 'unknownMethod' })).toMatchObject({ code: 'NOT_SUPPORTED' });
    const other = new Error('other');
    expect(fileErrorOf(other, '/srv/a')).toBe(other);
  });

  it('keeps its class with more data', () => {
    const error = new FileError('ENOSPC', 'full', { path: '/srv/a' });
    expect(error.with({ wireCode: 1 })).toBeInstanceOf(FileError);
    expect(error.with({ wireCode: 1 }).data).toEqual({ path: '/srv/a', wireCode: 1 });
  });
});
