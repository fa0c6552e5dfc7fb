import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { connect } from '@exec-server/client';
import { startFaultProxy } from '@exec-server/testing';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { command, serve } from '../support/command.js';
import { childrenOf, isAlive, serverProgram } from '../support/links.js';
import { until } from '../support/until.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-cli-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('exec-server run', () => {
  it('passes streams and the exit code through', async () => {
    const result = await command(['run', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'], { input: '' });
    expect(result).toMatchObject({ stdout: 'out', stderr: 'err', exitCode: 7 });
  });

  it('ends a command that reads stdin, by EOF', async () => {
    const result = await command(['run', '--', 'cat'], { input: 'hi' });
    expect(result).toMatchObject({ stdout: 'hi', exitCode: 0 });
  });

  it('exits with 128 + n for a death by signal', async () => {
    expect((await command(['run', '--', 'sh', '-c', 'kill -15 $$'], { input: '' })).exitCode).toBe(143);
  });

  it('takes variables, a folder, and arguments that look like options', async () => {
    const result = await command(
      ['run', '--cwd', folder, '--env', 'A=1=2', '--env', 'B=', 'sh', '-c', 'pwd; echo "$A|$B|$1"', 'x', '--help'],
      {
        input: '',
      },
    );
    expect(result.stdout).toBe(`${folder}\n1=2||--help`);
  });

  it('says in one sentence that a program is missing, and exits as a shell does', async () => {
    const missing = await command(['run', '--', 'no-such-program'], { input: '' });
    expect(missing).toMatchObject({
      exitCode: 127,
      stderr: 'exec-server: no-such-program: not found; check the name, and the PATH of the server',
    });
    expect((await command(['run', '--', '/tmp'], { input: '' })).exitCode).toBe(126);
  });

  it('names what is missing when it is not the program', async () => {
    const noFolder = await command(['run', '--cwd', '/no/such', '--', 'true']);
    expect(noFolder).toMatchObject({
      exitCode: 1,
      stderr:
        'exec-server: the working directory /no/such does not exist on the server; create it, or pass another --cwd',
    });
    const script = joinPath(folder, 'script');
    await writeFile(script, '#!/no/such/interpreter\n');
    await chmod(script, 0o700);
    expect(await command(['run', '--', script])).toMatchObject({
      exitCode: 127,
      stderr: `exec-server: ${script}: its interpreter /no/such/interpreter was not found; install it, or mend the first line of the script`,
    });
  });

  it('says nothing of its own over a reader that is slow', async () => {
    const result = await execa('bash', [
      '-c',
      `${process.execPath} ${serverProgram} run -- head -c 10000000 /dev/zero </dev/null | dd ibs=64 2>/dev/null | wc -c`,
    ]);
    expect(result).toMatchObject({ stdout: '10000000', stderr: '' });
  });

  it('ends only when the last of stderr has left', async () => {
    // A pipe holds 64 KiB, and its reader comes late.
    const pipe = joinPath(folder, 'pipe');
    await execa('mkfifo', [pipe]);
    const holder = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(pipe, 'w');
    const reader = openSync(pipe, 'r');
    const script = 'head -c 65536 /dev/zero >&2; echo full; read go; head -c 10000 /dev/zero >&2';
    const running = spawn(process.execPath, [serverProgram, 'run', '--', 'sh', '-c', script], {
      stdio: ['pipe', 'pipe', writer],
    });
    const exited = once(running, 'exit');
    for (const end of [holder, writer]) closeSync(end);
    running.stdout?.once('data', () => running.stdin?.end('go\n'));
    await until(() => childrenOf(running.pid ?? 0).length > 0, 'its server to start');
    await until(() => childrenOf(running.pid ?? 0).length === 0, 'its server to end');
    const counting = spawn('wc', ['-c'], { stdio: [reader, 'pipe', 'inherit'] });
    closeSync(reader);
    const counted = new Promise((resolve) => counting.stdout?.once('data', resolve));
    expect(String(await counted)).toBe('75536\n');
    expect(await exited).toEqual([0, null]);
  });

  it('says that output cannot be written, and ends the command', async () => {
    const result = await execa(
      'bash',
      ['-c', `${process.execPath} ${serverProgram} run -- yes </dev/null >/dev/full; echo $? >&2`],
      { reject: false },
    );
    expect(result.stderr).toMatch(/^exec-server: the output of the command cannot be written \(ENOSPC.*\n1$/);
  });

  it('lets go at the second Ctrl-C while the connection is lost', async () => {
    const server = await serve();
    const proxy = await startFaultProxy({ target: server.url });
    const args = [serverProgram, 'run', '--url', proxy.url, '--', 'sh', '-c', 'echo ready; exec sleep 600'];
    const running = execa(process.execPath, args, { reject: false, stdin: 'ignore' });
    running.stdout.once('data', () => {
      proxy.refuse(true);
      proxy.cut();
    });
    for await (const line of running.iterable({ from: 'stderr' })) {
      if (/was lost; the command goes on|repeat it to leave/.test(line)) running.kill('SIGINT');
    }
    expect(await running).toMatchObject({ exitCode: 130, stderr: expect.stringContaining('left while') as unknown });
    await proxy.close();
    await server.stop();
  });

  it('says what became of the command when the server was restarted, and keeps the session id to itself', async () => {
    const first = await serve();
    const second = await serve();
    const proxy = await startFaultProxy({ target: first.url });
    const args = [serverProgram, 'run', '--url', proxy.url, '--', 'sh', '-c', 'echo ready; exec sleep 600'];
    const running = execa(process.execPath, args, { reject: false, stdin: 'ignore' });
    running.stdout.once('data', () => {
      proxy.setTarget(second.url);
      proxy.cut();
    });
    const { exitCode, stderr } = await running;
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/was restarted, and the command was killed; run it again/);
    expect(stderr).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-|resumeSessionId/);
    await proxy.close();
    await first.stop();
    await second.stop();
  });

  it('passes Ctrl-C on to the command', async () => {
    const running = execa(
      process.execPath,
      [
        serverProgram,
        'run',
        '--',
        'sh',
        '-c',
        'trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.05; done',
      ],
      {
        reject: false,
        stdin: 'pipe',
      },
    );
    for await (const line of running.iterable()) {
      if (line === 'ready') running.kill('SIGINT');
    }
    expect(await running).toMatchObject({ exitCode: 9 });
  });

  it('ends when the reader of its output goes away', async () => {
    const result = await execa('bash', [
      '-c',
      `${process.execPath} ${serverProgram} run -- yes </dev/null | head -n 1; echo \${PIPESTATUS[0]}`,
    ]);
    expect(result.stdout).toBe('y\n141');
  });

  it('goes on over a cut in the middle, and says so', async () => {
    const server = await serve();
    const proxy = await startFaultProxy({ target: server.url });
    const running = execa(
      process.execPath,
      [serverProgram, 'run', '--url', proxy.url, '--', 'sh', '-c', 'echo first; cat; echo last'],
      {
        reject: false,
        stdin: 'pipe',
      },
    );
    const lines: string[] = [];
    for await (const line of running.iterable()) {
      lines.push(line);
      if (line !== 'first') continue;
      proxy.refuse(2);
      proxy.cut();
      running.stdin.end('sent into the cut\n');
    }
    const result = await running;
    expect(lines).toEqual(['first', 'sent into the cut', 'last']);
    expect(result.exitCode).toBe(0);
    expect(result.stderr).toMatch(/connection was lost.*reconnecting\n.*reconnected after \d+ ms/s);
    await proxy.close();
    await server.stop();
  });

  it('says where nobody listens', async () => {
    const result = await command(['run', '--url', 'ws://127.0.0.1:9', '--', 'true'], { input: '' });
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toContain(
      'no connection to ws://127.0.0.1:9/: nothing listens there; start the server, or check',
    );
    expect(result.stderr.split('\n')).toHaveLength(1);
  });
});

