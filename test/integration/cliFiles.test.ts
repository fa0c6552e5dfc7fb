import { execFileSync } from 'node:child_process';
import {
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { command, serve, type Serving } from '../support/command.js';
import { childrenOf, serverProgram } from '../support/links.js';
import { full } from '../support/scale.js';
import { linesOfTree, plantTree } from '../support/trees.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;

let folder: string;
let server: Serving;
beforeAll(async () => {
  server = await serve();
});
afterAll(() => server.stop());
beforeEach(async () => {
  folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-cli-files-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const at = (...parts: string[]): string => joinPath(folder, ...parts);
const text = (...parts: string[]): Promise<string> => readFile(at(...parts), 'utf8');

/** On the server of this file. */
const run = (name: string, ...args: string[]): ReturnType<typeof command> =>
  command([name, '--url', server.url, ...args]);

async function plantSome(): Promise<void> {
  await mkdir(at('from', 'sub'), { recursive: true });
  await writeFile(at('from', 'sub', 'file'), 'content\n');
  await symlink('sub/file', at('from', 'link'));
}

describe('exec-server cp', () => {
  it('copies to the server and from it, as cp -r does', async () => {
    await plantSome();
    await mkdir(at('there'));
    const lines = await linesOfTree(at('from'));
    const up = await run('cp', '-r', at('from'), `remote:${at('there')}`);
    expect(up).toMatchObject({ exitCode: 0, stdout: '' });
    expect(up.stderr).toMatch(/^exec-server: 1 file, 2 folders, 1 link; 8 B in [\d.]+ s \(.*\/s\)$/);
    const down = await run('cp', '-rq', `remote:${at('there', 'from')}`, at('new'));
    expect(down).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    const contents = await run('cp', '-rq', `${at('from')}/.`, `remote:${at('there')}/`);
    expect(contents).toMatchObject({ exitCode: 0, stderr: '' });
    for (const place of [at('there', 'from'), at('new')]) expect(await linesOfTree(place)).toEqual(lines);
    expect(await readdir(at('there'))).toEqual(['from', 'link', 'sub']);
  });

  it('takes no folder without -r, and goes on with the other paths', async () => {
    await plantSome();
    const result = await run(
      'cp',
      '-q',
      at('from', 'sub'),
      at('from', 'sub', 'file'),
      at('missing'),
      `remote:${folder}/to/`,
    );
    expect(result.exitCode).toBe(1);
    expect(result.stderr.split('\n')).toEqual([
      expect.stringContaining(`${at('from', 'sub')} is a folder; -r copies it`),
      expect.stringContaining(`${at('missing')} here: it does not exist; check the path`),
    ]);
    expect(await text('to', 'file')).toBe('content\n');
  });

  it('needs a folder for several paths, and a path of the server', async () => {
    await plantSome();
    const file = at('from', 'sub', 'file');
    const [several, local, one] = await Promise.all([
      run('cp', file, file, `remote:${at('plain')}`),
      run('cp', file, at('plain')),
      run('cp', file),
    ]);
    expect(several).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('need a folder') as unknown });
    expect(local).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('both paths are of this host') as unknown,
    });
    expect(one).toMatchObject({ exitCode: 2 });
    expect(await readdir(folder)).toEqual(['from']);
  });

  it('copies on the server, where both paths are of it', async () => {
    await plantSome();
    await mkdir(at('there'));
    const results = await Promise.all([
      run('cp', '-rq', `remote:${at('from')}`, `remote:${at('there')}`),
      run('cp', '-q', `remote:${at('from', 'sub', 'file')}`, `remote:${at('there', 'made')}/`),
    ]);
    for (const result of results) expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await text('there', 'from', 'sub', 'file')).toBe('content\n');
    expect(await text('there', 'made', 'file')).toBe('content\n');
  });

  it('replaces nothing with --no-clobber, and follows links with --follow-symlinks', async () => {
    await plantSome();
    await writeFile(at('plain'), 'old');
    const [result] = await Promise.all([
      run('cp', '--no-clobber', at('from', 'link'), `remote:${at('plain')}`),
      run('cp', '-rq', '--follow-symlinks', `remote:${at('from')}`, at('to')),
    ]);
    expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('exists') as unknown });
    expect(await text('plain')).toBe('old');
    expect((await stat(at('to', 'link'))).isFile()).toBe(true);
    await writeFile(at('from', 'sub', 'file'), 'new');
    expect(await text('to', 'link')).toBe('content\n');
  });

  it('names what it leaves out, in one line each, and fails then', async () => {
    await plantSome();
    execFileSync('mkfifo', [at('from', 'a\nb')]);
    const result = await run('cp', '-rq', at('from'), `remote:${at('to')}`);
    expect(result).toEqual({ exitCode: 1, stdout: '', stderr: `exec-server: left out ${at('from')}/a\\nb: a FIFO` });
    expect(await text('to', 'link')).toBe('content\n');
  });

  it('starts a server for itself without --url, whose relative paths begin here', async () => {
    await plantSome();
    const result = await execa(process.execPath, [serverProgram, 'cp', '-q', 'remote:from/sub/file', 'copy'], {
      cwd: folder,
    });
    expect(result).toMatchObject({ stdout: '', stderr: '' });
    expect(await text('copy')).toBe('content\n');
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('stops at %s with its code and leaves no part of a file', async (signal, code) => {
    await (await open(at('large'), 'w')).close();
    await truncate(at('large'), 4 * 1024 * MIB);
    await mkdir(at('to'), { recursive: true });
    const program = execa(
      process.execPath,
      [serverProgram, 'cp', '--url', server.url, at('large'), `remote:${at('to')}`],
      {
        reject: false,
      },
    );
    await until(async () => (await readdir(at('to'))).length > 0, 'the stage');
    program.kill(signal);
    expect(await program).toMatchObject({
      exitCode: code,
      stderr: expect.stringContaining('stopped; what was complete stays; run it again for the rest') as unknown,
    });
    expect(await readdir(at('to'))).toEqual([]);
  });

  it('says in its own words that the connection did not come back', async () => {
    await (await open(at('large'), 'w')).close();
    await truncate(at('large'), 4 * 1024 * MIB);
    const args = [serverProgram, 'cp', '-q', at('large'), `remote:${at('to')}`];
    const program = execa(process.execPath, args, { reject: false });
    await until(async () => (await readdir(folder)).length > 1, 'the stage');
    const [child] = childrenOf(program.pid ?? 0);
    if (child === undefined) throw new Error('no server was started');
    process.kill(child, 'SIGKILL');
    const { exitCode, stderr } = await program;
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^exec-server: the server has ended or was restarted; what was complete stays; run it again$/m,
    );
  });

  it.runIf(full)('carries 20,000 files and one of 2 GiB in flat memory', async () => {
    await plantTree(at('from'), 20_000, (index) => index % 251);
    await (await open(at('from', 'large'), 'w')).close();
    await truncate(at('from', 'large'), 2 * 1024 * MIB);
    const lines = await linesOfTree(at('from'));
    const ways = [
      [at('from'), `remote:${at('up')}`],
      [`remote:${at('up')}`, at('down')],
    ];
    for (const paths of ways) {
      const program = execa(process.execPath, [serverProgram, 'cp', '-rq', '--url', server.url, ...paths]);
      let peakKib = 0;
      const timer = setInterval(() => {
        readFile(`/proc/${program.pid}/status`, 'utf8').then(
          (status) => (peakKib = Math.max(peakKib, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0))),
          // It has ended.
          () => undefined,
        );
      }, 100);
      await program;
      clearInterval(timer);
      expect(peakKib).toBeGreaterThan(0);
      // 190 to 250 MiB on a host with two busy cores, of which 140 are there before the large file.
      expect(peakKib / 1024).toBeLessThan(300);
    }
    expect(await linesOfTree(at('up'))).toEqual(lines);
    expect(await linesOfTree(at('down'))).toEqual(lines);
  });
});

