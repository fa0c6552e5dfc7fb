import { limits } from '@exec-server/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import type { Client } from '../client.js';
import { connect } from '../connect.js';
import { isClientError } from '../errors.js';
import { FakeClock } from '../testSupport/fakeClock.js';

const clients: Client[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
});

/** A server in a few lines: `lines` is an async iterable of parsed messages, `say` sends one. */
const PREAMBLE = `
  const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
  const lines = (async function* () {
    for await (const line of require('node:readline').createInterface({ input: process.stdin })) yield JSON.parse(line);
  })();
  const next = async () => (await lines.next()).value;
  const shakeHands = async (result) => { say({ id: (await next()).id, result: { sessionId: 's', ...result } }); await next(); };
`;

function script(body: string): readonly [string, ...string[]] {
  return [process.execPath, '-e', `${PREAMBLE}(async () => { ${body} })();`];
}

async function open(body: string): Promise<Client> {
  const client = await connect({ command: script(body) });
  clients.push(client);
  return client;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

/** A process that is no child of this one is reaped by others, a little later. */
async function ended(pid: number): Promise<void> {
  while (isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 5));
}

function pidIn(text: unknown): number {
  return Number(/pid (\d+)/.exec(String(text))?.[1]);
}

describe('a stdio server', () => {
  it('is started, spoken to, and ends when its stdin does', async () => {
    const client = await open(`
      await shakeHands({ environmentInfo: { cwd: 'pid ' + process.pid } });
      for await (const { id } of lines) say({ id, result: { status: 'ready' } });
    `);
    expect(client.sessionId).toBe('s');
    expect(await client.call('environment/status', {})).toEqual({ status: 'ready' });
    const pid = pidIn(client.environmentInfo.cwd);
    expect(isRunning(pid)).toBe(true);
    await client.close();
    expect(isRunning(pid)).toBe(false);
  });

  it('gets environment and working directory', async () => {
    const body = `await shakeHands({ environmentInfo: { cwd: process.cwd() + ' ' + process.env.MARK } }); await next();`;
    const client = await connect({ command: script(body), env: { MARK: 'here' }, cwd: '/' });
    clients.push(client);
    expect(client.environmentInfo.cwd).toBe('/ here');
  });

  it('is not asked for signs of life, and not given up when it stands still: its pipes end with it', async () => {
    const clock = new FakeClock();
    const body = `
      await shakeHands({});
      const seen = [];
      for await (const { id, method } of lines) say({ id, result: { seen: seen.push(method) } });
    `;
    const client = await connect({ command: script(body), clock });
    clients.push(client);
    clock.advance(2 * limits.IDLE_LIMIT_MS);
    expect([client.state, clock.pending]).toEqual(['ready', 0]);
    expect(await client.call('environment/status', {})).toEqual({ seen: 1 });
  });

  it('leaves no process behind, those it started included', async () => {
    const client = await open(`
      const child = require('node:child_process').spawn('sleep', ['60']);
      await shakeHands({ environmentInfo: { cwd: 'pid ' + child.pid } });
      await next();
      process.exit(0);
    `);
    const pid = pidIn(client.environmentInfo.cwd);
    expect(isRunning(pid)).toBe(true);
    await client.close();
    await ended(pid);
  });

  it('delivers what it wrote before it ended, then says how it ended', async () => {
    const client = await open(`
      await shakeHands({ environmentInfo: { cwd: '/' } });
      const { id, params: { processId } } = await next();
      say({ id, result: { processId, sandboxType: 'none' } });
      say({ method: 'process/output', params: { processId, seq: 1, stream: 'stdout', chunk: 'bGFzdA==' } });
      process.stderr.write('out of luck', () => process.exit(3));
    `);
    const handle = await client.start({ argv: ['x'] });
    const events = handle.events();
    expect((await events.next()).value).toMatchObject({ type: 'output', seq: 1 });
    const error: unknown = await events.next().catch((cause: unknown) => cause);
    expect(error).toMatchObject({ code: 'SERVER_GONE', data: { exitCode: 3, stderr: 'out of luck', cursor: 1 } });
    expect(isClientError(error) && error.message).toMatch(/exit code 3.*out of luck/);
    await expect(client.start({ argv: ['y'] })).rejects.toMatchObject({ code: 'SERVER_GONE' });
    expect(client.state).toBe('failed');
  });
});

describe('a program that is no server', () => {
  it('is refused and terminated when it speaks something else', async () => {
    const body = `process.stderr.write('pid ' + process.pid + '\\n', async () => { await next(); console.log('not-json'); setTimeout(() => {}, 60000); });`;
    const error: unknown = await connect({ command: script(body) }).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ code: 'PROTOCOL_VIOLATION' });
    await ended(pidIn(isClientError(error) && error.data.stderr));
  });

  it('is terminated when it ignores SIGTERM and the end of its stdin as well', async () => {
    const body = `
      process.on('SIGTERM', () => {});
      setInterval(() => {}, 1000);
      process.stderr.write('pid ' + process.pid + '\\n', async () => { await next(); console.log('not-json'); });
    `;
    const error: unknown = await connect({ command: script(body) }).catch((cause: unknown) => cause);
    await ended(pidIn(isClientError(error) && error.data.stderr));
  });

  it('is reported with exit code and stderr when it ends at once', async () => {
    const connecting = connect({ command: script(`process.stderr.write('bad flag', () => process.exit(2));`) });
    await expect(connecting).rejects.toMatchObject({
      code: 'CONNECT_FAILED',
      data: { exitCode: 2, stderr: 'bad flag' },
    });
  });

  it.each([
    ['a command line in one piece', 'exec-server --listen stdio'],
    ['an empty array', []],
    ['a function, as one that was not called', () => ['exec-server']],
  ])('is asked for as an array, and not started from %s', async (_what, command) => {
    // What a program without types may pass.
    const connecting = connect({ command: command as unknown as [string] });
    await expect(connecting).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', data: { argument: 'command' } });
  });

  it('is reported when it does not exist', async () => {
    await expect(connect({ command: ['/no/such/server'] })).rejects.toMatchObject({
      code: 'CONNECT_FAILED',
      message: expect.stringMatching(/there is no such program.*ENOENT.*\/no\/such\/server/) as unknown,
    });
  });

  it('is terminated when it does not answer initialize', async () => {
    const body = `process.stderr.write('pid ' + process.pid + '\\n'); setInterval(() => {}, 1000);`;
    const error: unknown = await connect({ command: script(body), initializeTimeoutMs: 300 }).catch(
      (cause: unknown) => cause,
    );
    expect(error).toMatchObject({ code: 'INITIALIZE_TIMEOUT' });
  });
});
