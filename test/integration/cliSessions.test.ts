import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { command, serve, type Serving } from '../support/command.js';
import { isAlive, serverProgram } from '../support/links.js';
import { listen, stopListening } from '../support/listening.js';
import { until } from '../support/until.js';

interface Listed {
  readonly processId: string;
  readonly pid?: number;
  readonly state: string;
  readonly exit?: { readonly exitCode: number; readonly reason: string };
}

let folder: string;
let server: Serving;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-sessions-'));
  file = joinPath(folder, 'session');
  server = await serve();
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});
/** Each test has a session of its own. */
afterEach(() => rm(file, { force: true }));

/** Starts a command that is left to its session; its process id. */
async function detach(...argv: string[]): Promise<string> {
  const result = await command(['run', '--url', server.url, '--session-file', file, '--detach', '--', ...argv]);
  expect(result).toMatchObject({ exitCode: 0, stderr: '' });
  return result.stdout;
}

async function list(): Promise<Listed[]> {
  const { stdout } = await command(['ps', '--session-file', file, '--json']);
  return JSON.parse(stdout) as Listed[];
}

const onSession = (...args: string[]): Promise<{ stdout: string; stderr: string; exitCode: number | undefined }> =>
  command([...args.slice(0, 1), '--session-file', file, ...args.slice(1)]);

describe('exec-server run --session-file', () => {
  it('keeps the file of a session that is out of reach, since its process goes on', async () => {
    const { hostname, port } = new URL(server.url);
    let isOpen = true;
    const ways = new Set<Socket>();
    // The way to the server: the first connection passes, later ones find something else there.
    const way = createServer((near) => {
      near.on('error', () => {});
      if (!isOpen) return near.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
      const far = connectTcp(Number(port), hostname);
      far.on('error', () => {});
      for (const socket of [near, far]) ways.add(socket);
      return near.pipe(far).pipe(near);
    });
    const url = await listen(way);
    const marker = joinPath(folder, 'begun');
    const running = command([
      'run',
      '--url',
      url,
      '--session-file',
      file,
      '--',
      'sh',
      '-c',
      `touch ${marker}; sleep 600`,
    ]);
    await until(() => existsSync(marker), 'the command to run');
    isOpen = false;
    for (const socket of ways) socket.destroy();
    expect(await running).toMatchObject({ exitCode: 1, stdout: '' });
    const { sessionId } = JSON.parse(await readFile(file, 'utf8')) as { sessionId: string };
    const listed = await command(['ps', '--url', server.url, '--session', sessionId, '--json']);
    expect(JSON.parse(listed.stdout)).toMatchObject([{ state: 'running' }]);
    await stopListening();
  });
});

describe('exec-server run --detach', () => {
  it('prints the process id and leaves the command running, in a session whose file is for this user alone', async () => {
    await writeFile(file, '', { mode: 0o644 });
    await rm(file);
    const processId = await detach('sleep', '600');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const [entry] = await list();
    expect(entry).toMatchObject({ processId, state: 'running' });
    expect(isAlive(entry?.pid ?? 0)).toBe(true);
  });

  it('starts further commands in the session that is there', async () => {
    const ids = [await detach('sleep', '600'), await detach('sleep', '601')];
    expect((await list()).map(({ processId }) => processId)).toEqual(ids);
    const attached = await command(['run', '--session-file', file, '--', 'sh', '-c', 'exit 4']);
    expect(attached.exitCode).toBe(4);
    expect((await list()).filter(({ state }) => state === 'running')).toHaveLength(2);
  });

  it('takes a name for the process', async () => {
    const args = ['--url', server.url, '--session-file', file, '--detach', '--id', 'build'];
    expect((await command(['run', ...args, '--', 'sleep', '600'])).stdout).toBe('build');
    expect(await command(['run', ...args, '--', 'sleep', '600'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('build') as unknown,
    });
  });

  it('begins a new session where the one in the file has ended', async () => {
    await detach('sleep', '600');
    const before = await readFile(file, 'utf8');
    await server.stop();
    server = await serve('--listen', server.url);
    const processId = await detach('sleep', '600');
    expect(await readFile(file, 'utf8')).not.toBe(before);
    expect((await list()).map((entry) => entry.processId)).toEqual([processId]);
  });

  it('keeps the session for as long as was asked for', async () => {
    const args = ['--url', server.url, '--session-file', file, '--detach', '--lease-ms', '3600000'];
    await command(['run', ...args, '--', 'sleep', '600']);
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ leaseMs: 3_600_000, url: server.url });
  });
});

