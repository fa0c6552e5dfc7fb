/** `fs/readFile`, `fs/getMetadata` and `fs/canonicalize` as raw messages see them. */
import { randomBytes } from 'node:crypto';
import { appendFile, chmod, link, mkdir, rename, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { limits } from '@exec-server/protocol';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { base64, FilesRig } from '../support/filesRig.js';

const MIB = 1024 * 1024;

describe('a whole file is read', () => {
  it.each([0, 1, 2, 65_535, 65_536, 65_537, 786_431, 786_432, 786_433, 3 * MIB + 1])(
    'of %i bytes, byte by byte',
    async (bytes) => {
      await using rig = await FilesRig.open();
      const content = randomBytes(bytes);
      await writeFile(rig.at('f'), content);
      expect(await rig.result('fs/readFile', { path: `file://${rig.at('f')}` })).toEqual({
        dataBase64: content.toString('base64'),
      });
    },
  );

  it.each(['/proc/self/status', '/sys/class/net/lo/mtu', '/proc/self/mounts'])(
    'to the end of its data when it says another size: %s',
    async (path) => {
      await using rig = await FilesRig.open();
      const { stdout } = await execa('cat', [path], { stripFinalNewline: false });
      const { dataBase64 } = await rig.result('fs/readFile', { path });
      const text = Buffer.from(String(dataBase64), 'base64').toString('utf8');
      expect(text.split('\n').length).toBe(stdout.split('\n').length);
      expect(text.endsWith('\n')).toBe(true);
    },
  );

  it('is refused when it is larger than an answer, before memory is taken', async () => {
    await using rig = await FilesRig.open();
    await writeFile(rig.at('f'), '');
    await truncate(rig.at('f'), 8 * 1024 * MIB + 1);
    const before = process.memoryUsage.rss();
    expect(await rig.error('fs/readFile', { path: rig.at('f') })).toEqual({
      code: -32600,
      message: `file is too large to read: limit is ${limits.MAX_READ_FILE_BYTES} bytes`,
      data: {
        reason: 'fileTooLarge',
        limitBytes: limits.MAX_READ_FILE_BYTES,
        size: 8 * 1024 * MIB + 1,
        path: rig.at('f'),
      },
    });
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * MIB);
  });

  it('is served at exactly the limit and refused one byte above', async () => {
    await using rig = await FilesRig.open();
    const content = randomBytes(limits.MAX_READ_FILE_BYTES);
    await writeFile(rig.at('f'), content);
    const { dataBase64 } = await rig.result('fs/readFile', { path: rig.at('f') });
    expect(Buffer.from(String(dataBase64), 'base64').equals(content)).toBe(true);
    await appendFile(rig.at('f'), 'x');
    expect(await rig.error('fs/readFile', { path: rig.at('f') })).toMatchObject({ data: { reason: 'fileTooLarge' } });
  });

  it('stops at the limit when it says little and has no end', async () => {
    await using rig = await FilesRig.open();
    // Eight bytes for each page of the address space, of a file that says it has none.
    const error = await rig.error('fs/readFile', { path: '/proc/self/pagemap' });
    expect(error.data).toMatchObject({ reason: 'fileTooLarge', limitBytes: limits.MAX_READ_FILE_BYTES });
  });
});

