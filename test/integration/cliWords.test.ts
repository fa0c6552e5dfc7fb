/** What the command prints where it cannot do what it was asked: what happened, what still runs, what to do. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { command, serve, type Serving } from '../support/command.js';
import { listen, stopListening } from '../support/listening.js';

let folder: string;
let server: Serving;
beforeAll(async () => {
  folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-cli-words-'));
  server = await serve();
});
afterAll(async () => {
  await server.stop();
  await stopListening();
  await rm(folder, { recursive: true, force: true });
});

const at = (name: string): string => joinPath(folder, name);

/** The one sentence of a command that fails. */
async function sentence(code: number, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await command(args);
  expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: '' });
  expect(stderr).toMatch(/^exec-server: [^\n]+$/);
  expect(stderr).not.toMatch(/undefined|os error|resumeSessionId|new client|the server refused/);
  return stderr.slice('exec-server: '.length);
}

describe('a command without a server says', () => {
  it('that a web server is none, on one line', async () => {
    const page = createServer((_request, response) => response.end('<!DOCTYPE html>\n<h1>hello</h1>\n'));
    const url = await listen(page);
    expect(await sentence(1, 'run', '--url', url, '--', 'true')).toBe(
      `${url}/ is not an exec server: it answered with status 200: a web page; check the URL`,
    );
  });

  it('that a program is not found whose name is a whole command line', async () => {
    expect(await sentence(127, 'run', '--', 'npm test')).toBe(
      'npm test: not found; pass the program and its arguments as words of their own, as in `run -- npm test`',
    );
  });

  it('that wss: meets a server without TLS', async () => {
    const url = server.url.replace('ws:', 'wss:');
    expect(await sentence(1, 'ls', '--url', url)).toMatch(/^wss:\S+ does not speak TLS.*use ws:/);
  });

  it('that nothing listens, and not that the session has ended', async () => {
    await writeFile(at('dead'), JSON.stringify({ url: 'ws://127.0.0.1:9', sessionId: 's' }));
    for (const args of [['ps'], ['kill', 'p'], ['attach', 'p'], ['run', 'true']]) {
      const [name = '', ...rest] = args;
      expect(await sentence(1, name, '--session-file', at('dead'), ...rest)).toMatch(
        /^no connection to ws:\/\/127\.0\.0\.1:9\/: nothing listens there; start the server, or check the URL/,
      );
    }
  });

  it.each<[string, string[], RegExp]>([
    ['a port that is none', ['--listen', 'ws://127.0.0.1:99999'], /there is no port 99999/],
    ['a fragment', ['run', '--url', 'ws://127.0.0.1:9/#a', 'true'], /leave the # out/],
    [
      'a token without a server',
      ['run', '--token-file', 'f', 'true'],
      /--token-file is for the server that --url names/,
    ],
    [
      'a session of a server',
      ['ps', '--url', 'ws://127.0.0.1:9'],
      /^which session on ws:\/\/127\.0\.0\.1:9: pass its id/,
    ],
    ['a lease without end', ['run', '--lease-ms', '99999999999', 'true'], /from 0 to 86400000/],
    ['a time to live without end', ['--session-ttl-ms', '99999999999'], /from 0 to 86400000/],
    ['a name that is none', ['run', '--id', '', 'true'], /^--id: the name is empty/],
    ['a misspelt command', ['rum', '--', 'true'], /did you mean run\?/],
    [
      'a misspelt option',
      ['run', '--sesion-file', 'f', 'true'],
      /did you mean --session-file\?.*`exec-server run --help`/,
    ],
    ['a value that is not to be had', ['--log-level', 'loud'], /allowed choices are debug, .*`exec-server --help`/],
  ])('what is wrong with %s', async (_what, args, words) => {
    expect(await sentence(2, ...args)).toMatch(words);
  });

  it('where output cannot go, before it serves', async () => {
    const [none, file] = [at('none'), at('file')];
    await writeFile(file, '');
    expect(await sentence(1, '--spool-dir', none)).toBe(
      `--spool-dir ${none}: there is no such folder; create it first`,
    );
    expect(await sentence(1, '--spool-dir', file)).toBe(`--spool-dir ${file}: it is no folder`);
  });

  it('what this host refuses, without the places in the program where that was seen', async () => {
    const { exitCode, stdout, stderr } = await command(['demo'], { env: { TMPDIR: at('none') } });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(/^exec-server: ENOENT: no such file or directory, [^\n]+$/);
  });

  it('that an address is not of this host', async () => {
    // A block for documentation, which no host has.
    expect(await sentence(1, '--listen', 'ws://203.0.113.9:0', '--allow-unauthenticated')).toBe(
      'cannot listen on ws://203.0.113.9:0: this host does not have the address; choose one that it has, such as 127.0.0.1',
    );
  });
});

describe('a command in a session says', () => {
  const file = (): string => at('session');
  const start = (...args: string[]): string[] => ['run', '--url', server.url, '--session-file', file(), ...args];

  it('that an id is taken, and that its process goes on', async () => {
    expect((await command(start('--detach', '--id', 'build', 'sleep', '600'))).stdout).toBe('build');
    expect(await sentence(1, ...start('--detach', '--id', 'build', 'true'))).toBe(
      'cannot start true: the session has a process build already, which is not touched; pass another --id',
    );
  });

  it('in its own options what is wrong with a signal, a cursor and a folder', async () => {
    const session = ['--session-file', file()];
    expect(await sentence(2, 'kill', ...session, '--signal', 'FOO', 'build')).toMatch(
      /^--signal FOO: the server knows no such signal, and none was sent; pass a name such as INT/,
    );
    expect(await sentence(1, 'attach', ...session, '--after', '99', 'build')).toMatch(
      /^process build has no event 99 yet, its last is 0; it is not affected; pass --after 0 .* leave --after out/,
    );
    expect(await sentence(2, ...start('--cwd', 'srv', 'true'))).toBe(
      '--cwd srv: expected an absolute path of the server, such as /srv',
    );
  });

  it('that the file of its session cannot be written, before anything runs', async () => {
    const args = ['run', '--url', server.url, '--session-file', at('none/s'), '--', 'touch', at('ran')];
    expect(await sentence(1, ...args)).toBe(
      `--session-file ${at('none/s')}: it cannot be written, so nothing was started: its folder does not exist; create it`,
    );
    expect((await command(['ls', at('ran')])).stderr).toContain('it does not exist');
  });

  it('that its session has ended, and how to begin another', async () => {
    const ended = at('ended');
    await command(['run', '--url', server.url, '--session-file', ended, '--detach', '--lease-ms', '1', 'true']);
    expect(await sentence(1, 'ps', '--session-file', ended)).toMatch(
      /no longer has the session: its lease was over, or it was closed; its processes were killed; `exec-server run --session-file \S+ -- COMMAND` begins a new one$/,
    );
  });
});
