/** A spool folder that cannot be used, and a full disk: output nobody takes meanwhile arrives, or is told byte by byte as gone. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connect } from '@exec-server/client';
import { limits } from '@exec-server/protocol';
import { createExecServer, type ExecServer, type ExecServerOptions } from '@exec-server/server';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { floodArgv, floodBytes, floodDigest } from '../support/flood.js';
import { behind, Gate } from '../support/gate.js';
import { serverProgram } from '../support/links.js';
import { Peaks } from '../support/peaks.js';
import { scaled } from '../support/scale.js';
import { type FloodTaken, takeFlood } from '../support/takeFlood.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
const LINES = scaled(16, 100) * (MIB / 16);
const BYTES = floodBytes(LINES);

let folder: string;
const programs: ChildProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'disk-'));
});
afterEach(async () => {
  for (const program of programs.splice(0)) program.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

interface Served extends AsyncDisposable {
  readonly server: ExecServer;
  readonly url: string;
  /** Problems that were logged. */
  readonly problems: unknown[];
}

async function serve(options: ExecServerOptions): Promise<Served> {
  const problems: unknown[] = [];
  const server = createExecServer({
    ...options,
    log: (level, _message, fields) => {
      if (level === 'warn' || level === 'error') problems.push(fields?.['kind']);
    },
  });
  const { url } = await server.listen();
  return {
    server,
    url,
    problems,
    [Symbol.asyncDispose]: async () => {
      await server.close();
      expect(server.gauges()).toMatchObject({ connections: 0, sessions: 0, processes: 0 });
      expect(server.gauges()).toMatchObject({ retainedBytes: 0, spooledBytes: 0, spoolPendingBytes: 0 });
    },
  };
}

/**
 * Starts a flood, leaves, and comes back when it is over; `isOver` where it is not over by its end. What is there then is
 * taken, and the server still works.
 */
async function takeAfterwards(
  url: string,
  { detached = 'spool', isOver }: { readonly detached?: 'spool' | 'pause'; readonly isOver?: () => boolean } = {},
): Promise<FloodTaken> {
  await using gate = await Gate.make();
  const first = await connect({ url });
  await first.start({ processId: 'flood', argv: behind(gate, floodArgv(LINES)), detached });
  const { sessionId } = first;
  await first.detach();
  const observer = await connect({ url, resumeSessionId: sessionId, attach: 'observe' });
  const isClosed = async (): Promise<boolean> => (await observer.list()).processes[0]?.state === 'closed';
  await gate.open();
  await until(isOver ?? isClosed, 'the flood to be over while nobody is attached', 30_000);
  await observer.close();
  const second = await connect({ url, resumeSessionId: sessionId });
  const taken = await takeFlood(await second.attach('flood'));
  expect((await second.run(['echo', 'ok'])).text()).toBe('ok\n');
  await second.close();
  return taken;
}

function expectWhole({ view, order }: FloodTaken): void {
  expect(order).toEqual(['exited', 'closed']);
  expect(view).toMatchObject({ received: BYTES, lost: 0, digest: floodDigest(LINES) });
}

/** The newest is there, the oldest is gone, and the two are all there was. */
function expectAccounted({ view, order }: FloodTaken, leastBytes: number): void {
  expect(order).toEqual(['gap', 'exited', 'closed']);
  expect(view.received + view.lost).toBe(BYTES);
  expect(view.received).toBeGreaterThanOrEqual(leastBytes);
  expect(view.lost).toBeGreaterThan(0);
}

/** Less than the window by the largest chunk. */
const WINDOW_BYTES = limits.RETAINED_BYTES_PER_PROCESS - 64 * 1024;

describe(`a flood of ${BYTES} bytes while nobody is attached`, () => {
  it.each([
    ['lies in a file', async (path: string) => writeFile(path, '')],
    ['lies in a folder that is not there', async () => undefined],
  ])('is told exactly where it is gone when the spool folder %s', async (_, prepare) => {
    const inside = join(folder, 'inside');
    await prepare(inside);
    await using served = await serve({ spoolDir: join(inside, 'spool') });
    const peaks = new Peaks(served);
    expectAccounted(await takeAfterwards(served.url), WINDOW_BYTES);
    expect(peaks.stop().spooledBytes).toBe(0);
    expect(served.problems).toEqual(['unavailable']);
  });

  it('arrives as long as the spool folder is there, and is told exactly where it is gone once that was removed', async () => {
    const spoolDir = join(folder, 'spool');
    await mkdir(spoolDir);
    await using served = await serve({ spoolDir });
    expectWhole(await takeAfterwards(served.url));
    expect(await readdir(spoolDir)).toEqual([]);
    expect(served.problems).toEqual([]);
    await rm(spoolDir, { recursive: true });
    expectAccounted(await takeAfterwards(served.url), WINDOW_BYTES);
    expect(served.problems).toHaveLength(1);
  });

  it('arrives without a spool folder when the process is held meanwhile', async () => {
    await using served = await serve({ spoolDir: join(folder, 'not there') });
    const isOver = (): boolean => served.server.gauges().heldBackProcesses === 1;
    expectWhole(await takeAfterwards(served.url, { detached: 'pause', isOver }));
    expect(served.problems).toEqual([]);
  });

  it.each(['processBytes', 'sessionBytes', 'serverBytes'] as const)(
    'is told exactly where it is gone when it is more than the %s of the spool',
    async (name) => {
      const most = 6 * MIB;
      const unlimited = { processBytes: 1024 * MIB, sessionBytes: 1024 * MIB, serverBytes: 1024 * MIB };
      await using served = await serve({ spoolDir: folder, spoolLimits: { ...unlimited, [name]: most } });
      const peaks = new Peaks(served);
      expectAccounted(await takeAfterwards(served.url), WINDOW_BYTES + most - MIB);
      expect(peaks.stop().spooledBytes).toBeLessThanOrEqual(most);
      expect(served.problems).toEqual([]);
      expect(await readdir(folder)).toEqual([]);
    },
  );
});

/** A server that sees a disk of this size at `path`; the mount is its own and goes with it. Undefined where there are none. */
async function serveOnDisk(path: string, mib: number): Promise<{ url: string; child: ChildProcess } | undefined> {
  const script = `mount -t tmpfs -o size=${mib}m none "$0" && exec "$@" --listen ws://127.0.0.1:0 --spool-dir "$0"`;
  const args = ['--user', '--map-root-user', '--mount', 'sh', '-c', script, path, process.execPath, serverProgram];
  const child = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'ignore'] });
  programs.push(child);
  // Without `unshare`, stdout just ends.
  child.on('error', () => {});
  for await (const url of createInterface(child.stdout)) return { url, child };
  return undefined;
}

describe('on a disk of 4 MiB, a flood while nobody is attached', () => {
  it('is told exactly where it is gone, each time anew', async (context) => {
    const served = await serveOnDisk(folder, 4);
    if (served === undefined) return context.skip('this host lets nobody mount a disk of its own');
    const { url, child } = served;
    for (let round = 0; round < 2; round += 1) expectAccounted(await takeAfterwards(url), WINDOW_BYTES);
    const { stdout } = await execa('nsenter', ['--target', String(child.pid), '--user', '--mount', 'ls', folder]);
    expect(stdout).toBe('');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    return undefined;
  });
});