describe('exec-server cat', () => {
  it('writes files one behind the other, byte by byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 3 * MIB }, (_, index) => index % 253));
    await writeFile(at('bytes'), bytes);
    await writeFile(at('more'), 'more\n');
    const args = [serverProgram, 'cat', '--url', server.url, at('bytes'), `remote:${at('more')}`];
    const { stdout } = await execa(process.execPath, args, { encoding: 'buffer', stripFinalNewline: false });
    expect(Buffer.compare(Buffer.from(stdout), Buffer.concat([bytes, Buffer.from('more\n')]))).toBe(0);
  });

  it('says what is missing, and goes on', async () => {
    await writeFile(at('there'), 'there');
    const result = await run('cat', at('missing'), folder, at('there'));
    expect(result).toMatchObject({ exitCode: 1, stdout: 'there' });
    expect(result.stderr.split('\n')).toEqual([
      expect.stringMatching(/ on the server: it does not exist; check the path$/) as unknown,
      `exec-server: ${folder} on the server: it is a folder; \`exec-server ls\` shows what is in it, \`exec-server cp -r\` copies it`,
    ]);
  });

  it.each(['cat', 'ls'])('fails when its output cannot be written: %s', async (name) => {
    await writeFile(at('file'), 'content');
    const script = `"$0" "$1" "$2" --url "$3" "$4" >/dev/full; echo $?`;
    const args = ['-c', script, process.execPath, serverProgram, name, server.url, at('file')];
    const { stdout, stderr } = await execa('bash', args);
    expect(stdout).toBe('1');
    expect(stderr).toMatch(/^exec-server: the output cannot be written \(.*\)$/);
  });

  it('ends when nobody reads it any more', async () => {
    await (await open(at('large'), 'w')).close();
    await truncate(at('large'), 1024 * MIB);
    const script = `"$0" "$1" cat --url "$2" "$3" | head -c 3 >/dev/null; echo "\${PIPESTATUS[0]}"`;
    const args = ['-c', script, process.execPath, serverProgram, server.url, at('large')];
    expect(execFileSync('bash', args, { encoding: 'utf8' })).toBe('141\n');
  });
});

