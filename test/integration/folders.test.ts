/** `fs/readDirectory` and `fs/walk` as raw messages see them. */
import { lstat, mkdir, symlink, writeFile } from 'node:fs/promises';
import { limits } from '@exec-server/protocol';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { FilesRig, inMemory } from '../support/filesRig.js';

interface Entry {
  readonly fileName: string;
  readonly path?: string;
  readonly isFile: boolean;
  readonly isDirectory: boolean;
}
interface WalkEntry {
  readonly path: string;
  readonly kind: string;
}

async function list(rig: FilesRig, params: object = {}): Promise<{ entries: Entry[]; nextCursor?: string }> {
  const result = await rig.result('fs/readDirectory', { path: rig.folder, ...params });
  return result as unknown as { entries: Entry[]; nextCursor?: string };
}

const flat = ({ fileName, isFile, isDirectory }: Entry): string =>
  `${fileName} ${isFile ? 'file' : isDirectory ? 'directory' : 'neither'}`;

/** Files named by these bytes. */
async function touch(rig: FilesRig, names: readonly (string | Buffer)[]): Promise<void> {
  const folder = Buffer.from(`${rig.folder}/`);
  for (const name of names) await writeFile(Buffer.concat([folder, Buffer.from(name)]), '');
}

describe('a folder is listed', () => {
  it('with flags that follow links, and without links that lead nowhere', async () => {
    await using rig = await FilesRig.open();
    await execa('sh', ['-c', 'touch f; mkdir d; mkfifo p; ln -s f lf; ln -s d ld; ln -s no dang; ln -s l l'], {
      cwd: rig.folder,
    });
    expect((await list(rig)).entries.map(flat).sort()).toEqual([
      'd directory',
      'f file',
      'ld directory',
      'lf file',
      'p neither',
    ]);
  });

  it('with every name as it is; one that is not UTF-8 comes with a path that can be opened', async () => {
    await using rig = await FilesRig.open();
    const names = ['a\nb', '-rf', '\u00e9', 'e\u0301', 'x'.repeat(255), 'with space%20'];
    await touch(rig, [...names, Buffer.from([0x61, 0xff])]);
    const { entries } = await list(rig);
    expect(new Set(entries.map(({ fileName }) => fileName))).toEqual(new Set([...names, 'a\ufffd']));
    const strange = entries.filter(({ path }) => path !== undefined);
    expect(strange).toEqual([
      { fileName: 'a\ufffd', isDirectory: false, isFile: true, path: `file://${rig.folder}/a%FF` },
    ]);
    for (const method of ['fs/readFile', 'fs/getMetadata']) await rig.result(method, { path: strange[0]?.path });
    expect(await rig.result('fs/canonicalize', { path: strange[0]?.path })).toEqual({ path: strange[0]?.path });
  });

  it('with detail: sorted by bytes, links as links, dangling ones as well', async () => {
    await using rig = await FilesRig.open();
    await writeFile(rig.at('b'), 'four', { mode: 0o600 });
    await symlink('nowhere', rig.at('a'));
    await mkdir(rig.at('Z'));
    await symlink('Z', rig.at('\u00e9'));
    await execa('mkfifo', ['-m', '0644', rig.at('p')]);
    const { mtimeMs } = await lstat(rig.at('b'));
    const { entries } = await list(rig, { detail: true });
    expect(entries).toMatchObject([
      { fileName: 'Z', isDirectory: true, kind: 'directory' },
      { fileName: 'a', isDirectory: false, isFile: false, kind: 'symlink', size: 7, linkTarget: 'nowhere' },
      { fileName: 'b', isFile: true, kind: 'file', size: 4, mode: 0o600, modifiedAtMs: Math.trunc(mtimeMs) },
      { fileName: 'p', isFile: false, kind: 'fifo', mode: 0o644 },
      { fileName: '\u00e9', isDirectory: true, isFile: false, kind: 'symlink', linkTarget: 'Z' },
    ]);
  });

  it('in pages that together are the whole, whatever is added and removed meanwhile', async () => {
    await using rig = await FilesRig.open();
    const names = Array.from({ length: 25 }, (_, at) => `n${at}`).sort();
    await touch(rig, [...names, Buffer.from([0xfe])]);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await list(rig, { limit: 7, ...(cursor === undefined ? {} : { cursor }) });
      expect(page.entries.length).toBeLessThanOrEqual(7);
      seen.push(...page.entries.map(({ fileName }) => fileName));
      cursor = page.nextCursor;
      // Before every page to come, so it is on none of them.
      await touch(rig, [`a${seen.length}`]);
    } while (cursor !== undefined);
    expect(seen).toEqual([...names, '\ufffd']);
  });

  it('in shorter pages where its names and links do not fit one answer', async () => {
    await using rig = await FilesRig.open('memory', inMemory);
    // In JSON each of these bytes takes six.
    const names = Array.from({ length: 600 }, (_, index) => `l${String(index).padStart(3, '0')}`);
    for (const name of names) await symlink('\x01'.repeat(4000), rig.at(name));
    const refused = await rig.error('fs/readDirectory', { path: rig.folder, detail: true });
    expect(refused.data).toMatchObject({ reason: 'replyTooLarge', limitBytes: limits.MAX_REPLY_BYTES });
    const seen: string[] = [];
    let pages = 0;
    for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
      const page = await list(rig, { detail: true, limit: 600, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...page.entries.map(({ fileName }) => fileName));
      cursor = page.nextCursor;
      pages += 1;
    }
    expect([pages, seen]).toEqual([2, names]);
  });

  it('not with a limit or cursor that cannot be', async () => {
    await using rig = await FilesRig.open();
    for (const params of [{ limit: 0 }, { limit: 50_001 }, { cursor: '' }, { cursor: 'a b' }]) {
      const error = await rig.error('fs/readDirectory', { path: rig.folder, ...params });
      expect(error).toMatchObject({ code: -32600, data: { reason: 'invalidArgument', field: Object.keys(params)[0] } });
    }
    await writeFile(rig.at('f'), '');
    for (const params of [{}, { limit: 1 }, { detail: true }]) {
      const error = await rig.error('fs/readDirectory', { path: rig.at('f'), ...params });
      expect(error).toMatchObject({ code: -32603, message: 'Not a directory (os error 20)' });
    }
  });

  it('up to its bound, and beyond it in pages only', async () => {
    await using rig = await FilesRig.open('memory', inMemory);
    const count = limits.MAX_DIRECTORY_ENTRIES;
    await execa('sh', ['-c', `seq 1 ${count} | xargs touch`], { cwd: rig.folder });
    expect((await list(rig)).entries.length).toBe(count);
    await writeFile(rig.at('one more'), '');
    for (const params of [{}, { detail: true }]) {
      expect(await rig.error('fs/readDirectory', { path: rig.folder, ...params })).toMatchObject({
        code: -32603,
        data: { reason: 'replyTooLarge', limit: count },
      });
    }
    const first = await list(rig, { limit: count });
    expect(first.entries.length).toBe(count);
    const { cursor } = { cursor: first.nextCursor };
    const second = await list(rig, { limit: count, cursor });
    expect(second.entries.map(({ fileName }) => fileName)).toEqual(['one more']);
    expect(second.nextCursor).toBeUndefined();
  });
});

