/** Starts that cannot be: the answer says why, and nothing of them is left. */
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StartOptions } from '@exec-server/client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Trial, wires } from '../../support/trial.js';

const pageBytes = Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' }));
const longest = 32 * pageBytes - 1;
/** More than all arguments together may take. */
const tooMany = Math.ceil(Number(execFileSync('getconf', ['ARG_MAX'], { encoding: 'utf8' })) / 100_000) + 10;

describe.each(wires)('refused starts over %s', (wire) => {
  let trial: Trial;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'refusals-'));
    await writeFile(join(folder, 'plain'), '#!/bin/sh\n', { mode: 0o644 });
    await writeFile(join(folder, 'orphan'), '#!/no/such/interpreter -x\n', { mode: 0o755 });
    await writeFile(join(folder, 'text'), 'echo from a text file\n', { mode: 0o755 });
    await writeFile(join(folder, 'noise'), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 0, 0]), { mode: 0o755 });
    await mkdir(join(folder, 'closed'));
    await chmod(join(folder, 'closed'), 0o000);
    trial = await Trial.open(wire);
  });
  afterEach(() => trial.expectClean());
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await trial.close();
  });

  /** The refusal, after the check that the id is free again. */
  async function refusal(options: StartOptions): Promise<unknown> {
    const processId = `refused-${Math.random()}`;
    const error: unknown = await trial.client.start({ ...options, processId }).then(
      () => 'nothing was refused',
      (reason: unknown) => reason,
    );
    const { processes } = await trial.client.call('process/list', {});
    expect(processes.map((process) => process.processId)).not.toContain(processId);
    await expect(trial.client.call('process/read', { processId })).rejects.toMatchObject({
      data: { reason: 'unknownProcess' },
    });
    const again = await trial.client.start({ argv: ['true'], processId });
    expect((await again.wait()).exitCode).toBe(0);
    return error;
  }

  it('runs a program with the longest argument, and refuses one byte more by its index', async () => {
    const result = await trial.client.run(['/bin/true', 'x'.repeat(longest)]);
    expect(result.exitCode).toBe(0);
    expect(await refusal({ argv: ['/bin/true', 'x'.repeat(longest + 1)] })).toMatchObject({
      code: 'SERVER_ERROR',
      data: { reason: 'argumentTooLong', serverData: { field: 'argv[1]', limitBytes: longest, kind: 'spawnFailed' } },
    });
  });

  it('counts bytes and not characters', async () => {
    const euros = '€'.repeat(Math.floor(longest / 3));
    expect((await trial.client.run(['/bin/true', euros])).exitCode).toBe(0);
    expect(await refusal({ argv: ['/bin/true', `${euros}€`] })).toMatchObject({ data: { reason: 'argumentTooLong' } });
  });

  it('refuses arguments, or variables, that are too long together, and names them', async () => {
    const long = 'x'.repeat(100_000);
    const argv = ['/bin/true', ...Array.from({ length: tooMany }, () => long)];
    expect(await refusal({ argv })).toMatchObject({
      data: { reason: 'argumentsTooLong', serverData: { field: 'argv' } },
    });
    const env = Object.fromEntries(Array.from({ length: tooMany }, (_, index) => [`V${index}`, long]));
    expect(await refusal({ argv: ['/bin/true'], env })).toMatchObject({
      data: { reason: 'argumentsTooLong', serverData: { field: 'env' } },
    });
  });

  it.each<[name: string, options: StartOptions, reason: string, field: string]>([
    ['NUL in an argument', { argv: ['/bin/true', 'a\0b'] }, 'nulByte', 'argv[1]'],
    ['NUL in a value', { argv: ['/bin/true'], env: { A: 'a\0b' } }, 'nulByte', 'env.A'],
    ['NUL in a name', { argv: ['/bin/true'], env: { 'A\0B': 'x' } }, 'nulByte', 'env.A\0B'],
    ['NUL in arg0', { argv: ['/bin/true'], arg0: 'a\0b' }, 'nulByte', 'arg0'],
    ['an empty argv', { argv: [] }, 'emptyArgv', 'argv'],
    ['an empty program', { argv: [''] }, 'emptyProgram', 'argv[0]'],
    ['a cwd that is no file', { argv: ['/bin/true'], cwd: 'http://here/' }, 'invalidPath', 'cwd'],
  ])('refuses %s before any fork, by field', async (_name, options, reason, field) => {
    expect(await refusal(options)).toMatchObject({ data: { reason, serverData: { field } } });
  });

  it.each<[name: string, argv: string[], cwd: string, reason: string, kind: string, path: string]>([
    ['a missing cwd', ['/bin/true'], 'none', 'cwdNotFound', 'spawnNotFound', 'none'],
    ['a file as cwd', ['/bin/true'], 'plain', 'cwdNotDirectory', 'spawnFailed', 'plain'],
    ['a program without permission', ['./plain'], '.', 'notExecutable', 'spawnPermissionDenied', './plain'],
    ['a folder as program', ['./closed'], '.', 'notExecutable', 'spawnPermissionDenied', './closed'],
    ['a program that is nowhere', ['nosuchprogram'], '.', 'programNotFound', 'spawnNotFound', 'nosuchprogram'],
    ['a missing interpreter', ['./orphan'], '.', 'interpreterNotFound', 'spawnNotFound', '/no/such/interpreter'],
  ])('tells %s by a reason of its own and the path', async (_name, argv, cwd, reason, kind, path) => {
    for (const tty of [false, true]) {
      const error = await refusal({ argv, cwd: join(folder, cwd), tty });
      const shown =
        path.startsWith('.') || path.startsWith('/') || path === 'nosuchprogram' ? path : join(folder, path);
      expect(error).toMatchObject({ code: 'SERVER_ERROR', data: { reason, serverData: { kind } } });
      expect(error).toHaveProperty('data.serverData.path', expect.stringContaining(shown.replace(/^\.\//, '')));
    }
  });

  it.skipIf(process.getuid?.() === 0)('tells a cwd without permission', async () => {
    expect(await refusal({ argv: ['/bin/true'], cwd: join(folder, 'closed') })).toMatchObject({
      data: { reason: 'cwdDenied', serverData: { kind: 'spawnPermissionDenied' } },
    });
  });

  it('tells a binary the kernel does not take from a text file, which runs by the shell', async () => {
    expect((await trial.client.run(['./text'], { cwd: folder })).text()).toBe('from a text file\n');
    const noise = await trial.client.run(['./noise'], { cwd: folder }).catch((error: unknown) => error);
    // The C library gives it to a shell, or the kernel's refusal is the answer.
    expect(noise).toSatisfy((value: unknown) => value instanceof Error || hasExitCode(value));
  });
});

function hasExitCode(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'exitCode' in value && value.exitCode !== 0;
}
