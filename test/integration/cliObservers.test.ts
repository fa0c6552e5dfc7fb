import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { connect } from '@exec-server/client';
import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { command, type Ended, serve, type Serving } from '../support/command.js';
import { serverProgram } from '../support/links.js';

let folder: string;
let server: Serving;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-observers-'));
  file = joinPath(folder, 'session');
  server = await serve();
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});
/** Each test has a session of its own. */
afterEach(() => rm(file, { force: true }));

/** A command that goes on while the test looks on; its stdin stays open. */
class Going {
  readonly #program;
  readonly ended: Promise<Ended>;

  constructor(args: readonly string[]) {
    this.#program = execa(process.execPath, [serverProgram, ...args], { reject: false });
    this.ended = this.#program.then(({ stdout, stderr, exitCode }) => ({ stdout, stderr, exitCode }));
  }

  /** Resolves when it has printed this. */
  async printed(text: string): Promise<void> {
    let seen = '';
    await new Promise<void>((resolve) => {
      this.#program.stdout.on('data', (bytes: Buffer) => {
        seen += bytes.toString();
        if (seen.includes(text)) resolve();
      });
    });
  }

  type(text: string): void {
    this.#program.stdin.write(text);
  }

  endInput(): void {
    this.#program.stdin.end();
  }

  interrupt(): void {
    this.#program.kill('SIGINT');
  }
}

/** `cat` in a session of its own, held by the command that runs it. */
async function holding(): Promise<Going> {
  const args = ['--url', server.url, '--session-file', file, '--id', 'cat'];
  const run = new Going(['run', ...args, '--', 'sh', '-c', 'echo up; exec cat']);
  await run.printed('up');
  return run;
}

const onSession = (name: string, ...args: string[]): readonly string[] => [name, '--session-file', file, ...args];

describe('while another client holds the session', () => {
  it('ps lists its processes and leaves the holder in peace', async () => {
    const run = await holding();
    const { stdout, exitCode } = await command(onSession('ps'));
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^cat +\d+ +running/m)]);
    run.endInput();
    expect(await run.ended).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('attach --observe shows the output, passes nothing on, and ends with the code of the process', async () => {
    const run = await holding();
    const observer = new Going(onSession('attach', '--observe', 'cat'));
    await observer.printed('up');
    observer.type('from the observer\n');
    observer.endInput();
    run.type('from the holder\n');
    await observer.printed('from the holder');
    run.endInput();
    expect(await run.ended).toEqual({ exitCode: 0, stdout: 'up\nfrom the holder', stderr: '' });
    expect(await observer.ended).toEqual({ exitCode: 0, stdout: 'up\nfrom the holder', stderr: '' });
  });

  it('attach --observe leaves at Ctrl-C and says from where to go on', async () => {
    const run = await holding();
    const observer = new Going(onSession('attach', '--observe', 'cat'));
    await observer.printed('up');
    observer.interrupt();
    const { exitCode, stderr } = await observer.ended;
    expect([exitCode, stderr]).toEqual([130, expect.stringContaining('--observe --after 1 ')]);
    run.endInput();
    expect(await run.ended).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('attach --take-over goes on with the process, and the command that lost it says so', async () => {
    const run = await holding();
    const winner = new Going(onSession('attach', '--take-over', 'cat'));
    await winner.printed('up');
    const { exitCode, stderr } = await run.ended;
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /another client took the session over; the process runs on there; .*--take-over takes it back$/,
    );
    // The file still names the session, which goes on.
    await expect(stat(file)).resolves.toBeDefined();
    winner.interrupt();
    expect((await winner.ended).exitCode).toBe(130);
    expect((await command(onSession('ps'))).stdout).toMatch(/^cat .*running/m);
  });

  it('kill --take-over ends a process of somebody else', async () => {
    const run = await holding();
    expect(await command(onSession('kill', '--grace', '0', '--take-over', 'cat'))).toMatchObject({
      exitCode: 0,
      stdout: 'cat was ended (SIGKILL)',
    });
    expect((await run.ended).exitCode).not.toBe(0);
  });
});

describe('an id for observers', () => {
  it('is enough for ps and attach --observe, and for nothing else', async () => {
    const args = ['--url', server.url, '--session-file', file, '--detach', '--id', 'job'];
    await command(['run', ...args, '--', 'sh', '-c', 'echo one; exit 4']);
    const { sessionId } = JSON.parse(await readFile(file, 'utf8')) as { sessionId: string };
    const client = await connect({ url: server.url, resumeSessionId: sessionId, attach: 'observe' });
    const env = { EXEC_SERVER_SESSION: client.observeId ?? '' };
    await client.close();
    const byId = (...words: string[]): Promise<Ended> => command([...words, '--url', server.url], { env });
    expect((await byId('ps')).stdout).toMatch(/^job /m);
    expect(await byId('attach', '--observe', 'job')).toEqual({ exitCode: 4, stdout: 'one', stderr: '' });
    for (const words of [
      ['attach', 'job'],
      ['kill', 'job'],
      ['kill', '--take-over', 'job'],
    ]) {
      expect(await byId(...words)).toMatchObject({
        exitCode: 1,
        stderr: 'exec-server: this id lets look on and nothing else: `ps` and `attach --observe` take it',
      });
    }
  });
});

it('--observe and --take-over at once is a mistake', async () => {
  const { exitCode, stderr } = await command(onSession('attach', '--observe', '--take-over', 'x'));
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('pass one')]);
});

it.each([
  ['attach', ['--observe', '--take-over']],
  ['kill', ['--take-over']],
])('the help of %s has an example of each of its ways into a held session', async (name, flags) => {
  const { stdout } = await command([name, '--help']);
  const [, examples = ''] = stdout.split('Examples:');
  for (const flag of flags) expect(examples).toContain(flag);
});