describe('exec-server --listen', () => {
  it('says at SIGUSR2 what it holds, whatever its log level', async () => {
    const server = execa(process.execPath, [serverProgram, '--listen', 'ws://127.0.0.1:0', '--log-level', 'error']);
    const [urls, answers] = [server.iterable(), server.iterable({ from: 'stderr' })].map((lines) =>
      lines[Symbol.asyncIterator](),
    );
    const client = await connect({ url: String((await urls?.next())?.value) });
    await client.start({ argv: ['sleep', '600'] });
    server.kill('SIGUSR2');
    const answer: unknown = JSON.parse(String((await answers?.next())?.value));
    expect(answer).toMatchObject({
      msg: 'what this server holds',
      sessions: 1,
      attachedSessions: 1,
      runningProcesses: 1,
    });
    await client.close();
    server.kill('SIGTERM');
    expect((await server).exitCode).toBe(0);
  });

  it('says it while it stops as well, and is not ended by the question', async () => {
    const server = execa(process.execPath, [serverProgram, '--listen', 'ws://127.0.0.1:0', '--log-level', 'info']);
    const url = String((await server.iterable()[Symbol.asyncIterator]().next()).value);
    const proxy = await startFaultProxy({ target: url });
    const client = await connect({ url: proxy.url });
    // A peer that does not take the close keeps the server for a second.
    proxy.stall();
    server.kill('SIGTERM');
    const said: string[] = [];
    for await (const line of server.iterable({ from: 'stderr' })) {
      said.push(line);
      if (line.includes('"msg":"stopping"')) server.kill('SIGUSR2');
    }
    expect((await server).exitCode).toBe(0);
    expect(said.join('\n')).toContain('what this server holds');
    await proxy.close();
    await client.close();
  });

  it('kills every child when it is told to stop, also those of detached sessions', async () => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      const server = await serve();
      const attached = await connect({ url: server.url });
      const detached = await connect({ url: server.url });
      const handles = [
        await attached.start({ argv: ['sh', '-c', 'trap "" TERM INT HUP; sleep 600 & echo $!; wait'] }),
        await detached.start({ argv: ['sh', '-c', 'sleep 600 & echo $!; wait'] }),
      ];
      const pids: number[] = [];
      for (const handle of handles) {
        pids.push(handle.pid ?? 0);
        for await (const event of handle) {
          if (event.type !== 'output') continue;
          pids.push(Number(Buffer.from(event.bytes).toString()));
          break;
        }
      }
      expect(pids.every(isAlive)).toBe(true);
      await detached.detach();
      server.kill(signal);
      expect(await server.ended).toBe(0);
      await until(() => !pids.some(isAlive), `the children to die at ${signal}`);
      await attached.close();
    }
  });

  it('answers what was read when its stdin ends, then kills what runs and exits with 0', async () => {
    const messages = [
      { id: 1, method: 'initialize', params: { clientName: 'x' } },
      { method: 'initialized' },
      {
        id: 2,
        method: 'process/start',
        params: { processId: 'p', argv: ['sleep', '600'], cwd: '/', env: { PATH: '/usr/bin:/bin' }, tty: false },
      },
      { id: 3, method: 'process/read', params: { processId: 'p', waitMs: 60_000 } },
      ...Array.from({ length: 50 }, (_, index) => ({ id: index + 4, method: 'environment/status' })),
    ];
    const result = await command(['--listen', 'stdio'], {
      input: messages.map((message) => JSON.stringify(message)).join('\n'),
    });
    expect(result.exitCode).toBe(0);
    const answers = result.stdout
      .split('\n')
      .map((line) => JSON.parse(line) as { id?: number; result?: { pid?: number } });
    const ids = answers.flatMap(({ id }) => (id === undefined ? [] : [id]));
    expect(ids.sort((a, b) => a - b)).toEqual(Array.from({ length: 53 }, (_, index) => index + 1));
    const pid = answers.find(({ id }) => id === 2)?.result?.pid ?? 0;
    expect(pid).toBeGreaterThan(0);
    expect(isAlive(pid)).toBe(false);
  });

  it('serves /readyz and refuses pages and foreign names', async () => {
    const server = await serve();
    const http = server.url.replace('ws:', 'http:');
    expect((await fetch(`${http}/readyz`)).status).toBe(200);
    expect((await fetch(`${http}/readyz`, { headers: { origin: 'https://example.org' } })).status).toBe(403);
    expect((await fetch(`${http}/metrics`)).status).toBe(404);
    expect((await fetch(http)).status).toBe(400);
    await server.stop();
  });
});

