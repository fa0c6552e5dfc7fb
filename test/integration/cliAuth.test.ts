/** Who may connect to `exec-server`, as its flags say; and the flags of the reference that it refuses. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@exec-server/client';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { command, serve } from '../support/command.js';
import { isAlive } from '../support/links.js';
import { startListening, startServer } from '../support/serverProgram.js';
import { until } from '../support/until.js';

const SECRET = 'a secret of thirty-two bytes, or more';

let folder: string;
let tokenFile: string;
let secretFile: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exec-server-auth-'));
  tokenFile = await file('token', '  secret-token\n');
  secretFile = await file('secret', `${SECRET}\n`);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function file(name: string, content: string | Buffer): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content, { mode: 0o600 });
  return path;
}

function signed(claims: Record<string, unknown>, secret = SECRET): Promise<string> {
  return new SignJWT({ exp: Math.floor(Date.now() / 1000) + 60, ...claims })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .sign(new TextEncoder().encode(secret));
}

async function refusal(url: string, token?: string): Promise<unknown> {
  const failure: unknown = await connect({ url, ...(token === undefined ? {} : { token }) }).then(
    (client) => client.close(),
    (error: unknown) => error,
  );
  return failure;
}

const refusedWith = (body: string): object => ({ code: 'REFUSED', data: { status: 401, body } });

describe('a capability token', () => {
  it('is wanted by the server, in constant words, and presented by the command from a file', async () => {
    const server = await serve('--ws-auth', 'capability-token', '--ws-token-file', tokenFile);
    expect(await refusal(server.url)).toMatchObject(refusedWith('missing websocket bearer token'));
    expect(await refusal(server.url, 'wrong')).toMatchObject(refusedWith('invalid websocket bearer token'));
    const client = await connect({ url: server.url, token: () => 'secret-token' });
    expect((await client.run(['echo', 'in'])).text()).toBe('in\n');
    await client.close();
    const wrong = await file('wrong', 'nope');
    const run = (tokens: string): ReturnType<typeof command> =>
      command(['run', '--url', server.url, '--token-file', tokens, '--', 'true']);
    expect((await run(wrong)).stderr).toMatch(/does not take the token in .*--token-file/);
    const without = await command(['run', '--url', server.url, '--', 'true']);
    expect(without.stderr).toMatch(/wants a token.*--token-file/);
    expect((await run(tokenFile)).exitCode).toBe(0);
    await server.stop();
  });

  it('may be known to the server by its digest alone', async () => {
    const digest = createHash('sha256').update('secret-token').digest('hex').toUpperCase();
    const server = await serve('--ws-auth', 'capability-token', '--ws-token-sha256', digest);
    expect(await refusal(server.url, digest)).toMatchObject(refusedWith('invalid websocket bearer token'));
    expect(await refusal(server.url, 'secret-token')).toBeUndefined();
    await server.stop();
  });
});

describe('a signed token', () => {
  it('lets in whom its claims name, until it has expired, and the connection goes on behind that', async () => {
    const names = ['--ws-issuer', 'issuer', '--ws-audience', 'this-server'];
    const server = await serve(
      ...['--ws-auth', 'signed-bearer-token', '--ws-shared-secret-file', secretFile],
      ...[...names, '--ws-max-clock-skew-seconds', '0'],
    );
    const good = { iss: 'issuer', aud: ['another', 'this-server'] };
    const client = await connect({ url: server.url, token: () => signed(good) });
    expect((await client.run(['echo', 'in'])).text()).toBe('in\n');
    expect(await refusal(server.url)).toMatchObject(refusedWith('missing websocket bearer token'));
    const cases: readonly (readonly [string, string])[] = [
      [await signed(good, 'another secret of thirty-two bytes, or more'), 'invalid websocket jwt'],
      [await signed({ ...good, exp: 1 }), 'expired websocket jwt'],
      [await signed({ ...good, exp: undefined }), 'invalid websocket jwt'],
      [await signed({ ...good, nbf: 9_000_000_000 }), 'websocket jwt is not valid yet'],
      [await signed({ ...good, iss: 'x' }), 'websocket jwt issuer mismatch'],
      [await signed({ ...good, aud: 'x' }), 'websocket jwt audience mismatch'],
      ['secret-token', 'invalid websocket jwt'],
    ];
    for (const [token, body] of cases) expect(await refusal(server.url, token)).toMatchObject(refusedWith(body));

    const soon = Math.floor(Date.now() / 1000) + 2;
    const short = await connect({ url: server.url, token: await signed({ ...good, exp: soon }) });
    await until(() => Date.now() / 1000 > soon + 1, 'the token to expire');
    expect(await refusal(server.url, await signed({ ...good, exp: soon }))).toMatchObject(
      refusedWith('expired websocket jwt'),
    );
    expect((await short.run(['echo', 'still'])).text()).toBe('still\n');
    await short.close();
    await client.close();
    await server.stop();
  });
});

describe('a wrong choice of who may connect', () => {
  const capability = ['--ws-auth', 'capability-token'];
  const jwt = ['--ws-auth', 'signed-bearer-token'];
  it.each<[string, () => Promise<readonly string[]> | readonly string[], number, RegExp]>([
    ['flags without a mode', () => ['--ws-token-file', tokenFile], 2, /require `--ws-auth capability-token`/],
    ['a mode without its token', () => capability, 2, /`--ws-token-file` or `--ws-token-sha256` is required/],
    ['a mode without its secret', () => jwt, 2, /`--ws-shared-secret-file` is required/],
    ['a mode that is none', () => ['--ws-auth', 'password'], 2, /allowed choices are capability-token, signed-bearer/],
    ['authentication over stdio', () => ['--listen', 'stdio', ...capability], 2, /requires a WebSocket listener/],
    [
      'a file that is not there',
      () => [...capability, '--ws-token-file', '/no/such'],
      1,
      /--ws-token-file \/no\/such: there is no such file/,
    ],
    [
      'an empty file',
      async () => [...capability, '--ws-token-file', await file('empty', ' \n')],
      1,
      /--ws-token-file \S+empty: the file is empty/,
    ],
    [
      'a file that is no text',
      async () => [...jwt, '--ws-shared-secret-file', await file('bytes', Buffer.alloc(40, 0xff))],
      1,
      /--ws-shared-secret-file \S+bytes: it is not UTF-8 text/,
    ],
    [
      'a secret that could be guessed',
      async () => [...jwt, '--ws-shared-secret-file', await file('short', 'short')],
      1,
      /--ws-shared-secret-file \S+short: the secret must be at least 32 bytes/,
    ],
  ])('%s ends with one sentence and its code', async (_what, args, code, words) => {
    const { exitCode, stderr, stdout } = await command(await args());
    expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: '' });
    expect(stderr).toMatch(words);
    expect(stderr).toMatch(/^exec-server: [^\n]+$/);
  });
});

describe('a flag of the reference that means nothing here', () => {
  it.each([
    [['--remote', 'https://example.org', '--environment-id', 'e'], /--remote: .* use --listen/],
    [['--remote=https://example.org'], /--remote: .* use --listen/],
    [['--name'], /--name: .* use --listen/],
    [['--listen', 'stdio', '--executor-credential-stdin'], /--executor-credential-stdin: .* use --listen/],
    [['forward'], /forward: .* use --listen/],
    [['-c', 'model="m"'], /--config: there is no configuration file/],
    [['--enable', 'feature'], /--enable: there is no configuration file/],
    [['--linux-sandbox-pid-namespace', 'inherit'], /--linux-sandbox-pid-namespace: there is no sandbox/],
    [['--tcp-upstream-proxy', 'h:1'], /--tcp-upstream-proxy: .*HTTPS_PROXY/],
  ])('is refused with what to do instead: %j', async (args, words) => {
    const { exitCode, stderr, stdout } = await command(args);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toMatch(words);
    expect(stderr).toMatch(/^exec-server: [^\n]+$/);
  });
});

describe('--exit-on-stdin-close', () => {
  it('ends a listener and its children with its stdin, and not before', async () => {
    const server = await startListening({}, '--exit-on-stdin-close');
    server.child.stdin?.write('what comes over it does not count\n');
    const client = await connect({ url: server.url });
    const handle = await client.start({ argv: ['sleep', '600'] });
    expect(isAlive(handle.pid ?? 0)).toBe(true);
    server.child.stdin?.end();
    expect(await server.ended).toBe(0);
    expect(isAlive(handle.pid ?? 0)).toBe(false);
    await client.close();
  });

  it('is what stdio does in any case', async () => {
    const server = startServer({}, 'stdio', '--exit-on-stdin-close');
    server.child.stdin?.end();
    expect(await server.ended).toBe(0);
  });

  it('is not what a listener does without it', async () => {
    const server = await startListening({});
    server.child.stdin?.end();
    for (let round = 0; round < 3; round += 1) expect(await refusal(server.url)).toBeUndefined();
    expect(server.child.exitCode).toBeNull();
    server.child.kill('SIGTERM');
    expect(await server.ended).toBe(0);
  });
});
