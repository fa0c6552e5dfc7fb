/** Requests that change files, as a peer sends them. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { encodeBase64, limits } from '@exec-server/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manualClock.js';
import type { Raw, RawMessage } from '../support/raw.js';
import { RawServed } from '../support/rawServed.js';
import { Scratch } from '../support/scratch.js';
import { until } from '../support/until.js';

const base64 = (text: string): string => encodeBase64(new TextEncoder().encode(text));

describe('requests that change files', () => {
  let scratch: Scratch;
  let served: RawServed;
  let raw: Raw;
  beforeEach(async () => {
    scratch = new Scratch();
    served = new RawServed('memory');
    raw = await served.ready();
  });
  afterEach(async () => {
    await served.expectClean();
    scratch.remove();
  });

  const uri = (name: string): string => `file://${scratch.path(name)}`;
  const write = (name: string, text: string, more: object = {}): Promise<RawMessage> =>
    raw.call('fs/writeFile', { path: uri(name), dataBase64: base64(text), ...more });
  const path = (method: string, name: string, more: object = {}): Promise<RawMessage> =>
    raw.call(method, { path: uri(name), ...more });
  const copy = (source: string, destination: string, more: object = {}): Promise<RawMessage> =>
    raw.call('fs/copy', {
      sourcePath: uri(source),
      destinationPath: uri(destination),
      recursive: true,
      ...more,
    });
  const move = (source: string, destination: string, more: object = {}): Promise<RawMessage> =>
    raw.call('fs/move', { sourcePath: uri(source), destinationPath: uri(destination), ...more });

  it('write, and refuse what cannot be written with the words of the base protocol', async () => {
    scratch.folder('d');
    expect((await write('f', 'hello')).result).toEqual({});
    expect((await write('f', ' world', { append: true })).result).toEqual({ inPlace: 'asked' });
    expect(scratch.text('f')).toBe('hello world');
    expect((await path('fs/writeFile', 'f', { dataBase64: '***' })).error).toMatchObject({
      code: -32600,
      message: 'fs/writeFile requires valid base64 dataBase64: Invalid symbol 42, offset 0.',
      data: { reason: 'invalidArgument', field: 'dataBase64' },
    });
    expect((await write('none/x', '')).error).toMatchObject({
      code: -32004,
      message: 'No such file or directory (os error 2)',
      data: { errno: 'ENOENT', path: scratch.path('none/x') },
    });
    expect((await write('d', '')).error).toMatchObject({ code: -32603, message: 'Is a directory (os error 21)' });
    scratch.link('l', 'f');
    expect((await write('l', '', { followSymlinks: false })).error).toMatchObject({
      code: -32603,
      message: 'Symbolic link loop (os error 40)',
    });
    expect((await write('f', '', { permissions: 0o20000 })).error?.data).toMatchObject({ field: 'permissions' });
    expect((await write('f', '', { sandbox: { permissions: { type: 'managed' } } })).error?.data).toMatchObject({
      reason: 'sandboxUnavailable',
    });
    expect(spawnSync('mkfifo', [scratch.path('fifo')]).status).toBe(0);
    expect((await write('fifo', 'x')).error).toMatchObject({ message: 'No such device or address (os error 6)' });
    expect(scratch.text('f')).toBe('hello world');
  });

  it('make and remove folders with the codes of the base protocol', async () => {
    const codeOf = async (answer: Promise<RawMessage>): Promise<number | object | undefined> => {
      const { error, result } = await answer;
      return error?.code ?? result;
    };
    expect(await codeOf(path('fs/createDirectory', 'a/b/c', { recursive: null }))).toEqual({});
    expect(await codeOf(path('fs/createDirectory', 'a', { recursive: false }))).toBe(-32603);
    expect(await codeOf(path('fs/createDirectory', 'x/y', { recursive: false }))).toBe(-32004);
    expect(await codeOf(path('fs/remove', 'none'))).toEqual({});
    expect(await codeOf(path('fs/remove', 'none', { force: false }))).toBe(-32004);
    expect(await codeOf(path('fs/remove', 'a', { recursive: false }))).toBe(-32603);
    expect((await path('fs/remove', 'a', { followSymlinks: false })).error).toMatchObject({
      code: -32603,
      message: 'recursive no-follow removal is unsupported',
    });
    expect((await raw.call('fs/remove', { path: '/' })).error).toMatchObject({ code: -32600 });
    expect(await codeOf(path('fs/remove', 'a', { recursive: null, force: null }))).toEqual({});
    expect(scratch.names()).toEqual([]);
  });

  it('copy and move', async () => {
    scratch.file('src/f', 'x');
    expect(spawnSync('mkfifo', [scratch.path('src/fifo')]).status).toBe(0);
    expect((await copy('src', 'dst')).result).toEqual({ skipped: 1 });
    expect((await copy('src', 'src/in')).error).toMatchObject({ code: -32600 });
    expect((await copy('src', 'dst', { overwrite: false })).error).toMatchObject({ code: -32603 });
    expect((await move('dst/f', 'g')).result).toEqual({});
    expect((await move('src/f', 'g', { overwrite: false })).error?.data).toMatchObject({ reason: 'fileExists' });
    expect(scratch.names()).toEqual(['dst', 'g', 'src', 'src/f', 'src/fifo']);
  });

  it('about one path come one after the other, in the order in which they were sent', async () => {
    const append = (_: unknown, index: number): [string, object] => [
      'fs/writeFile',
      { path: uri('d/f'), dataBase64: base64(`+${index}`), append: true },
    ];
    const requests: [string, object][] = [
      ['fs/createDirectory', { path: uri('d') }],
      ['fs/writeFile', { path: uri('d/f'), dataBase64: base64('one') }],
      ...Array.from({ length: 20 }, append),
      ['fs/copy', { sourcePath: uri('d'), destinationPath: uri('e'), recursive: true }],
      ['fs/move', { sourcePath: uri('e/f'), destinationPath: uri('g') }],
      ['fs/remove', { path: uri('d') }],
      ['fs/createDirectory', { path: uri('d'), recursive: false }],
    ];
    for (const [id, [method, params]] of requests.entries()) raw.send({ id, method, params });
    for (const _ of requests) expect((await raw.next()).error).toBeUndefined();
    expect(scratch.text('g')).toBe(`one${Array.from({ length: 20 }, (_, index) => `+${index}`).join('')}`);
    expect(scratch.names()).toEqual(['d', 'e', 'g']);
  });

  it('are done once with an operation id, whatever connection asks again', async () => {
    const one = await served.dial();
    const id = await one.initialize();
    const append = { path: uri('log'), dataBase64: base64('line\n'), append: true, operationId: 'op-1' };
    expect(await one.result('fs/writeFile', append)).toEqual({ inPlace: 'asked' });
    expect(await one.result('fs/writeFile', append)).toEqual({ inPlace: 'asked' });
    one.send({ id: 1, method: 'fs/writeFile', params: { ...append, operationId: 'op-2' } });
    one.transport.abort({ kind: 'cut', detail: 'cut' });
    await one.closed;
    const two = await served.dial();
    await two.initialize({ resumeSessionId: id });
    expect(await two.result('fs/writeFile', append)).toEqual({ inPlace: 'asked' });
    expect(await two.result('fs/writeFile', { ...append, operationId: 'op-2' })).toEqual({ inPlace: 'asked' });
    expect(scratch.text('log')).toBe('line\nline\n');
    const bad = await two.call('fs/remove', { path: uri('log'), operationId: 'x'.repeat(65) });
    expect(bad.error?.data).toMatchObject({ field: 'operationId', limitBytes: 64 });
    expect(scratch.has('log')).toBe(true);
  });

  it('wait for those an earlier connection left under way, however long they take', async () => {
    scratch.file('big');
    expect(spawnSync('truncate', ['-s', '512M', scratch.path('big')]).status).toBe(0);
    const clock = new ManualClock();
    const other = new RawServed('memory', { clock });
    try {
      const one = await other.dial();
      const id = await one.initialize();
      const params = { sourcePath: uri('big'), destinationPath: uri('f'), recursive: false, operationId: 'op' };
      one.send({ id: 1, method: 'fs/copy', params });
      await until(() => scratch.names().some((name) => name.endsWith('.tmp')), 'the temporary file');
      one.transport.abort({ kind: 'cut', detail: 'cut' });
      await one.closed;
      const two = await other.dial();
      two.send({ id: 0, method: 'initialize', params: { clientName: 'raw', resumeSessionId: id } });
      // The resume does not wait for the copy.
      await until(() => {
        clock.advance(limits.SETTLE_WAIT_MS / 50);
        return two.received.length > 0;
      }, 'the resume');
      await two.until(0);
      two.send({ method: 'initialized' });
      two.send({ id: 1, method: 'fs/copy', params });
      two.send({ id: 2, method: 'fs/writeFile', params: { path: uri('f'), dataBase64: base64('new') } });
      expect((await two.until(2)).map((answer) => [answer.id, answer.result])).toEqual([
        [1, {}],
        [2, {}],
      ]);
      expect(scratch.text('f')).toBe('new');
    } finally {
      await other.expectClean();
    }
  });

  it('that copy end with their session, and leave no temporary file', async () => {
    scratch.file('big');
    expect(spawnSync('truncate', ['-s', '64G', scratch.path('big')]).status).toBe(0);
    const copying = copy('big', 'copy');
    await until(() => scratch.names().some((name) => name.endsWith('.tmp')), 'the temporary file');
    raw.send({ id: 1, method: 'session/close', params: {} });
    expect((await copying).error).toMatchObject({ data: { reason: 'sessionEnded' } });
    await served.server.close();
    expect(scratch.names()).toEqual(['big']);
  });

  it('show whoever reads the old file or the new one', async () => {
    const versions = ['a', 'b'].map((letter) => letter.repeat(3_000_000));
    scratch.file('f', versions[0]);
    const written = new AbortController();
    const writing = (async () => {
      for (let round = 0; round < 10; round += 1) await write('f', versions[round % 2] ?? '');
      written.abort();
    })();
    let reads = 0;
    while (!written.signal.aborted) {
      const text = readFileSync(scratch.path('f'), 'utf8');
      expect(versions.includes(text)).toBe(true);
      reads += 1;
      await new Promise(setImmediate);
    }
    await writing;
    expect(reads).toBeGreaterThan(0);
  });
});
