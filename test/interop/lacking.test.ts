/** What the reference lacks is refused by our client before anything is sent, by what `initialize` said alone. */
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { type Client, connect, type ProcessHandle } from '@exec-server/client';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { joinReference, type JoinedReference } from './rig/joinReference.js';

const file = joinPath(tmpdir(), 'exec-server-lacking');
const start = { argv: ['true'] } as const;

type Use = (client: Client, handle: ProcessHandle) => Promise<unknown>;

const lacking: readonly (readonly [what: string, use: Use])[] = [
  ['a terminal size', (client) => client.start({ ...start, tty: { cols: 80, rows: 24 } })],
  ['timeoutMs of a start', (client) => client.start({ ...start, timeoutMs: 1_000 })],
  ['lingerMs of a start', (client) => client.start({ ...start, lingerMs: 1_000 })],
  ['ifExists of a start', (client) => client.start({ ...start, processId: 'new', ifExists: 'adopt' })],
  ['input of a run', (client) => client.run(['cat'], { input: 'x' })],
  ['list', (client) => client.list()],
  ['attachAll', (client) => client.attachAll()],
  ['a read that waits', (client) => client.call('process/read', { processId: 'p', waitMs: 1_000 })],
  ['session/close', (client) => client.call('session/close', {})],
  ['process/follow', (client) => client.call('process/follow', { processId: 'p', afterSeq: 0 })],
  ['resize', (_, handle) => handle.resize({ cols: 80, rows: 24 })],
  ['end', (_, handle) => handle.end()],
  ['end with data', (_, handle) => handle.end('last')],
  ['write at an offset', (_, handle) => handle.write('x', { offset: 0 })],
  ['stdinOffset', (_, handle) => handle.stdinOffset()],
  ['flush', (_, handle) => handle.flush()],
  ['release', (_, handle) => handle.release()],
  ['waitAndRelease', (_, handle) => handle.waitAndRelease()],
  ['SIGTERM', (_, handle) => handle.signal('SIGTERM')],
  ['SIGKILL', (_, handle) => handle.signal('SIGKILL')],
  ['terminate with graceMs', (_, handle) => handle.terminate({ graceMs: 100 })],
  ['terminate with leftovers', (_, handle) => handle.terminate({ leftovers: 'kill' })],
  ['terminate with wait', (_, handle) => handle.terminate({ wait: true })],
  ['move', ({ fs }) => fs.move(file, `${file}-2`)],
  ['watch', ({ fs }) => fs.watch(tmpdir())],
  ['append', ({ fs }) => fs.writeFile(file, 'x', { append: true })],
  ['overwrite: false', ({ fs }) => fs.writeFile(file, 'x', { overwrite: false })],
  ['mode of a file', ({ fs }) => fs.writeFile(file, 'x', { mode: 0o600 })],
  ['fsync', ({ fs }) => fs.writeFile(file, 'x', { fsync: true })],
  ['overwrite: false of a stream', async ({ fs }) => fs.writeStream(file, { overwrite: false })],
  ['mode of a folder', ({ fs }) => fs.mkdir(file, { mode: 0o700 })],
  ['anyKind', ({ fs }) => fs.readFile('/dev/zero', { anyKind: true, length: 1 })],
  ['stat of a link itself', ({ fs }) => fs.stat(file, { followSymlinks: false })],
  ['copy with overwrite: false', ({ fs }) => fs.copy(file, `${file}-2`, { overwrite: false })],
  ['copy of what links lead to', ({ fs }) => fs.copy(file, `${file}-2`, { followSymlinks: true })],
  ['reading a stream without following links', ({ fs }) => drained(fs.readStream(file, { followSymlinks: false }))],
  ['writing a stream without following links', ({ fs }) => written(fs.writeStream(file, { followSymlinks: false }))],
  ['pack', async ({ fs }) => drained(fs.pack(tmpdir()))],
  ['unpack', async ({ fs }) => written(fs.unpack(file))],
];

async function drained(stream: ReadableStream<Uint8Array>): Promise<void> {
  await stream.pipeTo(new WritableStream());
}

async function written(stream: WritableStream<Uint8Array>): Promise<void> {
  await stream.getWriter().write(new Uint8Array(1));
}

describe.skipIf(inject('referenceBinary') === null)('on the reference', () => {
  let joined: JoinedReference;
  let handle: ProcessHandle;
  beforeAll(async () => {
    joined = await joinReference();
    handle = await joined.client.start({ argv: ['sleep', '600'], processId: 'p', stdin: 'pipe' });
  });
  afterAll(() => joined.expectClean());

  it.each(lacking)('%s is NOT_SUPPORTED, and nothing is sent', async (_what, use) => {
    const { client, recorder } = joined;
    const sent = (): number => recorder.recorded.filter(({ direction }) => direction === 'up').length;
    const before = sent();
    await expect(use(client, handle)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(sent()).toBe(before);
    expect(client.state).toBe('ready');
  });

  it('acknowledges nothing, and says what it is not told as undefined', async () => {
    const { client, recorder } = joined;
    expect((await client.run(['head', '-c', '600000', '/dev/zero'])).stdoutBytes).toBe(600_000);
    expect(recorder.requests('process/ack')).toEqual([]);
    expect([client.serverInfo, client.observeId, handle.pid]).toEqual([undefined, undefined, undefined]);
    expect(client.environmentInfo.executorVersion).toEqual(expect.any(String));
  });

  it.each([
    ['an observer', { attach: 'observe' }],
    ['a client that takes over', { takeOver: true }],
  ] as const)('%s is refused, and the session stays where it is', async (_what, how) => {
    const { client, proxy } = joined;
    await expect(connect({ url: proxy.url, resumeSessionId: client.sessionId, ...how })).rejects.toMatchObject({
      code: 'SERVER_ERROR',
      data: { wireCode: -32010 },
    });
    expect((await client.run(['echo', 'still here'])).text()).toBe('still here\n');
  });

  it('an observer of a session nobody has leaves again', async () => {
    const other = await joinReference();
    const { sessionId } = other.client;
    await other.client.detach();
    await expect(
      connect({ url: other.proxy.url, resumeSessionId: sessionId, attach: 'observe' }),
    ).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    await other.expectClean();
  });
});
