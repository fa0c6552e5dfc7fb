/** The examples as they stand: each is a program that shows what it promises, ends by itself and leaves nothing. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runClean } from '../support/runClean.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const examples = ['stdio-agent/agent.mjs', 'remote/remote.mjs', 'embedded/embedded.mjs'] as const;
const read = (path: string): Promise<string> => readFile(join(root, 'examples', path), 'utf8');

const runExample = (path: (typeof examples)[number]): Promise<string> => runClean(join(root, 'examples', path));

describe('the examples', () => {
  it('show an agent that answers a question, is told what was left out, and kills', async () => {
    const stdout = await runExample('stdio-agent/agent.mjs');
    expect(stdout).toMatch(/^building\nDeploy\? \n/);
    expect(stdout).toMatch(/text: 'It is yes\\n',[^}]*running: false,[^}]*exitCode: 0/);
    const kept = String.raw`naïve café\nnaïve café\n[6499950 bytes left out]\naïve café\nnaïve café\n`;
    expect(stdout).toContain(`text: '${kept}',`);
    expect(stdout).toMatch(/exitCode: 143,\s+signal: 'SIGTERM',\s+reason: 'terminated'/);
  });

  it('show a job that goes on through cuts, and a refusal', async () => {
    const lines = (await runExample('remote/remote.mjs')).split('\n');
    expect(lines[0]).toBe('wrong token: REFUSED, status 401');
    expect(lines[1]).toBe('connection: ready');
    expect(lines.at(-1)).toBe('connection: closed');
    const [, cuts, exitCode, bytes] = /cuts: (\d+), exit code: (\d+), bytes: (\d+)/.exec(lines.join('\n')) ?? [];
    expect(Number(cuts)).toBeGreaterThanOrEqual(1);
    const [, pid = ''] = /process (\d+) wrote 10000 to 99999/.exec(lines.join('\n')) ?? [];
    expect({ exitCode, bytes: Number(bytes) }).toEqual({ exitCode: '0', bytes: 540_000 + 2 * (pid.length + 1) });
    expect(lines).toContain('connection: recovering');
  });

  it('show a server in the program of its client, and nothing of it after the end', async () => {
    const lines = (await runExample('embedded/embedded.mjs')).split('\n');
    expect(lines).toEqual([
      "exit code 0: [ 'apple', 'pear' ]",
      'before: { connections: 1, sessions: 1, runningProcesses: 1, openFiles: 0 }',
      'after: { connections: 0, sessions: 0, runningProcesses: 0, openFiles: 0 }',
      'nothing is left to wait for: the program ends by itself',
    ]);
  });

  it.each(examples)('import public entry points that their package names: %s', async (path) => {
    const used = [...(await read(path)).matchAll(/from '([^']+)'/g)].map((match) => match[1] ?? '');
    const others = used.filter((name) => !name.startsWith('node:'));
    const manifest = JSON.parse(await read(join(path, '..', 'package.json')));
    expect(others.sort()).toEqual(Object.keys(manifest.dependencies));
    expect(manifest.scripts.start).toBe(`node ${path.split('/')[1]}`);
  });
});