describe('a wrong command line', () => {
  const cases: readonly [string, readonly string[], number, RegExp][] = [
    ['an unknown flag', ['--nope'], 2, /unknown option/],
    ['an unknown command', ['frobnicate'], 2, /unknown command 'frobnicate'/],
    ['an argument too many', ['demo', 'extra'], 2, /too many arguments/],
    ['a host name to listen on', ['--listen', 'ws://localhost:1'], 2, /literal address/],
    ['a path to listen on', ['--listen', 'ws://127.0.0.1:1/x'], 2, /literal address/],
    ['an open bind without a token', ['--listen', 'ws://0.0.0.0:0'], 2, /without authentication/],
    ['a lease that is no number', ['--session-ttl-ms', 'soon'], 2, /whole number/],
    ['a concurrency of none', ['--concurrent-requests', '0'], 2, /whole number from 1/],
    ['run without a command', ['run'], 2, /missing required argument/],
    ['a variable without a value', ['run', '--env', 'A', 'true'], 2, /NAME=VALUE/],
    ['a url that is none', ['run', '--url', 'localhost', 'true'], 2, /ws:\/\//],
  ];
  it.each(cases)('%s ends with one sentence and its code', async (_what, args, code, words) => {
    const result = await command(args, { input: '' });
    expect(result.exitCode).toBe(code);
    expect(result.stderr).toMatch(words);
    expect(result.stderr.trim().split('\n')).toHaveLength(1);
    expect(result.stderr).toMatch(/^exec-server: /);
    expect(result.stdout).toBe('');
  });

  it('a port in use ends with code 1', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const address = taken.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const result = await command(['--listen', `ws://127.0.0.1:${port}`], { input: '' });
    expect(result).toMatchObject({
      exitCode: 1,
      stderr: `exec-server: cannot listen on ws://127.0.0.1:${port}: the port is in use; stop who listens there, or choose another port (0 picks a free one)`,
    });
    await new Promise((resolve) => taken.close(resolve));
  });
});

