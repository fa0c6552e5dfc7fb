import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client, ProcessHandle } from '@exec-server/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { command, serve } from '../support/command.js';
import { childrenOf, commandOf, isAlive, join, type Joined, serverProgram } from '../support/links.js';
import { until } from '../support/until.js';

let joined: Joined;
let client: Client;
beforeAll(async () => {
  joined = await join('memory');
  client = joined.client;
});
afterAll(() => joined.expectClean());

/** A terminal whose text a test waits for. */
class Terminal {
  readonly handle: ProcessHandle;
  text = '';
  readonly ended: Promise<void>;

  private constructor(handle: ProcessHandle) {
    this.handle = handle;
    this.ended = this.#read();
  }

  static async start(argv: readonly string[]): Promise<Terminal> {
    return new Terminal(await client.start({ argv, tty: { cols: 100, rows: 30 } }));
  }

  /** `script` in a shell that has the command as `$X`. */
  static sh(script: string): Promise<Terminal> {
    const run = `X="${process.execPath} ${serverProgram}"; ${script}`;
    return Terminal.start(['/bin/sh', '-c', run]);
  }

  says(part: string): Promise<void> {
    return until(() => this.text.includes(part), `${part} in ${JSON.stringify(this.text)}`);
  }

  /** The command that the shell runs. */
  async commandPid(): Promise<number> {
    const shell = this.handle.pid ?? 0;
    let pid = 0;
    // The shell asks `stty` before, which is a child of it as well.
    const look = (): boolean => {
      pid = childrenOf(shell).find((child) => commandOf(child).includes(serverProgram)) ?? 0;
      return pid > 0;
    };
    await until(look, 'the command to start');
    return pid;
  }

  async exitCode(): Promise<number> {
    const { exitCode } = await this.handle.wait();
    await this.ended;
    return exitCode;
  }

  async #read(): Promise<void> {
    for await (const piece of this.handle.text()) this.text += piece;
  }
}

const own = (...args: string[]): string[] => [process.execPath, serverProgram, ...args];
const LOOP = 'while :; do sleep 0.02; done';

describe('exec-server run --tty', () => {
  it('gives the command a terminal of our size, and passes its exit code on', async () => {
    const terminal = await Terminal.start(
      own('run', '--tty', '--', 'sh', '-c', 'test -t 0 && test -t 1 && test -t 2 && stty size; exit 7'),
    );
    expect(await terminal.exitCode()).toBe(7);
    expect(terminal.text).toBe('30 100\r\n');
  });

  it('follows our size', async () => {
    const terminal = await Terminal.start(
      own('run', '--tty', '--', 'sh', '-c', `trap "stty size; exit 0" WINCH; echo ready; ${LOOP}`),
    );
    await terminal.says('ready');
    await terminal.handle.resize({ cols: 132, rows: 50 });
    await terminal.says('50 132');
    expect(await terminal.exitCode()).toBe(0);
  });

  it('hands Ctrl-C to the command as a key', async () => {
    const terminal = await Terminal.start(
      own('run', '--tty', '--', 'sh', '-c', `trap "echo caught; exit 9" INT; echo ready; ${LOOP}`),
    );
    await terminal.says('ready');
    await terminal.handle.write('\u0003');
    expect(await terminal.exitCode()).toBe(9);
    expect(terminal.text).toContain('caught');
  });

  it('types each key once', async () => {
    const terminal = await Terminal.start(own('run', '--tty', '--', 'sh', '-c', 'echo ready; read -r x; echo "<$x>"'));
    await terminal.says('ready');
    await terminal.handle.write('abc\r');
    expect(await terminal.exitCode()).toBe(0);
    expect(terminal.text).toBe('ready\r\nabc\r\n<abc>\r\n');
  });

  it('does without a terminal of its own', async () => {
    const result = await command(['run', '--tty', '--', 'sh', '-c', 'test -t 1 && read -r x && echo "<$x>"'], {
      input: 'hi\n',
    });
    expect(result).toMatchObject({ stdout: expect.stringContaining('<hi>') as unknown, exitCode: 0 });
  });
});

