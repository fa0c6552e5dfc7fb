/** Runs a program that is to end well and to leave nothing. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect } from 'vitest';
import { Tag } from './tagged.js';
import { until } from './until.js';

/** Gives it a temporary folder of its own; checks exit code, stderr, and that no process and no file are left. Its stdout. */
export async function runClean(path: string): Promise<string> {
  const tag = new Tag('EXAMPLE');
  const temp = await mkdtemp(join(tmpdir(), 'exec-server-examples-'));
  try {
    const ended = await execa(process.execPath, [path], {
      reject: false,
      env: { ...tag.env, TMPDIR: temp },
      cwd: temp,
    });
    const { exitCode, stderr, stdout } = ended;
    expect({ exitCode, stderr }, stdout).toEqual({ exitCode: 0, stderr: '' });
    await until(() => tag.pids().length === 0, 'what the example started to end', 2_000);
    expect(await readdir(temp)).toEqual([]);
    return stdout;
  } finally {
    tag.killAll();
    await rm(temp, { recursive: true, force: true });
  }
}
