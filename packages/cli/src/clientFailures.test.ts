import { ClientError, type ClientErrorCode, type ClientErrorData, FileError, isFileError } from '@exec-server/client';
import { describe, expect, it } from 'vitest';
import { failureOfCursor, failureOfRun, failureOfStart } from './clientFailures.js';
import { failureOfConnect, failureOfSession } from './connectFailures.js';
import { CommandError } from './exitCodes.js';
import { faultOfOperand } from './fileFailures.js';
import { parseOperand, parseRemote } from './operands.js';

const URL = 'ws://host:7000/';
const error = (code: ClientErrorCode, data: ClientErrorData = {}, message = 'what the client says'): ClientError =>
  new ClientError(code, message, { url: URL, ...data });

describe('a process that is out of reach', () => {
  it('is said to run on, with the command line that goes on with it where there is one', () => {
    const lost = error('RECOVERY_FAILED');
    expect(failureOfRun(lost).message).toMatch(
      /did not come back; the command may run on .*, its output is out of reach$/,
    );
    expect(failureOfRun(lost, 'exec-server attach p').message).toMatch(
      /lease of its session is over, `exec-server attach p` goes on with it once the server can be reached$/,
    );
  });

  it('is told from one that was killed', () => {
    const killed = failureOfRun(error('SERVER_GONE', { reason: 'otherEpoch' })).message;
    expect(killed).toBe(`${URL} was restarted, and the command was killed; run it again`);
  });
});

describe('a process that was not started', () => {
  it.each<[string, number, RegExp]>([
    ['programNotFound', 127, /not found; check the name/],
    ['notExecutable', 126, /not executable.*chmod/],
    ['cwdNotFound', 1, /\/srv does not exist on the server; create it, or pass another --cwd$/],
    ['invalidPath', 2, /^--cwd srv: expected an absolute path/],
    ['duplicateProcess', 1, /has a process build already, which is not touched; pass another --id$/],
    ['startDiffers', 1, /has a process build already/],
  ])('by %s ends with %i', (reason, exitCode, words) => {
    const refused = error('SERVER_ERROR', { reason, serverData: { path: '/srv' } });
    expect(failureOfStart('make', refused, { cwd: 'srv', processId: 'build' })).toMatchObject({
      exitCode,
      message: expect.stringMatching(words) as unknown,
    });
  });

  it('for another reason is said in the words of the server, without the name of a method', () => {
    const refused = error('SERVER_ERROR', {}, 'the server refused process/start: the session is full; end some');
    expect(failureOfStart('make', refused).message).toBe('cannot start make: the session is full; end some');
  });
});

describe('a session that cannot be had', () => {
  it('names the options of the command, and no other', () => {
    const codes = ['SESSION_EXPIRED', 'SERVER_GONE', 'RECOVERY_FAILED', 'TAKEN_OVER'] as const;
    const messages = codes.map((code) => failureOfSession(error(code), { sessionFile: 's' }).message);
    expect(new Set(messages).size).toBe(codes.length);
    for (const message of messages)
      expect(message).not.toMatch(/resumeSessionId|takeOver|epoch|new client|what the client/);
    expect(messages[0]).toContain('`exec-server run --session-file s -- COMMAND` begins a new one');
  });

  it('is told from one that never was', () => {
    const unknown = failureOfSession(error('SESSION_EXPIRED', { reason: 'unknownSession' }), {});
    expect(unknown.message).toMatch(/knows no session of this id.*check the id/);
    expect(unknown.message).not.toContain('killed');
  });

  it('or whose cursor is too far ahead says how far it may be', () => {
    const ahead = error('OUTPUT_LOST', { cursor: 9, lastSeq: 4 });
    expect(failureOfCursor(ahead, 'p')?.message).toMatch(/no event 9 yet, its last is 4; .*--after 4 /);
    expect(failureOfCursor(error('OUTPUT_LOST', { cursor: 9 }), 'p')).toBeUndefined();
  });
});

describe('a connection that was refused', () => {
  const refused = error('REFUSED', { status: 401, body: 'expired websocket jwt' });

  it('for its token names the option, and the file where one was given', () => {
    expect(failureOfConnect(refused, { url: URL }).message).toMatch(/wants a token .*; pass .* --token-file$/);
    expect(failureOfConnect(refused, { url: URL, tokenFile: 't' }).message).toMatch(
      /does not take the token in t \(expired websocket jwt\)/,
    );
  });

  it('by a server of its own names the check that helps', () => {
    expect(failureOfConnect(error('CONNECT_FAILED'), {}).message).toMatch(/so nothing runs: .*`exec-server doctor`/);
  });

  it('is nothing else', () => {
    const ended = error('SESSION_EXPIRED');
    expect(failureOfConnect(ended, { url: URL })).toBe(ended);
    expect(failureOfConnect(error('REFUSED'), { url: URL })).toBeInstanceOf(CommandError);
  });
});

describe('a path that cannot be used', () => {
  const fault = (code: ClientErrorCode, data: ClientErrorData, operand = parseRemote('/srv/a')): string => {
    const failed = error(code, data);
    return faultOfOperand(isFileCode(code) ? new FileError(code, failed.message, failed.data) : failed, operand);
  };

  it('is named once, with its side', () => {
    expect(fault('ENOENT', { path: '/srv/a' })).toBe('/srv/a on the server: it does not exist; check the path');
    expect(fault('ENOENT', { path: 'a', local: true }, parseOperand('a'))).toBe(
      'a here: it does not exist; check the path',
    );
  });

  it('is named besides what was to go there', () => {
    expect(fault('ENOENT', { path: '/no/a' }, parseOperand('/srv/a'))).toBe(
      '/srv/a: /no/a on the server: a folder on the way to it does not exist; create that first',
    );
  });

  it('is told by what it is', () => {
    const kind = (name: string): string => fault('NOT_REGULAR_FILE', { path: '/srv/a', serverData: { kind: name } });
    expect(kind('directory')).toMatch(/it is a folder; `exec-server ls` shows/);
    expect(kind('fifo')).toMatch(/it is a FIFO, and no file$/);
    expect(kind('blockDevice')).toMatch(/it is a device, and no file$/);
  });

  it('says whose permission lacks', () => {
    expect(fault('EACCES', { path: '/srv/a' })).toMatch(/the user of the server may not/);
    expect(fault('EACCES', { path: '/srv/a', local: true }, parseOperand('/srv/a'))).toMatch(/here: this user may not/);
  });

  it('or a call that failed otherwise keeps the words of the client', () => {
    expect(fault('REQUEST_TIMEOUT', {})).toBe('/srv/a: what the client says');
  });
});

const isFileCode = (code: ClientErrorCode): code is FileError['code'] => isFileError(new ClientError(code, ''));