describe('the id in a session file', () => {
  it('is sent to no other server than the one it is of', async () => {
    await detach('sleep', '600');
    for (const args of [['ps'], ['kill', 'x'], ['attach', 'x']]) {
      const result = await onSession(...args.slice(0, 1), '--url', 'ws://127.0.0.1:9', ...args.slice(1));
      expect(result).toMatchObject({ exitCode: 2, stdout: '' });
      expect(result.stderr).toContain(`it names a session on ${server.url}, not on ws://127.0.0.1:9`);
    }
  });
});

describe('exec-server run --session-file', () => {
  it('removes the file with its session when the command has ended', async () => {
    const result = await command(['run', '--url', server.url, '--session-file', file, '--', 'true']);
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    await expect(stat(file)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('exec-server ps', () => {
  it('shows state, age, bytes and command of each process', async () => {
    const running = await detach('sh', '-c', 'echo hello; exec sleep 600');
    const ended = await detach('sh', '-c', 'exit 3');
    await until(async () => (await list())[1]?.exit !== undefined, 'the second to end');
    const { stdout, exitCode } = await onSession('ps');
    const lines = stdout.split('\n');
    expect(exitCode).toBe(0);
    expect(lines[0]).toMatch(/^ID +PID +STATE +AGE +BYTES +COMMAND$/);
    expect(lines[1]).toMatch(new RegExp(`^${running} +\\d+ +running +\\d+s +6 +sh -c "echo hello; exec sleep 600"$`));
    expect(lines[2]).toMatch(new RegExp(`^${ended} +\\d+ +closed 3 +\\d+s +0 +sh -c "exit 3"$`));
  });

  it('finds the session by its id, from the environment too', async () => {
    const processId = await detach('sleep', '600');
    const { sessionId } = JSON.parse(await readFile(file, 'utf8')) as { sessionId: string };
    const byFlag = await command(['ps', '--url', server.url, '--session', sessionId]);
    const env = { EXEC_SERVER_SESSION: sessionId };
    const byEnvironment = await command(['ps', '--url', server.url], { env });
    for (const { stdout } of [byFlag, byEnvironment]) expect(stdout).toContain(processId);
  });
});

describe('exec-server kill', () => {
  it('ends a process, gently first, and says how', async () => {
    const processId = await detach('sh', '-c', 'trap "exit 5" TERM; while :; do sleep 0.02; done');
    const result = await onSession('kill', processId);
    expect(result).toMatchObject({ exitCode: 0, stdout: `${processId} was ended (exit code 5)` });
    expect(await onSession('kill', processId)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('before') as unknown,
    });
  });

  it('ends what has left the process group with --tree', async () => {
    const processId = await detach('sh', '-c', 'setsid sleep 600 & echo $!; wait');
    await until(async () => (await onSession('ps')).stdout.includes('wait'), 'the shell');
    const result = await onSession('kill', '--grace', '0', '--tree', processId);
    expect(result).toMatchObject({ exitCode: 0, stdout: `${processId} was ended (SIGKILL)` });
  });

  it('only sends a signal when it is told to', async () => {
    const processId = await detach('sh', '-c', 'trap "exit 6" USR1; while :; do sleep 0.02; done');
    expect(await onSession('kill', '--signal', 'usr1', processId)).toMatchObject({ exitCode: 0, stdout: '' });
    await until(async () => (await list())[0]?.exit?.exitCode === 6, 'the process to end by it');
    expect((await onSession('kill', '--signal', 'usr1', processId)).exitCode).toBe(1);
  });
});

describe('exec-server attach', () => {
  it('passes the output through from the first event on, or from a later one, and exits with the code', async () => {
    const processId = await detach('sh', '-c', 'echo one; sleep 0.2; echo two >&2; sleep 0.2; exit 9');
    expect(await onSession('attach', processId)).toEqual({ stdout: 'one', stderr: 'two', exitCode: 9 });
    expect(await onSession('attach', '--after', '1', processId)).toEqual({ stdout: '', stderr: 'two', exitCode: 9 });
  });

  it('leaves the process running at Ctrl-C, and says from where to go on', async () => {
    const processId = await detach('sh', '-c', 'echo one; exec sleep 600');
    const attached = execa(process.execPath, [serverProgram, 'attach', '--session-file', file, processId], {
      reject: false,
      stdin: 'ignore',
    });
    attached.stdout.once('data', () => attached.kill('SIGINT'));
    const { exitCode, stdout, stderr } = await attached;
    expect([exitCode, stdout]).toEqual([130, 'one']);
    expect(stderr).toMatch(/running; `exec-server attach --session-file \S+ --after 1 \S+` goes on/);
    expect(await list()).toMatchObject([{ processId, state: 'running' }]);
  });
});

describe('a session that is not to be had', () => {
  it.each([
    ['none is named', ['ps'], 2, /which session/],
    ['its file is missing', ['ps', '--session-file', '/no/such'], 1, /no such file/],
    ['it has no server', ['ps', '--url', 'ws://127.0.0.1:9', '--session', 'x'], 1, /127\.0\.0\.1:9/],
    ['a signal and a grace at once', ['kill', '--signal', 'INT', '--grace', '1', 'p'], 2, /nothing else/],
    ['detach without a server', ['run', '--detach', '--', 'true'], 2, /--session-file/],
    ['a file without a server', ['run', '--session-file', '/no/such', '--', 'true'], 2, /--url/],
  ])('%s: one sentence and a code', async (_what, args, code, words) => {
    const result = await command(args);
    expect(result.exitCode).toBe(code);
    expect(result.stderr).toMatch(words);
    expect(result.stderr.split('\n')).toHaveLength(1);
  });

  it('its server was restarted', async () => {
    await detach('sleep', '600');
    await server.stop();
    server = await serve('--listen', server.url);
    for (const args of [['ps'], ['attach', 'any'], ['kill', 'any']] as const) {
      const { stderr, exitCode } = await onSession(...args);
      expect(stderr).toMatch(/was restarted/);
      expect(exitCode).toBe(1);
    }
  });

  it('it has ended, it has no such process, or somebody else holds it', async () => {
    const gone = await command(['ps', '--url', server.url, '--session', 'no-such-session']);
    expect(gone).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/knows no session of this id.*check the id/) as unknown,
    });
    await detach('sleep', '600');
    expect(await onSession('attach', 'nobody')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/no process nobody/) as unknown,
    });
    const holding = execa(
      process.execPath,
      [serverProgram, 'run', '--session-file', file, '--', 'sh', '-c', 'echo up; cat'],
      {
        reject: false,
      },
    );
    await new Promise((resolve) => holding.stdout.once('data', resolve));
    const refused = [await onSession('attach', 'any'), await onSession('kill', 'any')];
    for (const { stderr, exitCode } of refused) {
      expect(stderr).toMatch(/another client holds the session.*--take-over/);
      expect(exitCode).toBe(1);
    }
    expect(refused[0]?.stderr).toContain('--observe');
    holding.stdin.end();
    expect((await holding).exitCode).toBe(0);
  });

  it('its file is something else', async () => {
    await writeFile(file, 'hello');
    expect(await onSession('ps')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('not a session file') as unknown,
    });
  });

  it.each([['ps'], ['run', '--', 'true']])(
    'its file names no address of a server: `%s` names the file',
    async (...args) => {
      await writeFile(file, JSON.stringify({ url: 'ftp://127.0.0.1:9', sessionId: 'x' }));
      const { stderr, exitCode } = await onSession(...args);
      expect(exitCode).toBe(1);
      expect(stderr).toContain(`--session-file ${file}: `);
      expect(stderr).not.toContain('--url');
    },
  );
});

