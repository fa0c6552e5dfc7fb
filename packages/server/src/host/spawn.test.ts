import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { WireError } from '@exec-server/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ChildExit, OutputSource, SpawnedChild, SpawnRequest } from './child.js';
import { createHostPlatform, type HostPlatform } from './spawn.js';

const PATH = '/usr/local/bin:/usr/bin:/bin';
let folder = '';
let host: HostPlatform = createHostPlatform();
const hosts: HostPlatform[] = [host];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'spawn-'));
  writeFileSync(join(folder, 'lost'), '#!/no/such/interpreter\n', { mode: 0o755 });
  writeFileSync(join(folder, 'broken'), '\x7fELF\0\0\0\0', { mode: 0o755 });
  writeFileSync(join(folder, 'text'), 'echo "from sh: $0"\n', { mode: 0o755 });
});
afterEach(async () => {
  for (const used of hosts.splice(0)) await used.close();
  host = createHostPlatform();
  hosts.push(host);
});
afterAll(async () => {
  await host.close();
  rmSync(folder, { recursive: true });
});

function start(argv: readonly string[], changes: Partial<SpawnRequest> = {}): Promise<SpawnedChild> {
  return host.spawn({ argv, cwd: folder, env: { PATH }, stdin: 'none', ...changes });
}

function sh(script: string, changes: Partial<SpawnRequest> = {}): Promise<SpawnedChild> {
  return start(['/bin/sh', '-c', script], changes);
}

function exited(child: SpawnedChild): Promise<ChildExit> {
  return new Promise((resolve) => child.onExit(resolve));
}

function readAll(source: OutputSource | undefined): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    source?.start({ bytes: (bytes) => chunks.push(bytes), ended: () => resolve(Buffer.concat(chunks)) });
  });
}

async function finish(child: SpawnedChild): Promise<{ stdout: string; stderr: string } & ChildExit> {
  const [exit, stdout, stderr] = await Promise.all([
    exited(child),
    readAll(child.outputs[0]),
    readAll(child.outputs[1]),
  ]);
  return { stdout: stdout.toString(), stderr: stderr.toString(), ...exit };
}

/** Resolves with the text so far once it holds `part`; the output is read on. */
function saying(child: SpawnedChild, part: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    child.outputs[0]?.start({
      bytes: (bytes) => {
        text += Buffer.from(bytes).toString();
        if (text.includes(part)) resolve(text);
      },
      ended: () => undefined,
    });
  });
}

function write(child: SpawnedChild, bytes: Uint8Array): Promise<Error | undefined> {
  return new Promise((resolve) => child.stdin?.write(bytes, resolve));
}

function descriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

/** Pids of children of this process, zombies included. */
function children(): readonly string[] {
  return readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'latin1');
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === process.pid;
    } catch {
      return false; // it ended since the listing
    }
  });
}

async function failure(starting: Promise<SpawnedChild>): Promise<WireError> {
  const thrown: unknown = await starting.catch((error: unknown) => error);
  if (!(thrown instanceof WireError)) throw new Error(`expected a WireError, got ${String(thrown)}`);
  return thrown;
}