describe('exec-server --help', () => {
  it.each([[['--help']], [['-h']], [['run', '--help']], [['demo', '--help']]])('%s has an example', async (args) => {
    const result = await command(args, { input: '' });
    expect(result.exitCode).toBe(0);
    expect(result.stdout).toContain('Examples:');
  });

  it('prints its version', async () => {
    expect((await command(['--version'], { input: '' })).stdout).toBe('0.1.0');
  });
});

describe('exec-server demo', () => {
  it('says that its folder is not there', async () => {
    const result = await command(['demo', '--path', '/no/such']);
    expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('cannot list /no/such') as unknown });
  });

  it('does not mind a reader that goes away', async () => {
    const files = joinPath(folder, 'few');
    await mkdir(files);
    for (let file = 0; file < 12; file += 1) await writeFile(joinPath(files, `${file}`), 'x');
    const demo = `${process.execPath} ${serverProgram} demo --cuts 3 --path ${files}`;
    const result = await execa('bash', ['-c', `${demo} | head -n 1`], { reject: false });
    expect(result).toMatchObject({ stdout: expect.stringContaining('SHA-256 of 12 files') as unknown, stderr: '' });
  });

  it('shows its cuts and ends with two equal digests', async () => {
    const files = joinPath(folder, 'files');
    await mkdir(files);
    for (let file = 0; file < 200; file += 1)
      await writeFile(joinPath(files, `file ${file}`), Buffer.alloc(200_000, file));
    const result = await command(['demo', '--cuts', '3', '--path', files], { input: '' });
    expect(result.exitCode, `${result.stdout}\n${result.stderr}`).toBe(0);
    const digests = [
      ...result.stdout.matchAll(/sha256 of what the (?:client received|job wrote):\s+([0-9a-f]{64})/g),
    ].map((match) => match[1]);
    expect(digests).toHaveLength(2);
    expect(digests[0]).toBe(digests[1]);
    expect(result.stdout.match(/cut \d+:/g)).toHaveLength(3);
    expect(result.stdout).toMatch(/cuts: 3/);
  });
});

describe('exec-server as process 1', () => {
  it('says in one sentence why it will not serve, and what to do', async () => {
    const inNamespace = ['-pf', '--mount-proc', process.execPath, serverProgram, '--listen', 'stdio'];
    const { exitCode, stderr } = await execa('unshare', inNamespace, { reject: false, input: '' });
    // A host where namespaces cannot be made says so, and has nothing to test here.
    if (/unshare/.test(stderr)) return;
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/^exec-server: refusing to serve as process 1: .*--allow-pid-1$/);
  });
});
