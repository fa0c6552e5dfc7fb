/** Files that bite: loops, files that change under a read, awkward names, huge and endless files, links in the way of a write. */
import { readFileSync } from 'node:fs';
import {
  appendFile,
  chmod,
  chown,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { isFileError, type WalkedEntry } from '@exec-server/client';
import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Folder } from '../../support/folder.js';
import { rawLinks, RawServed } from '../../support/rawServed.js';
import { scaled } from '../../support/scale.js';
import { Trial, wires } from '../../support/trial.js';

const MIB = 1024 * 1024;
const HUGE_BYTES = 8 * 1024 * MIB + 1;

/** Bytes that say where they are. */
function pattern(length: number, from = 0): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, index) => ((from + index) * 31) % 251));
}

async function collect(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

function codeOf(outcome: Promise<unknown>): Promise<string> {
  return outcome.then(
    () => 'done',
    (error: unknown) => (isFileError(error) ? error.code : String(error)),
  );
}

function residentBytes(pid: number): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}

describe.each(wires)('files over %s', (wire) => {
  let trial: Trial;
  let folder: Folder;
  beforeAll(async () => {
    trial = await Trial.open(wire);
    // The first use of the disk starts threads and keeps descriptors.
    await trial.client.fs.list('/');
  });
  beforeEach(async () => {
    folder = await Folder.make();
  });
  afterEach(async () => {
    await folder[Symbol.asyncDispose]();
    await trial.expectClean();
  });
  afterAll(() => trial.close());

  /** Five entries, one of which points back to the top. */
  async function makeLoop(): Promise<string> {
    await mkdir(folder.at('w', 'x', 'y'), { recursive: true });
    await symlink('../..', folder.at('w', 'x', 'y', 'up'));
    await writeFile(folder.at('w', 'f'), 'f');
    await writeFile(folder.at('w', 'x', 'g'), 'g');
    return folder.at('w');
  }

  async function walked(path: string, followSymlinks = false): Promise<WalkedEntry[]> {
    const entries: WalkedEntry[] = [];
    for await (const entry of trial.client.fs.walk(path, { followSymlinks })) entries.push(entry);
    return entries;
  }

  it('tells links that point to each other, and describes the links themselves', async () => {
    const { fs } = trial.client;
    await symlink('b', folder.at('a'));
    await symlink('a', folder.at('b'));
    expect(await codeOf(fs.stat(folder.at('a')))).toBe('ELOOP');
    expect(await codeOf(fs.readFile(folder.at('a')))).toBe('ELOOP');
    expect(await fs.stat(folder.at('a'), { followSymlinks: false })).toMatchObject({
      kind: 'symlink',
      linkTarget: 'b',
    });
    expect((await fs.list(folder.path)).map(({ name, kind }) => [name, kind])).toEqual([
      ['a', 'symlink'],
      ['b', 'symlink'],
    ]);
  });

  it('walks and copies a tree with a link to its top without going round', async () => {
    const { fs } = trial.client;
    const top = await makeLoop();
    const kinds = (await walked(top)).map(({ path, kind }) => `${path.slice(top.length)} ${kind}`).sort();
    const tree = ['/f file', '/x directory', '/x/g file', '/x/y directory', '/x/y/up symlink'];
    expect(kinds).toEqual(tree);
    const followed = await walked(top, true);
    expect(new Set(followed.map(({ path }) => path)).size).toBe(followed.length);
    expect(followed.length).toBeLessThan(20);

    await fs.copy(top, folder.at('copy'));
    const copied = (await walked(folder.at('copy'))).map(
      ({ path, kind }) => `${path.slice(folder.at('copy').length)} ${kind}`,
    );
    expect(copied.sort()).toEqual(tree);
    expect(await codeOf(fs.copy(top, folder.at('w', 'x', 'inside')))).toBe('EINVAL');
    expect(await codeOf(fs.copy(top, top))).toBe('EINVAL');
    expect(await walked(top)).toHaveLength(5);
  });

  it('refuses a copy through a link that leads back into what is copied, before it has gone round', async () => {
    const top = await makeLoop();
    expect(await codeOf(trial.client.fs.copy(top, folder.at('through'), { followSymlinks: true }))).toBe('ELOOP');
    expect((await walked(folder.at('through'))).length).toBeLessThanOrEqual(5);
  });

  it('ends a read of a file that shrinks', async () => {
    await writeFile(folder.at('shrinks'), pattern(32 * MIB));
    const reader = trial.client.fs.readStream(folder.at('shrinks')).getReader();
    const first = await reader.read();
    await truncate(folder.at('shrinks'), 0);
    let bytes = first.value?.length ?? 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) bytes += next.value.length;
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(32 * MIB);
  });

  it('reads a file that is replaced meanwhile to its end, and shows the change by the identity', async () => {
    const { fs } = trial.client;
    const old = pattern(8 * MIB);
    await writeFile(folder.at('replaced'), old);
    const before = await fs.stat(folder.at('replaced'));
    const reader = fs.readStream(folder.at('replaced')).getReader();
    const parts = [(await reader.read()).value ?? new Uint8Array()];
    await writeFile(folder.at('new'), 'new');
    await rename(folder.at('new'), folder.at('replaced'));
    for (let next = await reader.read(); !next.done; next = await reader.read()) parts.push(next.value);
    expect(Buffer.concat(parts).equals(old)).toBe(true);
    const after = await fs.stat(folder.at('replaced'));
    expect(after.identity).not.toBe(before.identity);
    expect(after.version).not.toBe(before.version);
  });

  it('lists names of any bytes one by one, and opens each by what it was told', async () => {
    const { fs } = trial.client;
    const names = ['a\nb', '-rf', '\u00e9', 'e\u0301', 'x'.repeat(255)].map((name) => Buffer.from(name));
    names.push(Buffer.from([0x66, 0xff, 0x67]));
    for (const name of names) await writeFile(Buffer.concat([Buffer.from(`${folder.path}/`), name]), name);
    const entries = await fs.list(folder.path);
    expect(entries).toHaveLength(names.length);
    const contents: string[] = [];
    for (const { path } of entries) contents.push(Buffer.from(await fs.readFile(path)).toString('hex'));
    expect(contents).toEqual(names.map((name) => name.toString('hex')).sort());
    for (const { path } of entries) await fs.remove(path);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('tells the size and reads any range of a file of 8 GiB with a hole, and refuses the whole of it', async () => {
    const { fs } = trial.client;
    await using file = await open(folder.at('huge'), 'w');
    await file.write('!', HUGE_BYTES - 1);
    expect(await fs.stat(folder.at('huge'))).toMatchObject({ size: HUGE_BYTES });
    expect((await fs.stat(folder.at('huge'))).allocatedBytes).toBeLessThan(MIB);
    const end = await fs.readFile(folder.at('huge'), { offset: HUGE_BYTES - 1, length: 100 });
    expect(Buffer.from(end).toString()).toBe('!');
    const before = residentBytes(trial.serverPid);
    expect(await codeOf(fs.readFile(folder.at('huge')))).toBe('FILE_TOO_LARGE');
    expect(residentBytes(trial.serverPid) - before).toBeLessThan(64 * MIB);
  });

  it('packs it without taking it into memory', async () => {
    await using file = await open(folder.at('huge'), 'w');
    await file.truncate(HUGE_BYTES);
    const wanted = scaled(64, 512) * MIB;
    const reader = trial.client.fs.pack(folder.path).getReader();
    let bytes = 0;
    let most = 0;
    const take = async (limit: number): Promise<void> => {
      while (bytes < limit) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`the archive ended after ${bytes} bytes`);
        bytes += value.length;
        most = Math.max(most, residentBytes(trial.serverPid));
      }
    };
    await take(16 * MIB);
    const before = most;
    await take(wanted);
    await reader.cancel();
    expect(most - before).toBeLessThan(64 * MIB);
  });

  it('reads files of the system to their end, whatever size they report', async () => {
    const { fs } = trial.client;
    expect(await fs.readText('/proc/self/status')).toContain(`\nPid:\t${trial.serverPid}\n`);
    expect(await fs.readText('/sys/class/net/lo/mtu')).toBe(readFileSync('/sys/class/net/lo/mtu', 'utf8'));
  });

  it('refuses at once to read what is no regular file', async () => {
    const { fs } = trial.client;
    await execa('mkfifo', [folder.at('fifo')]);
    for (const path of [folder.at('fifo'), '/dev/zero', folder.path]) {
      expect(await codeOf(fs.readFile(path))).toBe('NOT_REGULAR_FILE');
      expect(await codeOf(collect(fs.readStream(path)))).toBe('NOT_REGULAR_FILE');
    }
    expect(await codeOf(fs.writeFile(folder.at('fifo'), 'nobody reads this'))).toBe('ENXIO');
  });

  it.skipIf(process.getuid?.() !== 0)('keeps mode, group and link in front when it writes a file anew', async () => {
    const { fs } = trial.client;
    const group = 12_345;
    await writeFile(folder.at('file'), 'old');
    await chown(folder.at('file'), 0, group);
    await chmod(folder.at('file'), 0o640);
    await symlink('file', folder.at('link'));
    const before = await stat(folder.at('file'));
    expect(await fs.writeFile(folder.at('link'), 'new')).toEqual({});
    const after = await stat(folder.at('file'));
    expect([after.mode, after.uid, after.gid]).toEqual([before.mode, before.uid, group]);
    expect(after.ino).not.toBe(before.ino);
    expect((await lstat(folder.at('link'))).isSymbolicLink()).toBe(true);
    expect(await readFile(folder.at('file'), 'utf8')).toBe('new');
    expect((await readdir(folder.path)).sort()).toEqual(['file', 'link']);
  });

  it('leaves a file that is copied onto itself as it is', async () => {
    const { fs } = trial.client;
    await writeFile(folder.at('file'), 'content');
    await symlink('file', folder.at('link'));
    await fs.copy(folder.at('file'), folder.at('file'));
    await fs.copy(folder.at('file'), folder.at('..', folder.path.split('/').at(-1) ?? '', 'file'));
    await fs.copy(folder.at('link'), folder.at('file'), { followSymlinks: true });
    expect(await readFile(folder.at('file'), 'utf8')).toBe('content');
    expect((await readdir(folder.path)).sort()).toEqual(['file', 'link']);
  });
});