const OWN_TERMINAL = fileURLToPath(new URL('../../packages/cli/dist/ownTerminal.js', import.meta.url));
const CRASH = `import { enterRawMode } from '${OWN_TERMINAL}'; enterRawMode(); setImmediate(() => { throw 1; })`;

describe('the terminal is restored', () => {
  const around = (line: string): Promise<Terminal> =>
    Terminal.sh(`a=$(stty -g); ${line}; code=$?; test "$a" = "$(stty -g)" && echo "restored, $code"`);

  it.each([
    ['when the command ends', '$X run --tty -- sh -c "stty raw; exit 3"', 3],
    ['when the command dies by a signal', "$X run --tty -- sh -c 'kill -9 $$'", 137],
    ['when there is no such command', '$X run --tty -- no-such-program', 127],
    ['when this program crashes', `${process.execPath} --input-type=module -e "${CRASH}"`, 1],
    ['when its server dies', "$X run --tty -- sh -c 'kill -9 $PPID; sleep 60'", 1],
  ])('%s', async (_when, line, code) => {
    const terminal = await around(line);
    await terminal.exitCode();
    expect(terminal.text).toContain(`restored, ${code}`);
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGQUIT', 131],
  ] as const)('when the command line is ended by %s, and the command with it', async (signal, code) => {
    const terminal = await around("$X run --tty -- sh -c 'echo ready $$.; exec sleep 600'");
    await terminal.says('.');
    process.kill(await terminal.commandPid(), signal);
    await terminal.exitCode();
    expect(terminal.text).toContain(`restored, ${code}`);
    const pid = Number(/ready (\d+)/.exec(terminal.text)?.[1]);
    await until(() => !isAlive(pid), 'the command to die');
  });

  it('when the shell ends', async () => {
    const terminal = await around('$X shell --cwd /');
    const pid = await terminal.commandPid();
    expect(pid).toBeGreaterThan(0);
    await terminal.handle.write('echo $((6*7)):$PWD\r');
    await terminal.says('42:/');
    await terminal.handle.write('exit 5\r');
    await terminal.exitCode();
    expect(terminal.text).toContain('restored, 5');
  });
});

describe('exec-server attach, on a terminal', () => {
  it('hands keys and size to a process on a terminal, and leaves it running at Ctrl-]', async () => {
    const folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-attach-'));
    const file = joinPath(folder, 'session');
    const server = await serve();
    const script = 'stty size; while read -r x; do echo "<$x>"; stty size; done';
    const onFile = ['--session-file', file];
    await command(['run', '--url', server.url, ...onFile, '--tty', '--detach', '--id', 'p', '--', 'sh', '-c', script]);

    const terminal = await Terminal.sh(
      `a=$(stty -g); $X attach ${onFile.join(' ')} p; test "$a" = "$(stty -g)" && echo restored`,
    );
    await terminal.says('24 80');
    await terminal.says('Ctrl-]');
    await terminal.handle.write('one\r');
    await terminal.says('<one>');
    await terminal.says('30 100');
    await terminal.handle.write('\u001d');
    await terminal.exitCode();
    expect(terminal.text).toMatch(/left p running[^\n]*\r\n.*restored/s);

    const { stdout } = await command(['ps', ...onFile]);
    expect(stdout).toMatch(/^p +\d+ +running/m);
    await server.stop();
    await rm(folder, { recursive: true });
  });
});

describe('a sentence of the command itself', () => {
  it('returns the carriage while the terminal is raw', async () => {
    const server = await serve();
    const terminal = await Terminal.start(
      own('run', '--url', server.url, '--tty', '--', 'sh', '-c', 'echo up; read -r x'),
    );
    await terminal.says('up');
    // One that is killed says nothing, and may come back.
    server.kill('SIGKILL');
    await server.ended;
    await terminal.says('reconnecting');
    terminal.handle.signal('SIGTERM').catch(() => undefined);
    expect(await terminal.exitCode()).toBe(143);
    expect(terminal.text).toContain('reconnecting\r\n');
  });
});

describe('exec-server shell', () => {
  it('says that it needs a terminal', async () => {
    const result = await command(['shell']);
    expect(result.exitCode).toBe(2);
    expect(result.stderr).toMatch(/^exec-server: shell needs a terminal/);
  });
});
