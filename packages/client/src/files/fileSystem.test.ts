import { encodeBase64 } from '@exec-server/protocol';
import { describe, expect, it, vi } from 'vitest';
import { Calls } from '../calls.js';
import type { Client } from '../client.js';
import { foreignReply, settle } from '../testSupport/connectFake.js';
import { FakeFiles, numbered } from '../testSupport/fakeFiles.js';
import { extendedReply } from '../testSupport/fakeServer.js';
import { BLOCK_BYTES, READ_AHEAD_BYTES } from './blockReader.js';
import { FileError } from './fileErrors.js';

const PATH = '/srv/a';
const URI = 'file:///srv/a';
const MIB = 1024 * 1024;

async function serve(reply?: unknown): Promise<{ files: FakeFiles; client: Client }> {
  const files = new FakeFiles(reply);
  return { files, client: await files.connect() };
}

async function gather(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

describe('reading', () => {
  it('asks once for a small file, and decodes its text', async () => {
    const { files, client } = await serve();
    files.put(URI, '\ufeffgrüße');
    expect(await client.fs.readText(PATH)).toBe('grüße');
    expect(files.requests.map(({ method }) => method)).toEqual(['fs/readFile']);
    files.put(URI, Uint8Array.of(0xff));
    expect(await client.fs.readText(PATH)).toBe('\ufffd');
    await expect(client.fs.readText(PATH, { fatal: true })).rejects.toBeInstanceOf(TypeError);
    await client.close();
  });

  it('gives ranges, also beyond the end', async () => {
    const { files, client } = await serve();
    files.put(URI, numbered(2 * MIB));
    const range = async (offset: number, length: number): Promise<Uint8Array> =>
      await client.fs.readFile(PATH, { offset, length });
    expect(Buffer.compare(await range(5, 3), numbered(8).subarray(5))).toBe(0);
    expect(Buffer.compare(await range(100, MIB), numbered(2 * MIB).subarray(100, 100 + MIB))).toBe(0);
    expect((await range(2 * MIB - 1, 10)).length).toBe(1);
    expect((await range(3 * MIB, 10)).length).toBe(0);
    expect((await range(0, 0)).length).toBe(0);
    const streamed = await gather(client.fs.readStream(PATH, { offset: 10, length: MIB }));
    expect(Buffer.compare(streamed, numbered(2 * MIB).subarray(10, 10 + MIB))).toBe(0);
    await client.close();
  });

  it('refuses a file that is too large before it is read', async () => {
    for (const reply of [undefined, foreignReply]) {
      const { files, client } = await serve(reply);
      files.put(URI, numbered(MIB));
      const error: unknown = await client.fs.readFile(PATH, { maxBytes: MIB - 1 }).catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(FileError);
      expect(error).toMatchObject({ code: 'FILE_TOO_LARGE', data: { path: PATH, size: MIB, limitBytes: MIB - 1 } });
      expect(files.count('fs/readBlock')).toBe(0);
      expect((await client.fs.readFile(PATH, { maxBytes: MIB })).length).toBe(MIB);
      expect((await client.fs.readFile(PATH, { maxBytes: 5, length: 5 })).length).toBe(5);
      await settle();
      expect(files.handles.size).toBe(0);
      await client.close();
    }
  });

  it('takes what is there although the host reports no size', async () => {
    const { files, client } = await serve();
    files.put(URI, numbered(MIB));
    files.answers.set('fs/readFile', () => ({
      dataBase64: encodeBase64(numbered(1000)),
      size: 0,
      eof: false,
      identity: files.files.get(URI)?.identity,
    }));
    expect((await client.fs.readFile(PATH)).length).toBe(MIB);
    await expect(client.fs.readFile(PATH, { maxBytes: MIB - 1 })).rejects.toMatchObject({ code: 'FILE_TOO_LARGE' });
    await client.close();
  });

  it('gives each of its steps the time that the whole has', async () => {
    const { files, client } = await serve();
    files.put(URI, numbered(3 * MIB));
    const calls = vi.spyOn(Calls.prototype, 'bounds');
    await client.fs.readFile(PATH, { timeoutMs: 1_000_000 });
    // What closes a handle goes on behind the end of the whole.
    const steps = calls.mock.calls.filter(([method]) => method === 'fs/open' || method === 'fs/readBlock');
    calls.mockRestore();
    expect(steps.length).toBeGreaterThan(2);
    for (const [, options] of steps) expect(options.timeoutMs).toBe(1_000_000);
    await client.close();
  });

  it('asks ahead within its bound, and holds no more for a reader that is slow', async () => {
    const { files, client } = await serve();
    files.put(URI, numbered(6 * MIB));
    const reader = client.fs.readStream(PATH).getReader();
    await settle();
    expect(files.requests).toHaveLength(0);
    await reader.read();
    await settle();
    expect(files.count('fs/readBlock')).toBe(READ_AHEAD_BYTES / BLOCK_BYTES);
    await reader.cancel();
    await settle();
    expect(files.handles.size).toBe(0);
    expect(client.gauges().pendingCalls).toBe(0);
    await client.close();
  });

  it('closes its handle after an error, an abort and the end', async () => {
    const { files, client } = await serve();
    files.put(URI, numbered(3 * MIB));
    await gather(client.fs.readStream(PATH));
    expect(files.handles.size).toBe(0);
    const abort = new AbortController();
    const reader = client.fs.readStream(PATH, { signal: abort.signal }).getReader();
    await reader.read();
    expect(files.handles.size).toBe(1);
    abort.abort(new Error('enough'));
    await expect(reader.read()).rejects.toMatchObject({ code: 'ABORTED', cause: new Error('enough') });
    await settle();
    expect(files.handles.size).toBe(0);
    const whole = client.fs.readFile(PATH, { signal: AbortSignal.abort() });
    await expect(whole).rejects.toMatchObject({ code: 'ABORTED' });
    await client.close();
  });

  it('names the file in a refusal, and refuses an argument before anything is sent', async () => {
    const { files, client } = await serve();
    await expect(client.fs.readFile('/srv/missing')).rejects.toMatchObject({
      code: 'ENOENT',
      data: { reason: 'fileNotFound', errno: 'ENOENT' },
    });
    await expect(gather(client.fs.readStream('/srv/missing'))).rejects.toMatchObject({ code: 'ENOENT' });
    const sent = files.requests.length;
    for (const options of [{ offset: -1 }, { length: 1.5 }, { maxBytes: Number.NaN }]) {
      await expect(client.fs.readFile(PATH, options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
    await expect(client.fs.copy(PATH, 'b')).rejects.toMatchObject({ data: { argument: 'destination' } });
    expect(files.requests).toHaveLength(sent);
    await client.close();
  });
});

describe('writing', () => {
  it('is one call for what is small, and sends what was asked for', async () => {
    const { files, client } = await serve();
    await client.fs.writeFile(PATH, 'grüße', { overwrite: false, mode: 0o640, fsync: true, followSymlinks: false });
    expect(files.text(URI)).toBe('grüße');
    expect(files.sent('fs/writeFile')).toMatchObject([
      { path: URI, exclusive: true, permissions: 0o640, fsync: true, followSymlinks: false },
    ]);
    await client.close();
  });

  it('copies what is written to a stream, whose memory may be used again', async () => {
    const { files, client } = await serve();
    const writer = client.fs.writeStream(PATH).getWriter();
    const chunk = new Uint8Array(10);
    for (let round = 0; round < 4; round++) {
      chunk.fill(48 + round);
      await writer.write(chunk);
    }
    await writer.write('end');
    await writer.close();
    expect(files.text(URI)).toBe('0000000000111111111122222222223333333333end');
    await client.close();
  });

  it('leaves neither file nor stage behind when it is aborted', async () => {
    const { files, client } = await serve();
    const abandoned = client.fs.writeStream(PATH).getWriter();
    await abandoned.write(numbered(MIB));
    await abandoned.abort(new Error('changed my mind'));
    const abort = new AbortController();
    const aborted = client.fs.writeStream(PATH, { signal: abort.signal }).getWriter();
    aborted.closed.catch(() => undefined);
    await aborted.write(numbered(MIB));
    abort.abort();
    await expect(aborted.write('more')).rejects.toMatchObject({ code: 'ABORTED' });
    await settle();
    expect({ handles: files.handles.size, stages: files.stages.size, files: files.files.size }).toEqual({
      handles: 0,
      stages: 0,
      files: 0,
    });
    await client.close();
  });

  it('drops a stage whose connection was lost before the abort', async () => {
    const { files, client } = await serve();
    const writer = client.fs.writeStream(PATH).getWriter();
    await writer.write(numbered(MIB));
    await settle();
    expect(files.stages.size).toBe(1);
    files.cutNow();
    await writer.abort();
    expect(files.stages.size).toBe(0);
    await client.close();
  });

  it('ends the stream with the refusal, and drops the stage', async () => {
    const { files, client } = await serve();
    files.answers.set('fs/writeBlock', () => {
      throw files.refusal(-32603, 'No space left on device (os error 28)', { reason: 'noSpace', errno: 'ENOSPC' });
    });
    const failed = client.fs.writeFile(PATH, numbered(2 * MIB));
    await expect(failed).rejects.toMatchObject({ code: 'ENOSPC', data: { path: PATH, retryable: true } });
    await settle();
    expect(files.stages.size).toBe(0);
    await client.close();
  });

  it('leaves no handle where it is aborted while the file is being opened', async () => {
    const { files, client } = await serve();
    const abort = new AbortController();
    files.answers.set('fs/open', ({ handleId, path }) => {
      files.handles.set(String(handleId), { path: String(path) });
      return FakeFiles.silent;
    });
    const calls = [client.fs.writeFile(PATH, numbered(2 * MIB), { signal: abort.signal, timeoutMs: 60_000 })];
    const reading = gather(client.fs.readStream(PATH, { signal: abort.signal }));
    for (const call of [...calls, reading]) call.catch(() => undefined);
    await settle();
    expect(files.handles.size).toBe(2);
    abort.abort();
    for (const call of [...calls, reading]) await expect(call).rejects.toMatchObject({ code: 'ABORTED' });
    await settle();
    expect(files.handles.size).toBe(0);
    expect(client.gauges().pendingCalls).toBe(0);
    await client.close();
  });

  it('holds back a writer that is faster than the server', async () => {
    const { files, client } = await serve();
    files.answers.set('fs/writeBlock', () => FakeFiles.silent);
    const writing = client.fs.writeFile(PATH, numbered(8 * MIB));
    writing.catch(() => undefined);
    await settle();
    expect(files.count('fs/writeBlock')).toBe(8);
    await client.close();
    await expect(writing).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

describe('folders', () => {
  const entry = (fileName: string, kind = 'file'): object => ({
    fileName,
    kind,
    isDirectory: kind === 'directory',
    isFile: kind === 'file',
    size: 1,
    mode: 0o644,
    modifiedAtMs: 5,
  });

  it('are listed in all their pages', async () => {
    const { files, client } = await serve();
    files.answers.set('fs/readDirectory', ({ cursor }) =>
      cursor === undefined
        ? { entries: [entry('a'), { ...entry('?'), path: 'file:///srv/%FF' }], nextCursor: 'c' }
        : { entries: [{ ...entry('l', 'symlink'), linkTarget: 'a' }] },
    );
    const rest = { size: 1, mode: 0o644, modifiedAtMs: 5 };
    expect(await client.fs.list('/srv')).toEqual([
      { name: 'a', path: '/srv/a', kind: 'file', ...rest },
      { name: '?', path: 'file:///srv/%FF', kind: 'file', ...rest },
      { name: 'l', path: '/srv/l', kind: 'symlink', linkTarget: 'a', ...rest },
    ]);
    expect(files.sent('fs/readDirectory')).toMatchObject([{ detail: true }, { cursor: 'c' }]);
    await client.close();
  });

  it('are walked, links followed on request and no folder entered twice', async () => {
    const { files, client } = await serve();
    const tree: Record<string, object[]> = {
      'file:///r': [entry('d', 'directory'), entry('f')],
      'file:///r/d': [entry('up', 'symlink'), entry('x')],
    };
    const target: Record<string, string> = { 'file:///r/d/up': 'file:///r' };
    files.answers.set('fs/readDirectory', ({ path }) => ({ entries: tree[target[String(path)] ?? String(path)] }));
    files.answers.set('fs/getMetadata', ({ path }) => ({
      isDirectory: true,
      isFile: false,
      isSymlink: false,
      size: 0,
      createdAtMs: 0,
      modifiedAtMs: 0,
      identity: target[String(path)] ?? String(path),
    }));
    const walked = async (options: object): Promise<string[]> => {
      const paths: string[] = [];
      for await (const { path, depth } of client.fs.walk('/r', options)) paths.push(`${depth} ${path}`);
      return paths;
    };
    const all = ['0 /r/d', '0 /r/f', '1 /r/d/up', '1 /r/d/x'];
    expect(await walked({})).toEqual(all);
    expect(await walked({ followSymlinks: true })).toEqual(all);
    expect(await walked({ maxDepth: 0 })).toEqual(all.slice(0, 2));
    await client.close();
  });

  it('that cannot be read are told, or end the walk; those that went away are left out', async () => {
    const { files, client } = await serve();
    files.answers.set('fs/readDirectory', ({ path }) => {
      if (path === 'file:///r')
        return { entries: [entry('gone', 'directory'), entry('shut', 'directory'), entry('z')] };
      throw path === 'file:///r/gone'
        ? files.refusal(-32004, 'No such file or directory (os error 2)', { reason: 'fileNotFound', errno: 'ENOENT' })
        : files.refusal(-32600, 'Permission denied (os error 13)', { reason: 'permissionDenied', errno: 'EACCES' });
    });
    const told: string[] = [];
    const names: string[] = [];
    for await (const { name } of client.fs.walk('/r', { onError: ({ code }) => told.push(code) })) names.push(name);
    expect({ told, names }).toEqual({ told: ['EACCES'], names: ['gone', 'shut', 'z'] });
    const strict = client.fs.walk('/r');
    await expect(drained(strict)).rejects.toMatchObject({ code: 'EACCES' });
    await client.close();
  });

  it('and files are described, also links themselves', async () => {
    const { files, client } = await serve();
    files.put(URI, 'abc');
    expect(await client.fs.stat(PATH)).toMatchObject({ kind: 'file', size: 3, isSymlink: false });
    await client.fs.stat(PATH, { followSymlinks: false });
    expect(files.sent('fs/getMetadata')).toMatchObject([{ detail: true }, { detail: true, ofLink: true }]);
    expect(await client.fs.exists(PATH)).toBe(true);
    expect(await client.fs.exists('/srv/missing')).toBe(false);
    expect(await client.fs.realpath(PATH)).toBe(PATH);
    await client.close();
  });

  it('are removed with what is in them on request alone', async () => {
    const { files, client } = await serve();
    await client.fs.remove(PATH);
    await client.fs.remove(PATH, { recursive: true, force: true });
    expect(files.sent('fs/remove')).toMatchObject([
      { recursive: false, force: false },
      { recursive: true, force: true },
    ]);
    await client.close();
  });
});

describe('archives', () => {
  it('end with their last block, and are closed', async () => {
    const { files, client } = await serve();
    const blocks = [numbered(MIB), numbered(10)];
    files.answers.set('fs/readBlock', ({ offset }) => {
      const block = blocks[Number(offset) / MIB] ?? new Uint8Array(0);
      return { chunk: encodeBase64(block), eof: block.length < MIB };
    });
    expect((await gather(client.fs.pack('/srv', { names: ['a'], includeParent: true }))).length).toBe(MIB + 10);
    expect(files.sent('fs/pack')).toMatchObject([{ path: 'file:///srv', names: ['a'], includeParent: true }]);
    expect(files.handles.size).toBe(0);
    await client.close();
  });

  it('are not taken up again after a cut: reading and writing fail once, as retryable', async () => {
    const { files, client } = await serve();
    files.answers.set('fs/readBlock', () => ({ chunk: encodeBase64(numbered(MIB)), eof: false }));
    files.cut = { at: 2, when: 'after' };
    const lost = { code: 'TRANSFER_LOST', data: { path: '/srv', retryable: true } };
    await expect(gather(client.fs.pack('/srv'))).rejects.toMatchObject(lost);
    const unpacking = client.fs.unpack('/srv');
    const writer = unpacking.getWriter();
    writer.closed.catch(() => undefined);
    await writer.write(numbered(100));
    await settle();
    files.cutNow();
    await expect(writer.close()).rejects.toMatchObject(lost);
    await expect(unpacking.result).rejects.toMatchObject(lost);
    await client.close();
  });

  it('gather small writes into blocks', async () => {
    const { files, client } = await serve();
    const unpacking = client.fs.unpack('/srv');
    const writer = unpacking.getWriter();
    for (let at = 0; at < MIB; at += 512) await writer.write(new Uint8Array(512));
    await writer.close();
    expect(await unpacking.result).toMatchObject({ bytes: MIB });
    expect(files.sent('fs/writeBlock')).toHaveLength(4);
    await client.close();
  });

  it('say what was unpacked once they are complete', async () => {
    const { files, client } = await serve();
    const unpacking = client.fs.unpack('/srv', { overwrite: false });
    const writer = unpacking.getWriter();
    await writer.write(numbered(3 * MIB));
    await writer.close();
    expect(await unpacking.result).toEqual({ entries: 1, bytes: 3 * MIB });
    expect(files.sent('fs/unpack')).toMatchObject([{ path: 'file:///srv', overwrite: false }]);
    expect(files.sent('fs/close')).toMatchObject([{ commit: true }]);
    const dropped = client.fs.unpack('/srv');
    await dropped.getWriter().abort();
    await expect(dropped.result).rejects.toMatchObject({ code: 'ABORTED' });
    await client.close();
  });
});

describe('a foreign server', () => {
  const older = extendedReply('s1', { extensions: { flowControl: true } });

  it.each([
    ['the reference', foreignReply],
    ['ours before it had files', older],
  ])('as %s gets nothing it does not know', async (_name, reply) => {
    const { files, client } = await serve(reply);
    const refused = { code: 'NOT_SUPPORTED' };
    await expect(client.fs.move(PATH, '/b')).rejects.toMatchObject(refused);
    await expect(client.fs.watch(PATH)).rejects.toMatchObject(refused);
    for (const options of [{ append: true }, { overwrite: false }, { mode: 0o600 }, { fsync: true }]) {
      await expect(client.fs.writeFile(PATH, 'x', options)).rejects.toMatchObject(refused);
    }
    await expect(client.fs.readFile(PATH, { anyKind: true })).rejects.toMatchObject(refused);
    await expect(client.fs.stat(PATH, { followSymlinks: false })).rejects.toMatchObject(refused);
    await expect(client.fs.copy(PATH, '/b', { overwrite: false })).rejects.toMatchObject(refused);
    await expect(client.fs.writeFile(PATH, numbered(12 * MIB), { followSymlinks: false })).rejects.toMatchObject(
      refused,
    );
    await expect(gather(client.fs.readStream(PATH, { followSymlinks: false }))).rejects.toMatchObject(refused);
    expect(() => client.fs.pack(PATH)).toThrow(expect.objectContaining(refused));
    expect(() => client.fs.unpack(PATH)).toThrow(expect.objectContaining(refused));
    expect(files.requests).toEqual([]);
    await client.fs.writeFile(PATH, 'x', { inPlace: true });
    await client.fs.copy(PATH, '/b');
    await client.fs.mkdir(PATH);
    expect(files.requests.map(({ params }) => Object.keys(params))).toEqual([
      ['path', 'dataBase64'],
      ['sourcePath', 'destinationPath', 'recursive'],
      ['path', 'recursive'],
    ]);
    await client.close();
  });

  it('gets a large file in blocks, and gives folders and trees as far as it knows them', async () => {
    const { files, client } = await serve(foreignReply);
    await client.fs.writeFile(PATH, numbered(12 * MIB));
    expect(files.count('fs/writeFile')).toBe(0);
    expect(Buffer.compare(files.files.get(URI)?.bytes ?? new Uint8Array(0), numbered(12 * MIB))).toBe(0);
    expect(files.sent('fs/open').map((params) => Object.keys(params))).toEqual([['handleId', 'path', 'mode']]);
    files.answers.set('fs/readDirectory', () => ({ entries: [{ fileName: 'p', isDirectory: false, isFile: false }] }));
    expect(await client.fs.list('/srv')).toEqual([{ name: 'p', path: '/srv/p', kind: 'other' }]);
    files.answers.set('fs/walk', () => ({
      entries: [{ path: 'file:///srv/d/x', kind: 'file' }],
      errors: [{ path: 'file:///srv/e', message: 'no' }],
      truncated: true,
    }));
    const told: unknown[] = [];
    const walk = client.fs.walk('/srv', { onError: ({ data }) => told.push(data.path) });
    expect((await walk.next()).value).toEqual({ name: 'x', path: '/srv/d/x', kind: 'file', depth: 1 });
    await expect(walk.next()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(told).toEqual(['/srv/e']);
    await client.close();
  });
});

async function drained(iterable: AsyncIterable<unknown>): Promise<number> {
  let entries = 0;
  for await (const _entry of iterable) entries += 1;
  return entries;
}