describe('streams of a child', () => {
  it('can be opened again by name', async () => {
    const child = await sh('echo hi > /dev/stdout; echo x | tee /dev/stderr');
    expect(await finish(child)).toEqual({ stdout: 'hi\nx\n', stderr: 'x\n', code: 0, signal: null });
  });

  it('end a stdin that is opened by name after the EOF was sent', async () => {
    const child = await sh('read -r line; echo "$line"; cat /dev/stdin; echo done', { stdin: 'pipe' });
    child.stdin?.write(Buffer.from('first\nrest\n'), () => undefined);
    child.stdin?.end();
    expect((await finish(child)).stdout).toMatch(/^first\n(rest\n)?done\n$/);
    const late = await sh('sleep 0.3; cat /dev/stdin', { stdin: 'pipe' });
    late.stdin?.end();
    expect(await finish(late)).toMatchObject({ stdout: '', code: 0 });
  });

  it('lose no byte written right before the exit', async () => {
    for (let round = 0; round < 50; round += 1) {
      const child = await sh('head -c 200000 /dev/zero; exit 9');
      const [exit, stdout] = await Promise.all([exited(child), readAll(child.outputs[0])]);
      expect([exit.code, stdout.length]).toEqual([9, 200_000]);
      child.outputs[1]?.destroy();
    }
  });

  it('are blocking for the child and carry large amounts both ways', async () => {
    const child = await start(['/bin/cat'], { stdin: 'pipe' });
    const reading = finish(child);
    const block = Buffer.alloc(4_000_000, 'abcdefgh\n');
    const first = write(child, block);
    const second = write(child, Buffer.from('end'));
    expect(child.stdin?.queuedBytes).toBe(4_000_003);
    child.stdin?.end();
    expect([await first, await second]).toEqual([undefined, undefined]);
    expect(child.stdin?.queuedBytes).toBe(0);
    expect((await reading).stdout).toBe(`${block.toString()}end`);
  });

  it('hold bytes back while paused, before and after the start of delivery', async () => {
    const child = await sh('head -c 1000000 /dev/zero');
    const [stdout, stderr] = child.outputs;
    stderr?.destroy();
    let received = 0;
    stdout?.pause();
    const ended = new Promise<void>((resolve) => {
      stdout?.start({
        bytes: (bytes) => {
          received += bytes.length;
          stdout.pause();
          setImmediate(() => stdout.resume());
        },
        ended: resolve,
      });
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(received).toBe(0);
    stdout?.resume();
    await ended;
    expect(received).toBe(1_000_000);
  });

  it('end at once when destroyed, delivering nothing further', async () => {
    const child = await sh('exec yes');
    const [stdout, stderr] = child.outputs;
    stderr?.destroy();
    let after = 0;
    let destroyed = false;
    await new Promise<void>((resolve) => {
      stdout?.start({
        bytes: () => {
          if (destroyed) after += 1;
          destroyed = true;
          stdout.destroy();
        },
        ended: resolve,
      });
    });
    expect(after).toBe(0);
    expect(await exited(child)).toEqual({ code: null, signal: 'SIGPIPE' });
  });

  it('stay open after the exit while a descendant holds them', async () => {
    const child = await sh('exec 3<&0; (read -r line <&3; echo "$line") & echo early', { stdin: 'pipe' });
    let ended = false;
    const reading = finish(child).finally(() => {
      ended = true;
    });
    await exited(child);
    expect(ended).toBe(false);
    expect(await write(child, Buffer.from('late\n'))).toBeUndefined();
    expect((await reading).stdout).toBe('early\nlate\n');
    child.stdin?.destroy();
  });

  it('are /dev/null for stdin unless asked for, and nothing else is passed on', async () => {
    const list = ['/bin/ls', '/proc/self/fd'];
    // What this process inherited without close-on-exec is not ours to close.
    const inherited = spawnSync(list[0] ?? '', list.slice(1), {
      stdio: ['ignore', 'pipe', 'ignore'],
    }).stdout.toString();
    const other = await start(['/bin/cat'], { stdin: 'pipe' });
    const child = await start(list);
    expect(child.stdin).toBeUndefined();
    expect((await finish(child)).stdout).toBe(inherited);
    expect((await finish(await sh('cat; readlink /proc/self/fd/0'))).stdout).toBe('/dev/null\n');
    other.stdin?.end();
    await finish(other);
  });
});

describe('the stdin of a child that closes it', () => {
  it('is broken, and only that', async () => {
    const child = await sh('exec 0<&-; trap "exit 3" TERM; sleep 60 & echo closed; wait', { stdin: 'pipe' });
    let broken = 0;
    child.stdin?.onBroken(() => {
      broken += 1;
    });
    await saying(child, 'closed');
    expect((await write(child, Buffer.alloc(1_000_000)))?.message).toContain('EPIPE');
    expect(await write(child, Buffer.from('x'))).toBeInstanceOf(Error);
    child.stdin?.end();
    child.stdin?.destroy();
    expect(broken).toBe(1);
    child.outputs[1]?.destroy();
    expect(child.signalGroup('SIGTERM')).toBe('delivered');
    expect(await exited(child)).toEqual({ code: 3, signal: null });
  });

  it('fails the writes that wait in a full pipe', async () => {
    const child = await sh('head -c 10 > /dev/null; exec 0<&-; echo closed', { stdin: 'pipe' });
    const writes = Array.from({ length: 160 }, () => write(child, Buffer.alloc(65_536)));
    const done = finish(child);
    const results = await Promise.all(writes);
    expect(results.at(-1)).toBeInstanceOf(Error);
    expect(child.stdin?.queuedBytes).toBe(0);
    expect(await done).toMatchObject({ stdout: 'closed\n', code: 0 });
    await new Promise<void>((resolve) => child.stdin?.onBroken(resolve));
  });

  it('leaves SIGPIPE to its default in the child', async () => {
    const child = await start(['/bin/bash', '-c', 'yes | head -n1; echo "${PIPESTATUS[@]}"']);
    expect((await finish(child)).stdout).toBe('y\n141 0\n');
  });
});

describe('a child', () => {
  it('gets exactly the environment, folder and argv[0] of the request', async () => {
    const child = await start(['/usr/bin/env'], { env: { A: '1', '': 'empty' } });
    expect((await finish(child)).stdout.split('\n').sort()).toEqual(['', '=empty', 'A=1']);
    const named = await start(
      ['/bin/sh', '-c', 'tr "\\0" "\\n" < /proc/$$/cmdline | head -n1; pwd; ps -o pgid=,sid= -p $$'],
      { arg0: 'other' },
    );
    const lines = (await finish(named)).stdout.split('\n').map((line) => line.trim().replace(/ +/g, ' '));
    expect(lines).toEqual(['other', folder, `${named.pid} ${named.pid}`, '']);
    const found = await start(['sh', '-c', 'tr "\\0" "\\n" < /proc/$$/cmdline | head -n1']);
    expect((await finish(found)).stdout).toBe('sh\n');
  });

  it('tells its exit to late listeners too, as code or signal', async () => {
    const child = await sh('kill -TERM $$');
    await finish(child);
    expect(await exited(child)).toEqual({ code: null, signal: 'SIGTERM' });
  });

  it('is run by sh when it is a text file without an interpreter line', async () => {
    expect((await finish(await start(['./text']))).stdout).toBe('from sh: ./text\n');
  });

  it('takes its grandchildren with it when its group is killed', async () => {
    const child = await sh('sleep 60 & sleep 60 & echo $!; wait');
    const grandchild = Number(await saying(child, '\n'));
    expect(child.signalGroup('SIGKILL')).toBe('delivered');
    expect(await exited(child)).toEqual({ code: null, signal: 'SIGKILL' });
    await vi.waitFor(() => expect(child.signalGroup('SIGKILL')).toBe('gone'));
    expect(isRunning(grandchild)).toBe(false);
  });

  it('leaves a group that can be signalled until its last member ends', async () => {
    const child = await sh('sleep 60 & echo $!');
    const [pid] = await Promise.all([saying(child, '\n'), exited(child)]);
    expect(child.signalGroup('SIGTERM')).toBe('delivered');
    await vi.waitFor(() => expect(isRunning(Number(pid))).toBe(false));
    expect(child.signalGroup('SIGTERM')).toBe('gone');
  });

  it('is not signalled with a name the host does not know', async () => {
    const child = await sh('sleep 60');
    expect(() => child.signalGroup('SIGNONE')).toThrow(expect.objectContaining({ reason: 'signalFailed' }));
    child.signalGroup('SIGKILL');
    await finish(child);
    expect(host.signals).toEqual(Object.keys(constants.signals));
  });
});

/** False for a zombie, which nobody may reap here. */
function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    return false; // no such process
  }
}

