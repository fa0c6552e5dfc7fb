import { type Client, connect, isClientError } from '@exec-server/client';
import { describe, expect, it } from 'vitest';
import { surfaceBodies } from '../support/bodies/surfaceBodies.js';
import { subjects } from '../support/bodies/subject.js';
import { isAlive, join, links } from '../support/links.js';
import { joinByProxy } from '../support/proxied.js';
import { until } from '../support/until.js';

const decoder = new TextDecoder();

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = '';
  for await (const bytes of stream) text += decoder.decode(bytes, { stream: true });
  return text;
}

/** Reads until the text holds `part`. */
async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, part: string): Promise<string> {
  let text = '';
  while (!text.includes(part)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`no ${part} in ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return isClientError(error) ? error.code : undefined;
}

const sh = (script: string): [string, ...string[]] => ['/bin/sh', '-c', script];

describe.each(subjects)('over $name', surfaceBodies);

describe.each(links)('over %s', (link) => {
  it('streams carry both outputs and the input of a process', async () => {
    const joined = await join(link);
    const { client } = joined;
    const child = await client.spawn(sh('cat; echo err >&2; exit 3'));
    const [stdout, stderr] = [textOf(child.stdout), textOf(child.stderr)];
    const writer = child.stdin?.getWriter();
    await writer?.write('grüße ');
    await writer?.write(new TextEncoder().encode('→'));
    await writer?.close();
    expect([await stdout, await stderr]).toEqual(['grüße →', 'err\n']);
    expect(await child.exited).toEqual({ exitCode: 3, signal: undefined, reason: 'exited' });
    expect(await child.closed).toEqual({ reason: 'ended', holders: undefined });
    await joined.expectClean();
  });

  it('a terminal has the size it was given, and every later one', async () => {
    const joined = await join(link);
    const { client } = joined;
    const script = 'trap "stty size" WINCH; stty size; while :; do sleep 0.02; done';
    const handle = await client.start({ argv: sh(script), tty: { cols: 100, rows: 30 } });
    const reader = handle.stdout.getReader();
    await readUntil(reader, '30 100');
    await handle.resize({ cols: 132, rows: 50 });
    await readUntil(reader, '50 132');
    await handle.terminate({ graceMs: 5_000 });
    expect((await handle.wait()).reason).toBe('terminated');
    expect(await codeOf(handle.resize({ cols: 1, rows: 1 }))).toBe('SERVER_ERROR');
    await joined.expectClean();
  });

  it('a wait gives up without touching the process, and terminate tells what became of its tree', async () => {
    const joined = await join(link);
    const { client } = joined;
    const handle = await client.start({ argv: sh('trap "" TERM; echo ready; while :; do sleep 0.05; done') });
    await handle.stdout.getReader().read();
    expect(await codeOf(handle.wait({ timeoutMs: 20 }))).toBe('WAIT_TIMEOUT');
    expect(isAlive(handle.pid ?? 0)).toBe(true);
    const terminated = await handle.terminate({ graceMs: 50, leftovers: 'kill' });
    expect(terminated).toMatchObject({
      running: true,
      escalated: true,
      exit: { exitCode: 137, signal: 'SIGKILL', reason: 'terminated' },
      left: [],
    });
    expect(await handle.wait()).toMatchObject({ reason: 'terminated' });
    expect(await handle.terminate()).toMatchObject({ running: false });
    await joined.expectClean();
  });

  it('streams that others hold open end when their linger is over', async () => {
    const joined = await join(link);
    const { client } = joined;
    const result = await client.run(sh('sleep 600 & echo $!'), { lingerMs: 50 });
    expect(result).toMatchObject({ exitCode: 0, closed: true, closeReason: 'heldOpen', timedOut: false });
    process.kill(Number(result.text()), 'SIGKILL');
    await joined.expectClean();
  });

  it('what is listed can be released once it has closed', async () => {
    const joined = await join(link);
    const { client } = joined;
    const handle = await client.start({ argv: sh('read -r line; exit 4'), processId: 'one', stdin: 'pipe' });
    const { processes } = await client.list();
    expect(processes).toMatchObject([{ processId: 'one', state: 'running', pid: handle.pid, tty: false }]);
    await expect(handle.release()).rejects.toMatchObject({ data: { reason: 'processRunning' } });
    const released = handle.waitAndRelease();
    await handle.end('x\n');
    expect(await released).toMatchObject({ exitCode: 4, reason: 'exited' });
    expect((await client.list()).processes).toEqual([]);
    await handle.release();
    await joined.expectClean();
  });

  it('a start that adopts may be repeated, and takes place once', async () => {
    const joined = await join(link);
    const { client } = joined;
    const options = { argv: sh('echo $$; read -r line'), processId: 'p', stdin: 'pipe', ifExists: 'adopt' } as const;
    const [first, second] = [await client.start(options), await client.start(options)];
    expect(second.pid).toBe(first.pid);
    expect((await client.list()).processes).toHaveLength(1);
    await expect(client.start({ ...options, argv: ['true'] })).rejects.toMatchObject({
      data: { reason: 'startDiffers' },
    });
    await second.end();
    expect(await textOf(first.stdout)).toBe(`${first.pid}\n`);
    const again = await client.start(options);
    expect(await again.wait()).toMatchObject({ exitCode: 1 });
    expect(await textOf(again.stdout)).toBe(`${first.pid}\n`);
    await joined.expectClean();
  });

  it('an aborted start leaves no process', async () => {
    const joined = await join(link);
    const { client } = joined;
    for (let round = 0; round < 5; round += 1) {
      const abort = new AbortController();
      const starting = client.start({ argv: ['sleep', '600'], processId: `p${round}` }, { signal: abort.signal });
      for (let turn = 0; turn < round; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      abort.abort();
      const code = await codeOf(starting);
      // On a slow host the start may be over first.
      if (code === undefined && round > 0) await (await starting).terminate();
      else expect(code).toBe('ABORTED');
    }
    const running = async (): Promise<number> =>
      (await client.list()).processes.filter(({ exit }) => exit === undefined).length;
    await until(async () => (await running()) === 0, 'the aborted starts to end');
    await joined.expectClean();
  });
});

describe('after a cut', () => {
  it('exit and close have the reasons that were pushed into the void', async () => {
    const joined = await joinByProxy();
    const { client, proxy } = joined;
    const handle = await client.start({ argv: sh('sleep 600 & exec sleep 600'), timeoutMs: 300, lingerMs: 50 });
    proxy.refuse(true);
    proxy.cut();
    await until(() => !isAlive(handle.pid ?? 0), 'the timeout of the server');
    proxy.refuse(false);
    expect(await handle.wait()).toEqual({ exitCode: 137, signal: 'SIGKILL', reason: 'timedOut' });
    expect((await handle.closed()).reason).toBe('ended');
    await joined.expectClean();
  });

  it('another client takes up what is there, from its first event', async () => {
    const joined = await joinByProxy();
    const { client, server, proxy } = joined;
    const bytes = 2 * 1024 * 1024;
    const argv = sh(`head -c ${bytes} /dev/zero; echo end >&2; exec sleep 600`);
    const handle = await client.start({ argv, processId: 'p' });
    const stderr = handle.stderr.getReader();
    await readUntil(stderr, 'end');
    const { sessionId } = client;
    await client.detach();
    let next: Client | undefined;
    await until(async () => {
      next = await connect({ url: proxy.url, resumeSessionId: sessionId }).catch(() => undefined);
      return next !== undefined;
    }, 'the session to be free');
    if (next === undefined) throw new Error('not connected');
    const attached = await next.attach('p');
    let length = 0;
    const reader = attached.stdout.getReader();
    while (length < bytes) length += (await reader.read()).value?.byteLength ?? Number.NaN;
    expect([length, attached.gaps]).toEqual([bytes, []]);
    await next.close();
    expect(server.gauges().sessions).toBe(0);
    await joined.expectClean();
  });
});

it('a process that was started without a handle is read whole by attach, even while it is idle', async () => {
  const joined = await join('websocket');
  const { client } = joined;
  const bytes = 900 * 1024;
  const argv = ['/bin/sh', '-c', `head -c ${bytes} /dev/zero; exec sleep 600`];
  await client.call('process/start', { processId: 'p', argv, cwd: '/', env: {}, tty: false });
  await until(async () => (await client.list()).processes[0]?.outputBytes === bytes, 'the output');
  const reader = (await client.attach('p')).stdout.getReader();
  let length = 0;
  while (length < bytes) length += (await reader.read()).value?.byteLength ?? Number.NaN;
  expect(length).toBe(bytes);
  await joined.expectClean();
});