describe('a range', () => {
  it('of a file of any size has its size, end and identity', async () => {
    await using rig = await FilesRig.open();
    const path = rig.at('f');
    await writeFile(path, '');
    const size = 8 * 1024 * MIB + 1;
    await truncate(path, size - 1);
    await appendFile(path, '!');
    const { identity } = await rig.result('fs/getMetadata', { path, detail: true });
    expect(await rig.result('fs/readFile', { path, offset: size - 1 })).toEqual({
      dataBase64: base64('!'),
      size,
      eof: true,
      identity,
    });
    expect(await rig.result('fs/readFile', { path, offset: size - 1, maxBytes: 1 })).toMatchObject({ eof: true });
    expect(await rig.result('fs/readFile', { path, offset: size - 3, maxBytes: 2 })).toEqual({
      dataBase64: base64('\0\0'),
      size,
      eof: false,
      identity,
    });
    expect(await rig.result('fs/readFile', { path, offset: size + 5 })).toMatchObject({
      dataBase64: '',
      size,
      eof: true,
    });
  });

  it('is exact while the file grows, shrinks and is replaced', async () => {
    await using rig = await FilesRig.open();
    const path = rig.at('f');
    let content = '';
    const read: string[] = [];
    await writeFile(path, '');
    for (let round = 0; round < 50; round += 1) {
      const more = String(round).repeat(500);
      const growing = appendFile(path, more);
      const { dataBase64, size, eof } = await rig.result('fs/readFile', { path, offset: read.join('').length });
      const text = Buffer.from(String(dataBase64), 'base64').toString('utf8');
      read.push(text);
      content += more;
      expect(eof).toBe(true);
      expect(size).toBe(read.join('').length);
      await growing;
    }
    expect(content.startsWith(read.join(''))).toBe(true);
    const { identity } = await rig.result('fs/readFile', { path, offset: 0, maxBytes: 10 });
    await truncate(path, 4);
    expect(await rig.result('fs/readFile', { path, offset: 0, maxBytes: 10 })).toMatchObject({
      size: 4,
      eof: true,
      identity,
    });
    await writeFile(rig.at('g'), 'other');
    await rename(rig.at('g'), path);
    const replaced = await rig.result('fs/readFile', { path, offset: 1, maxBytes: 2 });
    expect(replaced).toMatchObject({ dataBase64: base64('th'), size: 5, eof: false });
    expect(replaced['identity']).not.toBe(identity);
  });

  it('is refused when it is too long, or begins where no file does', async () => {
    await using rig = await FilesRig.open();
    const path = rig.at('f');
    await writeFile(path, 'x');
    expect(await rig.error('fs/readFile', { path, maxBytes: limits.MAX_READ_FILE_BYTES + 1 })).toMatchObject({
      code: -32600,
      data: { reason: 'invalidArgument', field: 'maxBytes', limitBytes: limits.MAX_READ_FILE_BYTES },
    });
    expect(await rig.error('fs/readFile', { path, offset: 2 ** 63 })).toMatchObject({
      code: -32600,
      message: 'Invalid argument (os error 22)',
    });
  });
});

describe('what is no regular file', () => {
  it('is refused at once, and said what it is', async () => {
    await using rig = await FilesRig.open();
    await execa('mkfifo', [rig.at('fifo')]);
    const server = createServer().listen(rig.at('socket'));
    await once(server, 'listening');
    for (const [path, kind] of [
      [rig.at('fifo'), 'fifo'],
      [rig.at('socket'), 'socket'],
      ['/dev/zero', 'characterDevice'],
      [rig.folder, 'directory'],
    ]) {
      const refused = {
        code: -32600,
        message: `path \`${path}\` is not a file`,
        data: { reason: 'notRegularFile', kind, path },
      };
      expect(await rig.error('fs/readFile', { path })).toEqual(refused);
      expect(await rig.error('fs/open', { handleId: 'h', path })).toEqual(refused);
    }
    expect(await rig.error('fs/readFile', { path: rig.folder, anyKind: true })).toMatchObject({
      data: { kind: 'directory' },
    });
    server.close();
    await once(server, 'close');
  });

  it('is read with anyKind: what is there at once, and never longer', async () => {
    await using rig = await FilesRig.open();
    const path = rig.at('fifo');
    await execa('mkfifo', [path]);
    const anyKind = true;
    // Nobody writes.
    expect(await rig.result('fs/readFile', { path, anyKind })).toEqual({ dataBase64: '', eof: true });
    const writer = execa('sh', ['-c', 'exec 3> "$0"; echo ready; read go; echo one >&3; echo written; read go', path]);
    const said = writer[Symbol.asyncIterator]();
    // The open of a writer waits for a reader.
    await rig.result('fs/open', { handleId: 'h', path, anyKind });
    expect(await said.next()).toMatchObject({ value: 'ready' });
    expect(await rig.result('fs/readBlock', { handleId: 'h', offset: 0, len: 100 })).toEqual({ chunk: '', eof: false });
    writer.stdin.write('go\n');
    expect(await said.next()).toMatchObject({ value: 'written' });
    expect(await rig.result('fs/readBlock', { handleId: 'h', offset: 0, len: 2 })).toEqual({
      chunk: base64('on'),
      eof: false,
    });
    expect(await rig.result('fs/readFile', { path, anyKind })).toEqual({ dataBase64: base64('e\n'), eof: false });
    expect(await rig.error('fs/readBlock', { handleId: 'h', offset: 7, len: 2 })).toMatchObject({
      message: 'Invalid seek (os error 29)',
    });
    writer.stdin.write('go\n');
    expect(await said.next()).toMatchObject({ done: true });
    expect(await rig.result('fs/readBlock', { handleId: 'h', offset: 2, len: 2 })).toEqual({ chunk: '', eof: true });
    const zeros = await rig.result('fs/readFile', { path: '/dev/zero', anyKind });
    expect(zeros).toEqual({ dataBase64: Buffer.alloc(MIB).toString('base64'), eof: false });
    expect(await rig.result('fs/readFile', { path: '/dev/zero', anyKind, maxBytes: 5 })).toMatchObject({
      dataBase64: base64('\0\0\0\0\0'),
      eof: false,
    });
  });
});