describe('a start that fails', () => {
  it('is typed and leaves nothing', async () => {
    await host.probePipes();
    const cases: readonly [reason: string, argv: readonly string[], changes?: Partial<SpawnRequest>][] = [
      ['programNotFound', ['no-such-program']],
      ['programNotFound', ['/no/such/program']],
      ['notExecutable', [folder]],
      ['interpreterNotFound', ['./lost']],
      ['cwdNotFound', ['/bin/true'], { cwd: join(folder, 'none') }],
      ['cwdNotDirectory', ['/bin/true'], { cwd: join(folder, 'text') }],
      ['emptyArgv', []],
      ['emptyProgram', ['']],
      ['nulByte', ['/bin/true', '\0']],
      ['argumentTooLong', ['/bin/true', 'x'.repeat(131_072)]],
      ['argumentsTooLong', ['/bin/true', ...Array.from({ length: 70 }, () => 'x'.repeat(100_000))]],
    ];
    for (const stdin of ['none', 'pipe'] as const) {
      for (const [reason, argv, changes] of cases) {
        const error = await failure(start(argv, { stdin, ...changes }));
        expect([error.reason, error.data.reason]).toEqual([reason, reason]);
      }
    }
    await host.close();
    expect(children()).toEqual([]);
  });

  it('is cancelled right before the fork', async () => {
    const request: SpawnRequest = { argv: ['/bin/true'], cwd: folder, env: {}, stdin: 'pipe' };
    expect((await failure(host.spawn(request, () => true))).reason).toBe('startCancelled');
    await host.close();
    expect(children()).toEqual([]);
    expect((await failure(host.spawn(request))).reason).toBe('serverStopping');
  });

  it.each([true, false])(
    'for want of descriptors says so at every step and recovers, real pipes: %s',
    async (realPipes) => {
      host = createHostPlatform({ realPipes });
      hosts.push(host);
      await finish(await start(['/bin/true']));
      await host.close();
      const before = descriptors();
      const fillers: number[] = [];
      const fill = (): void => {
        for (;;) {
          try {
            fillers.push(openSync('/dev/null', 'r'));
          } catch {
            return; // full, as wanted
          }
        }
      };
      const outcomes = new Set<string>();

      for (let spare = 0; spare < 24; spare += 1) {
        host = createHostPlatform({ realPipes, pipePool: { batchPipes: 4 } });
        fill();
        for (const fd of fillers.splice(-spare, spare)) closeSync(fd);
        const starting = start(['/bin/true'], { stdin: 'pipe' });
        try {
          const child = await starting;
          await finish(child);
          child.stdin?.destroy();
          outcomes.add('started');
        } catch (error) {
          outcomes.add(error instanceof WireError ? error.reason : String(error));
        }
        await host.close();
      }
      for (const fd of fillers.splice(0)) closeSync(fd);
      expect(outcomes).toEqual(new Set(['tooManyOpenFiles', 'started']));
      await vi.waitFor(() => expect(descriptors()).toBeLessThanOrEqual(before));
      expect(children()).toEqual([]);
    },
  );
});