describe('exec-server doctor', () => {
  it('says what works here, for people and as JSON', async () => {
    const [plain, json] = [await command(['doctor']), await command(['doctor', '--json'])];
    expect([plain.exitCode, json.exitCode]).toEqual([0, 0]);
    const report = JSON.parse(json.stdout) as { works: boolean; checks: { name: string; works: boolean }[] };
    expect(report.works).toBe(true);
    expect(report.checks.map(({ name }) => name)).toEqual([
      'node',
      'processes',
      'pipes',
      '/dev/stdout',
      '/dev/stderr',
      '/dev/stdin',
      'terminal',
      '/proc',
      'guard',
    ]);
    for (const { name, works } of report.checks)
      expect(plain.stdout).toMatch(new RegExp(`^${works ? 'ok' : 'no'} +${name} `, 'm'));
  });
});

describe('the help of each command', () => {
  it.each(['shell', 'ps', 'kill', 'attach', 'doctor'])('%s has an example', async (name) => {
    const { stdout, exitCode } = await command([name, '--help']);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('Examples:');
  });

  it.each(['ps', 'kill', 'attach'])('%s says how it finds its session', async (name) => {
    const { stdout } = await command([name, '--help']);
    for (const word of ['--session-file', '--session ', 'EXEC_SERVER_SESSION', 'secret'])
      expect(stdout).toContain(word);
  });
});