describe('exec-server ls', () => {
  it('lists names, with -l what they are, and nothing that a terminal obeys', async () => {
    await writeFile(at('.hidden'), '');
    await writeFile(at('a\u001b[31m\n'), '12345');
    await writeFile(Buffer.concat([Buffer.from(at('f')), Buffer.from([0xff])]), '');
    await symlink('away', at('link'));
    await utimes(at('a\u001b[31m\n'), 0, Date.UTC(2026, 0, 2, 3, 4, 5) / 1000);
    expect(await run('ls', folder)).toEqual({ exitCode: 0, stdout: 'a\\x1b[31m\\n\nf\\xff\nlink', stderr: '' });
    const { stdout } = await run('ls', '-la', folder);
    const lines = stdout.split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[1]).toMatch(/^-rw-r--r-- +5 {2}2026-01-02 03:04 {2}a\\x1b\[31m\\n$/);
    expect(lines[3]).toMatch(/^lrwxrwxrwx +4 .* link -> away$/);
  });

  it('has a title for each of several folders, shows files by themselves, and fails for what is missing', async () => {
    await plantSome();
    const result = await run('ls', at('from'), at('from', 'sub', 'file'), at('from', 'sub'), at('missing'));
    expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(at('missing')) as unknown });
    expect(result.stdout).toBe(
      `${at('from')}:\nlink\nsub\n${at('from', 'sub', 'file')}\n\n${at('from', 'sub')}:\nfile`,
    );
  });

  it('begins at the working directory of the server', async () => {
    await plantSome();
    const { stdout } = await execa(process.execPath, [serverProgram, 'ls'], { cwd: at('from') });
    expect(stdout).toBe('link\nsub');
    const { stdout: below } = await execa(process.execPath, [serverProgram, 'ls', 'remote:from/sub'], { cwd: folder });
    expect(below).toBe('file');
  });
});

describe('the help of the file commands', () => {
  it('has examples', async () => {
    const names = ['cp', 'cat', 'ls'];
    const helps = await Promise.all(names.map((name) => command([name, '--help'])));
    for (const [index, { stdout, exitCode }] of helps.entries()) {
      expect(exitCode).toBe(0);
      expect(stdout).toContain(`  exec-server ${names[index]} --url ws://`);
    }
  });
});
