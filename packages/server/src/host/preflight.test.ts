import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WireError } from '@exec-server/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SpawnRequest } from './child.js';
import { hostLimits, pageBytes, softLimit } from './hostLimits.js';
import { checkStart, explainFailedExec } from './preflight.js';

let folder = '';
const file = (name: string): string => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'preflight-'));
  writeFileSync(file('plain'), 'x');
  mkdirSync(file('first'));
  mkdirSync(file('second'));
  mkdirSync(file('first/tool'));
  writeFileSync(file('second/tool'), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(file('lost'), '#! /no/such/interpreter -x\n', { mode: 0o755 });
  writeFileSync(file('nested'), `#!${file('lost')}\n`, { mode: 0o755 });
  writeFileSync(file('denied'), `#!${file('plain')}\n`, { mode: 0o755 });
  symlinkSync('loop', file('loop'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function request(changes: Partial<SpawnRequest>): SpawnRequest {
  return { argv: ['/bin/true'], cwd: folder, env: {}, stdin: 'none', ...changes };
}

function thrownBy(action: () => unknown): unknown {
  try {
    return action();
  } catch (error) {
    return error;
  }
}

function failure(changes: Partial<SpawnRequest>): Record<string, unknown> {
  const error = thrownBy(() => checkStart(request(changes)));
  if (!(error instanceof WireError)) throw new Error(`expected a WireError, got ${String(error)}`);
  const { kind: _, ...data } = error.data;
  return { message: error.message, ...data };
}

describe('what a start must satisfy before the fork', () => {
  it('argv names a program', () => {
    expect(failure({ argv: [] })).toEqual({
      reason: 'emptyArgv',
      message: 'argv must not be empty',
      field: 'argv',
    });
    expect(failure({ argv: [''] })).toMatchObject({
      reason: 'emptyProgram',
      message: 'missing program for pipe spawn',
    });
  });

  it('there is no NUL anywhere', () => {
    const message = 'nul byte found in provided data';
    expect(failure({ argv: ['/bin/true', 'a\0b'] })).toEqual({ reason: 'nulByte', message, field: 'argv[1]' });
    expect(failure({ argv: ['/bin/\0true'] })).toMatchObject({ field: 'argv[0]' });
    expect(failure({ arg0: '\0' })).toMatchObject({ field: 'arg0' });
    expect(failure({ env: { NAME: '\0' } })).toMatchObject({ field: 'env.NAME' });
    expect(failure({ env: { 'N\0': '' } })).toMatchObject({ reason: 'nulByte', field: 'env.N\0' });
    expect(failure({ cwd: '/\0' })).toMatchObject({ field: 'cwd' });
  });

  it('each argument and variable is at most as long as the kernel takes', () => {
    const { argumentBytes } = hostLimits();
    const longest = 'x'.repeat(argumentBytes);
    expect(checkStart(request({ argv: ['/bin/true', longest] }))).toBe('/bin/true');
    expect(spawnSync('/bin/true', [longest]).status).toBe(0);
    const tooLong = {
      reason: 'argumentTooLong',
      message: 'Argument list too long (os error 7)',
      limitBytes: argumentBytes,
    };
    expect(failure({ argv: ['/bin/true', `${longest}x`] })).toEqual({ ...tooLong, field: 'argv[1]' });
    expect(failure({ argv: ['/bin/true', `é${'x'.repeat(argumentBytes - 1)}`] })).toMatchObject({
      field: 'argv[1]',
    });
    expect(failure({ arg0: `${longest}x` })).toMatchObject({ reason: 'argumentTooLong', field: 'arg0' });
    expect(failure({ env: { NAME: longest } })).toEqual({ ...tooLong, field: 'env.NAME' });
  });

  it('all of them together are at most as long as the kernel takes, to the byte', () => {
    const { totalBytes } = hostLimits();
    const block = 'x'.repeat(100_000);
    const many = Array.from({ length: Math.ceil(totalBytes / 100_000) }, () => block);
    expect(failure({ argv: ['/bin/true', ...many] })).toEqual({
      reason: 'argumentsTooLong',
      message: 'Argument list too long (os error 7)',
      field: 'argv',
      limitBytes: totalBytes,
    });
    const env = Object.fromEntries(many.map((text, index) => [`V${index}`, text]));
    expect(failure({ env })).toMatchObject({ reason: 'argumentsTooLong', field: 'env' });

    // What is left once the program path twice, the blocks and one last argument are counted with NUL and pointer.
    const blocks = many.slice(1);
    const fixed = '/bin/true'.length + 1 + ('/bin/true'.length + 1 + 8) + blocks.length * (100_000 + 1 + 8) + 1 + 8;
    const last = (extra: number): string => 'y'.repeat(totalBytes - fixed + extra);
    for (const [extra, fits] of [
      [0, true],
      [1, false],
    ] as const) {
      const argv = ['/bin/true', ...blocks, last(extra)];
      expect(spawnSync('/bin/true', argv.slice(1), { env: { NODE_V8_COVERAGE: undefined } }).status === 0).toBe(fits);
      expect(typeof thrownBy(() => checkStart(request({ argv }))) === 'string').toBe(fits);
    }
  });

  it('cwd is a folder that may be entered', () => {
    expect(failure({ cwd: file('none') })).toEqual({
      reason: 'cwdNotFound',
      message: 'No such file or directory (os error 2)',
      path: file('none'),
      field: 'cwd',
    });
    expect(failure({ cwd: '' })).toMatchObject({ reason: 'cwdNotFound' });
    expect(failure({ cwd: file('plain') })).toMatchObject({
      reason: 'cwdNotDirectory',
      message: 'Not a directory (os error 20)',
    });
    expect(failure({ cwd: file('loop') })).toMatchObject({ reason: 'spawnFailed', path: file('loop') });
  });

  it.skipIf(process.getuid?.() === 0)('cwd without permission is denied', () => {
    mkdirSync(file('closed'), { mode: 0o600 });
    expect(failure({ cwd: file('closed') })).toMatchObject({
      reason: 'cwdDenied',
      message: 'Permission denied (os error 13)',
    });
  });

  it('a program with a slash exists, is a file and is executable', () => {
    expect(failure({ argv: ['/no/such'] })).toEqual({
      reason: 'programNotFound',
      message: 'No such file or directory (os error 2)',
      path: '/no/such',
    });
    const denied = { reason: 'notExecutable', message: 'Permission denied (os error 13)' };
    expect(failure({ argv: ['./plain'] })).toEqual({ ...denied, path: './plain' });
    expect(failure({ argv: [folder] })).toEqual({ ...denied, path: folder });
    expect(failure({ argv: ['/dev/null'] })).toMatchObject({ reason: 'notExecutable' });
    expect(checkStart(request({ argv: ['second/tool'] }))).toBe('second/tool');
  });

  it('a program without a slash is looked up in the PATH of the child, past folders of that name', () => {
    const path = ['/nowhere', file('plain'), file('first'), file('second'), '/bin'].join(':');
    expect(checkStart(request({ argv: ['tool'], env: { PATH: path } }))).toBe(file('second/tool'));
    expect(checkStart(request({ argv: ['tool'], env: { PATH: ':/bin' }, cwd: file('second') }))).toBe('./tool');
    expect(checkStart(request({ argv: ['tool'], env: { PATH: 'second' } }))).toBe('second/tool');
    expect(failure({ argv: ['tool'], env: { PATH: file('first') } })).toMatchObject({ reason: 'notExecutable' });
    expect(failure({ argv: ['plain'], env: { PATH: `${folder}:/bin` } })).toMatchObject({
      reason: 'notExecutable',
    });
    expect(failure({ argv: ['true'], env: { PATH: '/nowhere' } })).toMatchObject({
      reason: 'programNotFound',
      path: 'true',
    });
    expect(checkStart(request({ argv: ['true'] }))).toBe('/bin/true');
  });
});

describe('an exec that failed', () => {
  const explain = async (code: string, path: string): Promise<unknown> => {
    const { reason, path: named } = (await explainFailedExec(code, path, folder)).data;
    return [reason, named];
  };

  it('names the interpreter that is missing or not executable, through scripts that interpret scripts', async () => {
    expect(await explain('ENOENT', './lost')).toEqual(['interpreterNotFound', '/no/such/interpreter']);
    expect(await explain('ENOENT', 'nested')).toEqual(['interpreterNotFound', '/no/such/interpreter']);
    expect(await explain('EACCES', file('denied'))).toEqual(['notExecutable', file('plain')]);
  });

  it('names the program otherwise', async () => {
    expect(await explain('ENOENT', '/no/such')).toEqual(['programNotFound', '/no/such']);
    expect(await explain('EACCES', file('plain'))).toEqual(['notExecutable', file('plain')]);
    expect(await explain('ENOEXEC', file('plain'))).toEqual(['badExecutable', file('plain')]);
    expect(await explain('ETXTBSY', file('plain'))).toEqual(['spawnFailed', file('plain')]);
  });

  it('names a working directory that went away', async () => {
    mkdirSync(file('brief'));
    rmSync(file('brief'), { recursive: true });
    const { data } = await explainFailedExec('ENOENT', '/bin/true', file('brief'));
    expect(data).toMatchObject({ reason: 'cwdNotFound', path: file('brief') });
  });
});

describe('limits of the host', () => {
  it('reads the soft limit of a line', () => {
    const limits =
      'Limit                     Soft Limit           Hard Limit\nMax stack size            8388608              unlimited            bytes\nMax open files            unlimited            20000                files\n';
    expect(softLimit(limits, 'Max stack size')).toBe(8_388_608);
    expect(softLimit(limits, 'Max open files')).toBe(Number.POSITIVE_INFINITY);
    expect(softLimit('', 'Max open files')).toBe(Number.POSITIVE_INFINITY);
  });

  it('reads the page size of the auxiliary vector', () => {
    expect(pageBytes(Buffer.from(new BigUint64Array([3n, 99n, 6n, 65_536n, 0n, 0n]).buffer))).toBe(65_536);
    expect(pageBytes(Buffer.alloc(0))).toBe(4096);
  });
});