const bounds = { maxDepth: 10, maxDirectories: 100, maxEntries: 100, followDirectorySymlinks: false };

describe('a tree is walked', () => {
  async function tree(script: string): Promise<FilesRig> {
    const rig = await FilesRig.open('memory', inMemory);
    await execa('sh', ['-c', script], { cwd: rig.folder });
    return rig;
  }

  async function walk(
    rig: FilesRig,
    options: object = {},
    path = rig.folder,
  ): Promise<{ entries: string[]; errors: unknown[]; truncated: boolean; kinds: string[]; raw: WalkEntry[] }> {
    const result = (await rig.result('fs/walk', { path, options: { ...bounds, ...options } })) as unknown as {
      entries: WalkEntry[];
      errors: unknown[];
      truncated: boolean;
    };
    return {
      ...result,
      raw: result.entries,
      entries: result.entries.map((entry) => entry.path.slice(`file://${rig.folder}/`.length)),
      kinds: result.entries.map(({ kind }) => kind),
    };
  }

  const usual = 'mkdir -p a/b/c .h/i; touch z a/f a/b/g .h/j; ln -s a la; ln -s z lz; ln -s nowhere dang; mkfifo ff';

  it('breadth first, sorted, without what is neither file nor folder', async () => {
    await using rig = await tree(usual);
    const { entries, kinds, errors, truncated } = await walk(rig);
    expect(entries).toEqual(['.h', 'a', 'z', '.h/i', '.h/j', 'a/b', 'a/f', 'a/b/c', 'a/b/g']);
    expect(kinds.join(' ')).toBe('directory directory file directory file directory file directory file');
    expect([errors, truncated]).toEqual([[], false]);
  });

  it('with hidden folders listed and not entered, where asked to', async () => {
    await using rig = await tree(usual);
    const { entries } = await walk(rig, { pruneHiddenDirectories: true });
    expect(entries).toEqual(['.h', 'a', 'z', 'a/b', 'a/f', 'a/b/c', 'a/b/g']);
  });

  it.each([
    ['maxDepth', 0, ['.h', 'a', 'z'], false],
    ['maxDepth', 1, ['.h', 'a', 'z', '.h/i', '.h/j', 'a/b', 'a/f'], false],
    ['maxEntries', 2, ['.h', 'a'], true],
    ['maxEntries', 9, ['.h', 'a', 'z', '.h/i', '.h/j', 'a/b', 'a/f', 'a/b/c', 'a/b/g'], false],
    ['maxDirectories', 2, ['.h', 'a', 'z', '.h/i', '.h/j'], true],
  ])('within %s %i', async (name, value, expected, cut) => {
    await using rig = await tree(usual);
    const { entries, truncated } = await walk(rig, { [name]: value });
    expect(entries).toEqual(expected);
    expect(truncated).toBe(cut);
  });

  it('into linked folders where asked to, each real folder once, by whichever path comes first', async () => {
    await using rig = await tree('mkdir -p m w; touch m/f; ln -s m a; ln -s . w/up; ln -s ../w w/self; ln -s m z');
    const { entries, truncated } = await walk(rig, { followDirectorySymlinks: true });
    expect(entries).toEqual(['a', 'm', 'w', 'z', 'a/f', 'w/self', 'w/up']);
    expect(truncated).toBe(false);
  });

  it('with detail, links as links, and never in a circle', async () => {
    await using rig = await tree('mkdir -p w/x/y; ln -s b w/a; ln -s a w/b; ln -s ../.. w/x/y/up');
    for (const followDirectorySymlinks of [false, true]) {
      const { raw, entries, errors } = await walk(rig, { detail: true, followDirectorySymlinks }, rig.at('w'));
      expect(entries).toEqual(['w/a', 'w/b', 'w/x', 'w/x/y', 'w/x/y/up']);
      expect(raw).toMatchObject([
        { kind: 'symlink', linkTarget: 'b', size: 1 },
        { kind: 'symlink', linkTarget: 'a' },
        { kind: 'directory' },
        { kind: 'directory' },
        { kind: 'symlink', linkTarget: '../..' },
      ]);
      expect(errors).toEqual([]);
    }
  });

  it('with names that are not UTF-8, which can be named on this wire', async () => {
    await using rig = await FilesRig.open();
    await touch(rig, ['a', Buffer.from([0x62, 0xff])]);
    const { entries, errors } = await walk(rig);
    expect(entries).toEqual(['a', 'b%FF']);
    expect(errors).toEqual([]);
  });

  it('past what cannot be read, which is told', async () => {
    const path = Array(10).fill('x'.repeat(250)).join('/');
    // Together longer than a path may be.
    await using rig = await tree(`mkdir -p z deep/${path} below/${path}; touch z/f; mv below deep/${path}`);
    const { entries, errors, truncated } = await walk(rig, { maxDepth: 64 });
    expect(entries).toContain('z/f');
    expect(errors).toEqual([{ path: expect.stringMatching(/\/below\/x/), message: 'Filename too long (os error 36)' }]);
    expect(truncated).toBe(false);
  });

  it('not from a file or a link', async () => {
    await using rig = await tree(usual);
    for (const name of ['z', 'la']) {
      expect(await rig.result('fs/walk', { path: rig.at(name), options: bounds })).toEqual({
        entries: [],
        errors: [],
        truncated: false,
      });
    }
    for (const name of ['none', 'dang']) {
      expect(await rig.error('fs/walk', { path: rig.at(name), options: bounds })).toMatchObject({ code: -32004 });
    }
  });

  it('not with bounds that cannot be', async () => {
    await using rig = await FilesRig.open();
    const maximums = 'filesystem walk limits exceed maximums: depth=64, directories=10000, entries=50000';
    for (const [options, message] of [
      [{ maxEntries: 0 }, 'filesystem walk limits must be greater than zero'],
      [{ maxDirectories: 0 }, 'filesystem walk limits must be greater than zero'],
      [{ maxDepth: 65 }, maximums],
      [{ maxDirectories: 10_001 }, maximums],
      [{ maxEntries: 50_001 }, maximums],
    ]) {
      const error = await rig.error('fs/walk', { path: rig.folder, options: { ...bounds, ...(options as object) } });
      expect(error).toMatchObject({ code: -32600, message, data: { reason: 'invalidArgument' } });
    }
  });

  it('when it is large, up to its bound', async () => {
    await using rig = await tree('for d in $(seq 1 8); do mkdir $d; (cd $d; seq 1 650 | xargs touch); done');
    const { entries, truncated } = await walk(rig, { maxDirectories: 10_000, maxEntries: 5000 });
    expect(entries.length).toBe(5000);
    expect(truncated).toBe(true);
    expect(new Set(entries).size).toBe(5000);
    const whole = await walk(rig, { maxDirectories: 10_000, maxEntries: 50_000 });
    expect([whole.entries.length, whole.truncated]).toEqual([8 * 651, false]);
    expect(whole.entries.slice(0, 5000)).toEqual(entries);
  });
});