describe('many starts', () => {
  it.each([true, false])('leave no descriptor and no zombie, real pipes: %s', async (realPipes) => {
    host = createHostPlatform({ realPipes });
    await finish(await start(['/bin/true']));
    await host.close();
    const before = descriptors();
    host = createHostPlatform({ realPipes });
    let left = 300;
    const worker = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        const child = await start(['/bin/true'], { stdin: left % 3 === 0 ? 'pipe' : 'none' });
        if (left % 2 === 0) child.stdin?.end();
        else child.stdin?.destroy();
        await finish(child);
        child.stdin?.destroy();
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    await host.close();
    await vi.waitFor(() => expect(descriptors()).toBeLessThanOrEqual(before));
    expect(children()).toEqual([]);
  });

  it('work on socket pairs, where only streams by name are missing', async () => {
    host = createHostPlatform({ realPipes: false });
    expect(await host.probePipes()).toBe(false);
    const child = await sh('cat; echo err >&2; echo x > /dev/stdout || exit 7', { stdin: 'pipe' });
    expect(await write(child, Buffer.from('in\n'))).toBeUndefined();
    child.stdin?.end();
    const result = await finish(child);
    expect(result).toMatchObject({ stdout: 'in\n', code: 7 });
    expect(result.stderr).toContain('err\n');
    expect((await failure(start(['./lost']))).reason).toBe('interpreterNotFound');
  });
});