describe.each(rawLinks)('ranges of a file that grows, over %s', (link) => {
  it('are exact, and size and end are those of the read itself', async () => {
    await using folder = await Folder.make();
    const served = new RawServed(link);
    const raw = await served.ready();
    const path = folder.at('grows');
    const lines = scaled(50, 200);
    await writeFile(path, '');
    const file = { written: 0 };
    const isGrowing = (): boolean => file.written < lines * 1024;
    const grow = async (): Promise<void> => {
      for (; isGrowing(); file.written += 1024) await appendFile(path, pattern(1024, file.written));
    };
    const reads = async (): Promise<void> => {
      for (let offset = 0; isGrowing(); offset = (offset + 777) % Math.max(file.written, 1)) {
        const least = file.written;
        const { dataBase64, size, eof } = await raw.result('fs/readFile', { path, offset, maxBytes: 1500 });
        const bytes = Buffer.from(String(dataBase64), 'base64');
        expect(bytes.equals(pattern(bytes.length, offset))).toBe(true);
        expect(size).toBeGreaterThanOrEqual(least);
        expect(bytes.length).toBe(Math.min(1500, Number(size) - offset));
        expect(eof).toBe(offset + bytes.length === size);
      }
    };
    await Promise.all([grow(), reads()]);
    expect(await raw.result('fs/readFile', { path, offset: lines * 1024 - 10 })).toMatchObject({
      dataBase64: pattern(10, lines * 1024 - 10).toString('base64'),
      size: lines * 1024,
      eof: true,
    });
    await served.expectClean();
  });
});