describe('links', () => {
  async function linked(): Promise<FilesRig> {
    const rig = await FilesRig.open();
    await mkdir(rig.at('d'));
    await writeFile(rig.at('d/x'), 'in\n');
    await symlink('d/x', rig.at('lf'));
    await symlink('d', rig.at('ld'));
    await symlink('nowhere', rig.at('dangling'));
    await symlink('b', rig.at('a'));
    await symlink('a', rig.at('b'));
    return rig;
  }

  it('are followed', async () => {
    await using rig = await linked();
    expect(await rig.text('lf')).toBe('in\n');
    expect(await rig.text('ld/x')).toBe('in\n');
    expect(await rig.result('fs/canonicalize', { path: rig.at('ld/x') })).toEqual({ path: `file://${rig.at('d/x')}` });
    expect(await rig.result('fs/getMetadata', { path: rig.at('lf') })).toMatchObject({
      isFile: true,
      isSymlink: true,
      size: 3,
    });
    expect(await rig.error('fs/getMetadata', { path: rig.at('dangling') })).toMatchObject({ code: -32004 });
  });

  it('that lead in a circle are told by their own error, and can be looked at themselves', async () => {
    await using rig = await linked();
    const path = rig.at('a');
    const looped = { code: -32603, message: 'Symbolic link loop (os error 40)', data: { reason: 'tooManyLinks' } };
    expect(await rig.error('fs/getMetadata', { path })).toMatchObject(looped);
    expect(await rig.error('fs/readFile', { path })).toMatchObject(looped);
    expect(await rig.result('fs/getMetadata', { path, ofLink: true, detail: true })).toMatchObject({
      isFile: false,
      isDirectory: false,
      isSymlink: true,
      kind: 'symlink',
      linkTarget: 'b',
      size: 1,
    });
  });

  it('are refused anywhere in the path when asked to', async () => {
    await using rig = await linked();
    const followSymlinks = false;
    const refusal = { code: -32600, message: 'path contains a symbolic link', data: { reason: 'symlinkInPath' } };
    expect(await rig.error('fs/getMetadata', { path: rig.at('lf'), followSymlinks })).toMatchObject(refusal);
    expect(await rig.error('fs/getMetadata', { path: rig.at('ld/x'), followSymlinks })).toMatchObject({ code: -32603 });
    expect(await rig.result('fs/getMetadata', { path: rig.at('d/x'), followSymlinks })).toMatchObject({ isFile: true });
    for (const [name, code, message] of [
      ['lf', -32603, 'Symbolic link loop (os error 40)'],
      ['ld/x', -32603, 'Not a directory (os error 20)'],
      ['none', -32004, 'No such file or directory (os error 2)'],
    ] as const) {
      const path = rig.at(name);
      expect(await rig.error('fs/readFile', { path, followSymlinks })).toMatchObject({ code, message });
      expect(await rig.error('fs/open', { path, followSymlinks, handleId: 'h' })).toMatchObject({ code, message });
    }
    expect(await rig.text('d/x', { followSymlinks })).toBe('in\n');
  });
});

