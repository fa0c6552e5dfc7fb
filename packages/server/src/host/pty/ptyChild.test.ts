import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { WireError } from '@exec-server/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { scaled } from '../../../../../test/support/scale.js';
import { closeScreens, PATH, shScreen, startScreen } from '../../../../../test/support/terminal.js';
import { until } from '../../../../../test/support/until.js';
import { liveMasterFds } from './masters.js';
import { spawnPty } from './ptyChild.js';

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pty-'));
  writeFileSync(join(folder, 'lost'), '#!/no/such/interpreter\n', { mode: 0o755 });
  writeFileSync(join(folder, 'plain'), 'text', { mode: 0o644 });
  writeFileSync(join(folder, 'text'), 'echo "from sh: $0"\n', { mode: 0o755 });
});
afterEach(closeScreens);
afterAll(() => rmSync(folder, { recursive: true }));

async function failure(promise: Promise<unknown>): Promise<WireError> {
  const thrown: unknown = await promise.catch((error: unknown) => error);
  if (!(thrown instanceof WireError)) throw new Error(`expected a WireError, got ${String(thrown)}`);
  return thrown;
}

function thrownBy(act: () => unknown): WireError {
  try {
    act();
  } catch (error) {
    if (error instanceof WireError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

async function textOf(argv: readonly string[], changes = {}): Promise<string> {
  return (await (await startScreen(argv, changes)).read().finish()).text;
}

describe('a program on a terminal', () => {
  it('has it as its streams and as its controlling terminal, 80 by 24, in the usual mode', async () => {
    const script = 'tty; stty size; stty -a | tr -s " ;" "\\n" | grep -E "^-?(icanon|echo|onlcr|iutf8)$"; cat /dev/tty';
    const screen = (await shScreen(`test -t 0 && test -t 1 && test -t 2 && ${script}`)).read();
    await screen.type('\x04');
    const [name, ...lines] = (await screen.finish()).text.split('\r\n');
    expect(name).toMatch(/^\/dev\/pts\/\d+$/);
    expect(lines.sort()).toEqual(['', '-iutf8', '24 80', 'echo', 'icanon', 'onlcr']);
  });

  it('leads a session and a group of its own', async () => {
    const screen = (await shScreen('cat /proc/$$/stat; sleep 60')).read();
    await screen.says('\n');
    const [, , group, session, , foreground] = screen.text.split(') ')[1]?.split(' ') ?? [];
    expect([group, session, foreground].map(Number)).toEqual(Array(3).fill(screen.child.pid));
  });

  it('gets the environment of the request and the shell of the user', async () => {
    const shell = userInfo().shell ?? '';
    expect((await textOf(['env'])).split('\r\n').sort()).toEqual(['', `PATH=${PATH}`, `SHELL=${shell}`]);
    const env = { PATH, SHELL: '/own', TERM: 'vt100', 'odd=name': 'x', UMLAUT: 'ä' };
    const lines = (await textOf(['env'], { env })).split('\r\n').map((line) => Buffer.from(line, 'latin1').toString());
    expect(new Set(lines)).toEqual(new Set(['', `PATH=${PATH}`, 'SHELL=/own', 'TERM=vt100', 'UMLAUT=ä', 'odd=name=x']));
  });

  it('gets the program as argv[0], or what the request says, with the same pid', async () => {
    expect(await textOf(['./text'], { cwd: folder })).toBe('from sh: ./text\r\n');
    const show = 'tr "\\0" " " < /proc/$$/cmdline; echo; echo $$ "$@"; env';
    expect(await textOf(['sh', '-c', show])).toMatch(/^sh -c /);
    const env = { PATH, SHELL: '/s', BASH_ENV: join(folder, 'text') };
    const screen = (await startScreen(['sh', '-c', show, 'x', '--', 'a b', ''], { arg0: 'my name', env })).read();
    const [title, pids, ...lines] = (await screen.finish()).text.split('\r\n');
    expect(title).toMatch(/^my name -c /);
    expect(pids).toBe(`${screen.child.pid} -- a b `);
    expect(lines.filter((line) => !line.startsWith('PWD=')).sort()).toEqual(
      ['', `BASH_ENV=${join(folder, 'text')}`, `PATH=${PATH}`, 'SHELL=/s', 'SHLVL=0'].sort(),
    );
    expect(await textOf(['/usr/bin/env'], { arg0: 'e', env: { SHELL: '/s', PWD: '/elsewhere' } })).toContain(
      'PWD=/elsewhere\r\n',
    );
    expect(await textOf(['/usr/bin/env'], { arg0: 'e', env: { SHELL: '/s' } })).toBe('SHELL=/s\r\nSHLVL=0\r\n');
  });

  it('tells how it ended, by code or by signal', async () => {
    for (const [script, code, signal] of [
      ['exit 7', 7, null],
      ['kill -TERM $$', null, 'SIGTERM'],
      ['kill -KILL $$', null, 'SIGKILL'],
      ['kill -40 $$', 128 + 40, null],
    ] as const) {
      expect(await (await shScreen(script)).read().finish()).toMatchObject({ code, signal });
    }
  });

  it('can be signalled as soon as it has started', async () => {
    for (let round = 0; round < scaled(20, 100); round += 1) {
      const screen = (await startScreen(['/bin/sleep', '60'])).read();
      expect(screen.child.signalGroup('SIGKILL')).toBe('delivered');
      expect((await screen.finish()).signal).toBe('SIGKILL');
    }
  });
});

describe('a start on a terminal that fails', () => {
  it('names the reason and leaves nothing', async () => {
    await (await shScreen('exit 0')).read().finish();
    const before = readdirSync('/proc/self/fd').length;
    for (const [reason, argv, changes] of [
      ['emptyArgv', [], {}],
      ['emptyProgram', [''], {}],
      ['nulByte', ['true', '\0'], {}],
      ['argumentTooLong', ['true', 'x'.repeat(140_000)], {}],
      ['programNotFound', ['/no/such/program'], {}],
      ['programNotFound', ['true'], { env: { PATH: '/nope' } }],
      ['notExecutable', ['./plain'], {}],
      ['notExecutable', ['/tmp'], {}],
      ['interpreterNotFound', ['./lost'], {}],
      ['interpreterNotFound', ['lost'], { env: { PATH: '.' } }],
      ['cwdNotFound', ['true'], { cwd: '/no/such/folder' }],
      ['cwdNotDirectory', ['true'], { cwd: '/etc/passwd' }],
    ] as const) {
      expect((await failure(startScreen(argv, { cwd: folder, ...changes }))).reason).toBe(reason);
    }
    expect([readdirSync('/proc/self/fd').length, liveMasterFds()]).toEqual([before, []]);
  });

  it('was cancelled before the fork', async () => {
    const starting = spawnPty({ argv: ['true'], cwd: '/', env: { PATH }, stdin: 'none' }, () => true);
    expect((await failure(starting)).reason).toBe('startCancelled');
    expect(liveMasterFds()).toEqual([]);
  });

  it('found no descriptors left, and the next one succeeds', async () => {
    await textOf(['true']);
    const fds: number[] = [];
    try {
      for (;;) fds.push(openSync('/dev/null', 'r'));
    } catch {
      // The limit is reached.
    }
    const error = await failure(startScreen(['true']));
    for (const fd of fds) closeSync(fd);
    expect(error.reason).toBe('tooManyOpenFiles');
    expect(await textOf(['echo', 'x'])).toBe('x\r\n');
  });

  it('is told from a program that says the same', async () => {
    const text = 'execvp(3) failed.: No such file or directory';
    expect((await (await shScreen(`echo '${text}'; exit 2`)).read().finish()).text).toBe(`${text}\r\n`);
  });
});

describe('the size of a terminal', () => {
  it('is the one of the start, then that of each resize, which the program in the foreground hears of', async () => {
    const script = `trap 'stty size' WINCH; stty size; echo ready; while :; do sleep 0.05; done`;
    const screen = (await startScreen(['bash', '--norc', '-c', script], { terminal: { cols: 100, rows: 40 } })).read();
    await screen.says('40 100\r\nready');
    screen.child.resize({ cols: 132, rows: 50 });
    await screen.says('50 132');
  });

  it('may be extreme', async () => {
    const screen = (await shScreen('stty size; read line; stty size', { terminal: { cols: 65_535, rows: 1 } })).read();
    await screen.says('1 65535');
    screen.child.resize({ cols: 1, rows: 65_535 });
    await screen.type('\n');
    expect((await screen.finish()).text).toContain('65535 1\r\n');
  });

  it('is refused unless both are integers from 1 to 65535', async () => {
    const screen = (await startScreen(['/bin/sleep', '60'])).read();
    for (const wrong of [0, -1, 70_000, 1.5, Number.NaN]) {
      for (const field of ['cols', 'rows'] as const) {
        const size = { cols: 80, rows: 24, [field]: wrong };
        for (const error of [
          await failure(startScreen(['true'], { terminal: size })),
          thrownBy(() => screen.child.resize(size)),
        ]) {
          expect([error.reason, error.data.field]).toEqual(['invalidParams', `size.${field}`]);
        }
      }
    }
  });

  it('cannot be changed after the exit', async () => {
    const screen = (await shScreen('exit 0')).read();
    await screen.finish();
    expect(thrownBy(() => screen.child.resize({ cols: 80, rows: 24 })).reason).toBe('processEnded');
  });
});

describe('the foreground of a terminal', () => {
  it('is the job a shell with job control runs', async () => {
    const job = `sh -c 'trap "echo job; exit 9" INT; echo ready; while :; do sleep 0.05; done'`;
    const screen = (await shScreen(`set -m; ${job}; echo rc=$?; sleep 60`)).read();
    await screen.says('ready');
    const group = screen.child.foregroundGroup();
    expect([group === undefined, group === screen.child.pid]).toEqual([false, false]);
    // To the leader's group; the shell holds it back while the job runs.
    expect(screen.child.signalGroup('SIGCONT')).toBe('delivered');
    expect(screen.child.signalForeground('SIGINT')).toBe('delivered');
    await screen.says('rc=9');
    expect(screen.text).toContain('job\r\n');
  });

  it('is the program itself when there is no job, and nothing after the exit', async () => {
    const screen = (await startScreen(['/bin/sleep', '60'])).read();
    expect(screen.child.foregroundGroup()).toBe(screen.child.pid);
    expect(screen.child.signalForeground('SIGTERM')).toBe('delivered');
    expect((await screen.finish()).signal).toBe('SIGTERM');
    expect(screen.child.foregroundGroup()).toBeUndefined();
    await until(() => screen.child.signalForeground('SIGTERM') === 'gone', 'the group to be gone');
  });
});