describe('metadata', () => {
  it('says what the host says, with times in whole milliseconds', async () => {
    await using rig = await FilesRig.open();
    const path = rig.at('f');
    await writeFile(path, 'hello\n');
    await chmod(path, 0o4640);
    await link(path, rig.at('g'));
    const { mtimeMs, birthtimeMs, uid, gid, blocks } = await stat(path);
    expect(await rig.result('fs/getMetadata', { path })).toEqual({
      isDirectory: false,
      isFile: true,
      isSymlink: false,
      size: 6,
      createdAtMs: Math.trunc(birthtimeMs),
      modifiedAtMs: Math.trunc(mtimeMs),
    });
    expect(await rig.result('fs/getMetadata', { path, detail: true })).toMatchObject({
      kind: 'file',
      mode: 0o4640,
      uid,
      gid,
      links: 2,
      allocatedBytes: blocks * 512,
    });
    expect(await rig.result('fs/getMetadata', { path: '/dev/null', detail: true })).toMatchObject({
      isDirectory: false,
      isFile: false,
      kind: 'characterDevice',
    });
  });

  it('tells a change by the version, and another file by the identity', async () => {
    await using rig = await FilesRig.open();
    const path = rig.at('f');
    const look = (name = 'f'): Promise<Readonly<Record<string, unknown>>> =>
      rig.result('fs/getMetadata', { path: rig.at(name), detail: true });
    await writeFile(path, 'one');
    const first = await look();
    expect(await look()).toEqual(first);
    await appendFile(path, '!');
    const changed = await look();
    expect(changed['identity']).toBe(first['identity']);
    expect(changed['version']).not.toBe(first['version']);
    await rename(path, rig.at('moved'));
    expect((await look('moved'))['identity']).toBe(first['identity']);
    await writeFile(path, 'one!');
    expect((await look())['identity']).not.toBe(first['identity']);
  });
});

it('announces to clients of the base protocol what of its file methods is there', async () => {
  await using rig = await FilesRig.open();
  const { capabilities } = await rig.result('environment/info', {});
  expect(capabilities).toMatchObject({
    fsWatchMissing: true,
    fileWriteStreaming: true,
    sandboxedFileStreaming: false,
  });
});

it.each([
  ['fs/readFile', {}],
  ['fs/open', { handleId: 'h' }],
  ['fs/getMetadata', {}],
  ['fs/canonicalize', {}],
  ['fs/readDirectory', {}],
])('%s says ENOENT, ENOTDIR and ENAMETOOLONG as the host does, and refuses to be confined', async (method, more) => {
  await using rig = await FilesRig.open();
  await writeFile(rig.at('f'), '');
  const refused = (name: string): Promise<unknown> => rig.error(method, { ...more, path: rig.at(name) });
  expect(await refused('none')).toMatchObject({
    code: -32004,
    message: 'No such file or directory (os error 2)',
    data: { reason: 'fileNotFound', errno: 'ENOENT', path: rig.at('none') },
  });
  expect(await refused('f/x')).toMatchObject({ code: -32603, message: 'Not a directory (os error 20)' });
  expect(await refused('x'.repeat(256))).toMatchObject({ code: -32603, message: 'Filename too long (os error 36)' });
  const sandbox = { permissions: { type: 'managed' } };
  expect(await rig.error(method, { ...more, path: rig.at('f'), sandbox })).toMatchObject({
    data: { reason: 'sandboxUnavailable', field: 'sandbox' },
  });
});
