/** `fs/watch` and `fs/watchMissing`, as raw messages see them. */
import { Buffer } from 'node:buffer';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { limits } from '@exec-server/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostWatches } from '../support/hostGauges.js';
import type { Raw, RawMessage } from '../support/raw.js';
import { RawServed, rawLinks } from '../support/rawServed.js';
import { until } from '../support/until.js';

let folder: string;
let served: RawServed;
let raw: Raw;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'watching-'));
  served = new RawServed('memory');
  raw = await served.ready();
});

afterEach(async () => {
  await served.expectClean();
  rmSync(folder, { recursive: true, force: true });
  expect(hostWatches()).toBe(0);
});

const at = (name: string): string => join(folder, name);
const uri = (name: string): string => pathToFileURL(at(name)).href;

async function watch(path = folder, params: object = {}): Promise<void> {
  await raw.result('fs/watch', { watchId: 'w', path, ...params });
}

interface Told {
  readonly kind: string;
  readonly path: string;
  readonly isDirectory: boolean;
}

/** Everything told so far. */
function told(peer = raw): { changes: Told[]; overflow: boolean; ended: string | undefined } {
  const all = peer.received.filter(({ method }) => method === 'fs/changed').map(({ params }) => params ?? {});
  return {
    // The test checks what it compares.
    changes: all.flatMap((params) => params['changes'] as Told[]),
    overflow: all.some((params) => params['overflow'] === true),
    ended: all.map((params) => params['ended'] as string | undefined).find((ended) => ended !== undefined),
  };
}

const short = ({ kind, path, isDirectory }: Told): string =>
  `${kind} ${path.slice(pathToFileURL(folder).href.length + 1)}${isDirectory ? '/' : ''}`;

async function see(...expected: string[]): Promise<void> {
  const missing = (): string[] => expected.filter((one) => !told().changes.map(short).includes(one));
  await until(
    () => missing().length === 0,
    `changes ${expected.join(', ')}; told: ${told().changes.map(short).slice(-20).join(', ')}`,
  );
}

describe('a watch of a folder', () => {
  it('tells what is created, modified and removed, and nothing of what was there before', async () => {
    mkdirSync(at('old'));
    writeFileSync(at('old/file'), '1');
    writeFileSync(at('gone'), '');
    await watch();
    writeFileSync(at('new'), 'x');
    appendFileSync(at('old/file'), '2');
    unlinkSync(at('gone'));
    mkdirSync(at('dir'));
    await see('created new', 'modified old/file', 'removed gone', 'created dir/');
    expect(told().changes).toHaveLength(4);
  });

  it('tells what lies in a new folder, however soon it was made', async () => {
    await watch();
    const expected: string[] = [];
    for (let index = 0; index < 100; index += 1) {
      mkdirSync(at(`d${index}/inner`), { recursive: true });
      if (index % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      writeFileSync(at(`d${index}/inner/file`), '');
      expected.push(`created d${index}/`, `created d${index}/inner/`, `created d${index}/inner/file`);
    }
    await see(...expected);
  });

  it('follows a folder that is renamed', async () => {
    mkdirSync(at('a'));
    writeFileSync(at('a/file'), '');
    await watch();
    renameSync(at('a'), at('b'));
    await see('removed a/', 'created b/', 'created b/file');
    appendFileSync(at('b/file'), 'x');
    await see('modified b/file');
  });

  it('tells the second of two writes that follow each other at once', async () => {
    writeFileSync(at('file'), '');
    await watch();
    for (let round = 1; round <= 10; round += 1) {
      appendFileSync(at('file'), 'x');
      await until(() => told().changes.length >= round, `change ${round}`);
    }
  });

  it('tells links as links, dangling ones too, and does not look behind them', async () => {
    const elsewhere = mkdtempSync(join(tmpdir(), 'watching-'));
    try {
      symlinkSync(elsewhere, at('link'));
      await watch();
      symlinkSync('nowhere', at('dangling'));
      symlinkSync(elsewhere, at('another'));
      writeFileSync(join(elsewhere, 'file'), '');
      await see('created dangling', 'created another');
      unlinkSync(at('link'));
      await see('removed link');
      expect(told().changes).toHaveLength(3);
    } finally {
      rmSync(elsewhere, { recursive: true });
    }
  });

  it('names what has no UTF-8 name by a path that can be sent back', async () => {
    await watch();
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x61, 0xff])]), '');
    await see('created a%FF');
  });

  it('tells a change of permissions, and of backup files of editors', async () => {
    writeFileSync(at('file'), '');
    await watch();
    chmodSync(at('file'), 0o000);
    writeFileSync(at('file~'), '');
    writeFileSync(at('.file.swp'), '');
    await see('modified file', 'created file~', 'created .file.swp');
  });

  it('tells an atomic write as one change, and nothing of temporary files', async () => {
    writeFileSync(at('file'), 'old');
    writeFileSync(at('.exec-server-other-1.tmp'), '');
    await watch();
    const write = (name: string, more: object = {}): Promise<unknown> =>
      raw.result('fs/writeFile', { path: at(name), dataBase64: 'bmV3', ...more });
    await write('file', { fsync: true });
    await see('modified file');
    await write('new');
    await write('alone', { overwrite: false });
    unlinkSync(at('.exec-server-other-1.tmp'));
    writeFileSync(at('last'), '');
    await see('created last');
    const order = told().changes.map(short);
    expect(order.sort()).toEqual(['created alone', 'created last', 'created new', 'modified file']);
  });

  it('leaves folders below alone where it is not recursive', async () => {
    mkdirSync(at('inner'));
    await watch(folder, { recursive: false });
    writeFileSync(at('inner/file'), '');
    writeFileSync(at('file'), '');
    mkdirSync(at('inner2'));
    writeFileSync(at('inner2/file'), '');
    await see('created file', 'created inner2/');
    expect(
      told()
        .changes.map(short)
        .filter((change) => change.includes('/file')),
    ).toEqual([]);
  });

  it('tells everything under the path it was given, where that is a link', async () => {
    mkdirSync(at('real'));
    symlinkSync('real', at('link'));
    await watch(at('link'));
    writeFileSync(at('real/file'), '');
    await see('created link/file');
  });

  it('says that changes were dropped when more come than it tells at a time, and goes on', async () => {
    await watch();
    for (let index = 0; index < limits.MAX_WATCH_CHANGES + 500; index += 1) writeFileSync(at(`f${index}`), '');
    await until(() => told().overflow, 'an overflow');
    const sizes = raw.received.map(({ params }) => (params?.['changes'] as Told[] | undefined)?.length ?? 0);
    expect(Math.max(...sizes)).toBe(limits.MAX_WATCH_CHANGES);
    writeFileSync(at('last'), '');
    await see('created last');
  });

  it('knows its tree again after the host has dropped events', async () => {
    mkdirSync(at('flooded'));
    mkdirSync(at('quiet'));
    await watch();
    // More than the queue of the host holds, before the server has a turn.
    const events = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'));
    const files = [openSync(at('flooded/a'), 'w'), openSync(at('flooded/b'), 'w')] as const;
    for (let index = 0; index < events; index += 1) writeSync(index % 2 === 0 ? files[0] : files[1], 'x');
    for (const file of files) closeSync(file);
    writeFileSync(at('quiet/dropped'), '');
    await until(() => told().overflow, 'an overflow');
    unlinkSync(at('quiet/dropped'));
    await see('removed quiet/dropped');
  });

  it('ends with the removal of the folder', async () => {
    mkdirSync(at('root/inner'), { recursive: true });
    await watch(at('root'));
    rmSync(at('root'), { recursive: true });
    await until(() => told().ended !== undefined, 'the end');
    expect(told().ended).toBe('the watched path was removed');
    expect(told().changes.map(short)).toContain('removed root/');
    // The id is free again.
    await watch();
  });

  it('ends when another folder takes the place of the one that is watched', async () => {
    mkdirSync(at('root'));
    mkdirSync(at('next'));
    await watch(at('root'));
    renameSync(at('root'), at('before'));
    renameSync(at('next'), at('root'));
    await until(() => told().ended !== undefined, 'the end');
  });
});

describe('a watch of a file', () => {
  it('tells its changes alone, also when another file takes its place', async () => {
    writeFileSync(at('file'), '');
    await watch(at('file'));
    writeFileSync(at('other'), '');
    appendFileSync(at('file'), 'x');
    await see('modified file');
    const before = told().changes.length;
    writeFileSync(at('temporary'), '');
    renameSync(at('temporary'), at('file'));
    await until(() => told().changes.length > before, 'another change');
    expect(new Set(told().changes.map(short))).toEqual(new Set(['modified file']));
    unlinkSync(at('file'));
    await until(() => told().ended !== undefined, 'the end');
    await see('removed file');
  });
});

describe('refusals', () => {
  it.each([
    ['a path that does not exist', {}, { code: -32004, data: { reason: 'fileNotFound', errno: 'ENOENT' } }],
    ['an id that is too long', { watchId: 'x'.repeat(65), path: '/' }, { data: { reason: 'invalidArgument' } }],
    ['an empty id', { watchId: '', path: '/' }, { data: { reason: 'invalidArgument' } }],
    ['a relative path', { path: 'a' }, { data: { reason: 'invalidPath' } }],
  ])('%s', async (_what, params, expected) => {
    expect((await raw.call('fs/watch', { watchId: 'w', path: at('missing'), ...params })).error).toMatchObject(
      expected,
    );
  });

  it('an id in use, and one watch more than a connection may have', async () => {
    await watch();
    expect((await raw.call('fs/watch', { watchId: 'w', path: folder })).error?.data).toMatchObject({
      reason: 'invalidArgument',
      field: 'watchId',
    });
    for (let index = 1; index < limits.WATCHES_PER_CONNECTION; index += 1) {
      await raw.result('fs/watch', { watchId: `w${index}`, path: folder });
    }
    expect((await raw.call('fs/watch', { watchId: 'more', path: folder })).error?.data).toMatchObject({
      reason: 'tooManyWatches',
      limit: limits.WATCHES_PER_CONNECTION,
    });
    await raw.result('fs/unwatch', { watchId: 'w' });
    await raw.result('fs/watch', { watchId: 'more', path: folder });
  });
});

describe('the end of a watch', () => {
  it('comes with fs/unwatch, which may be repeated: nothing is told any more', async () => {
    await watch();
    await raw.result('fs/unwatch', { watchId: 'w' });
    await raw.result('fs/unwatch', { watchId: 'w' });
    expect(hostWatches()).toBe(0);
    writeFileSync(at('file'), '');
    await raw.result('fs/watch', { watchId: 'other', path: folder });
    writeFileSync(at('seen'), '');
    await see('created seen');
    expect(raw.received.some(({ params }) => params?.['watchId'] === 'w')).toBe(false);
  });

  it('leaves nothing when it comes while the watch is being opened', async () => {
    for (let index = 0; index < 200; index += 1) mkdirSync(at(`d${index}`));
    raw.send({ id: 1, method: 'fs/watch', params: { watchId: 'w', path: folder } });
    raw.send({ id: 2, method: 'fs/unwatch', params: { watchId: 'w' } });
    expect((await raw.answerTo(1)).error?.data).toMatchObject({ reason: 'invalidArgument' });
    await until(() => hostWatches() === 0, 'the watches are closed');
  });

  it.each(rawLinks)('comes with the connection, also while it is being opened (%s)', async (link) => {
    for (let index = 0; index < 200; index += 1) mkdirSync(at(`d${index}`));
    const other = new RawServed(link);
    const peer = await other.ready();
    await peer.result('fs/watch', { watchId: 'a', path: folder });
    await peer.result('fs/watchMissing', { watchId: 1, missing: [uri('missing')] });
    expect(hostWatches()).toBeGreaterThan(200);
    peer.send({ id: 7, method: 'fs/watch', params: { watchId: 'b', path: folder } });
    peer.transport.abort();
    await until(() => hostWatches() === 0, 'the watches are closed');
    await other.expectClean();
  });
});

describe('a client that does not read', () => {
  it('is told later what has changed in all, and not each change', async () => {
    const files = Array.from({ length: 300 }, (_, index) => at(`${'long'.repeat(50)}${index}`));
    for (const file of files) writeFileSync(file, '');
    await watch();
    raw.transport.pause();
    const witness = await served.ready();
    await witness.result('fs/watch', { watchId: 'w', path: at('.') });
    for (let round = 0; round < 12; round += 1) {
      for (const file of files) utimesSync(file, round, round);
      writeFileSync(at(`round${round}`), '');
      await until(() => told(witness).changes.map(short).includes(`created round${round}`), `round ${round}`);
    }
    const queued = served.server.gauges().queuedBytes;
    expect(queued).toBeLessThan(2 * limits.OUTBOX_HIGH_WATER_BYTES);
    raw.transport.resume();
    writeFileSync(at('last'), '');
    await see('created last');
  });
});

describe('fs/watchMissing', () => {
  const fired = (): RawMessage[] => raw.received.filter(({ method }) => method === 'fs/missingChanged');
  const watchMissing = async (watchId: number, ...names: string[]): Promise<unknown> =>
    (await raw.result('fs/watchMissing', { watchId, missing: names.map(uri) }))['watching'];

  it('tells once when a path appears, and not of its neighbours', async () => {
    expect(await watchMissing(5, 'new1', 'dir/new2')).toBe(true);
    writeFileSync(at('sibling'), '');
    writeFileSync(at('new'), '');
    mkdirSync(at('di'));
    writeFileSync(at('new1'), '');
    await until(() => fired().length > 0, 'the telling');
    expect(fired()[0]?.params).toEqual({ watchId: 5 });
    mkdirSync(at('dir'));
    expect(await watchMissing(6, 'new1')).toBe(false);
    expect(fired()).toHaveLength(1);
  });

  it('tells when the next folder on the way appears', async () => {
    expect(await watchMissing(1, 'a/b/c')).toBe(true);
    mkdirSync(at('a'));
    await until(() => fired().length === 1, 'the telling');
  });

  it('goes on waiting when the folder it waits in is removed, and made again', async () => {
    mkdirSync(at('a'));
    expect(await watchMissing(1, 'a/b/c')).toBe(true);
    rmSync(at('a'), { recursive: true });
    writeFileSync(at('sibling'), '');
    mkdirSync(at('a'));
    mkdirSync(at('a/b'));
    await until(() => fired().length === 1, 'the telling');
  });

  it('answers false for no path, too many, and ids that are not higher; a higher one replaces the watch', async () => {
    expect(await watchMissing(2)).toBe(false);
    expect(await watchMissing(3, ...Array.from({ length: 65 }, (_, index) => `n${index}`))).toBe(false);
    expect(await watchMissing(4, ...Array.from({ length: 64 }, (_, index) => `n${index}`))).toBe(true);
    expect(await watchMissing(4, 'other')).toBe(false);
    expect(await watchMissing(6, '.')).toBe(false);
    expect(hostWatches()).toBe(0);
    writeFileSync(at('n1'), '');
    expect(await watchMissing(7, 'n2')).toBe(true);
    writeFileSync(at('n2'), '');
    await until(() => fired().length > 0, 'the telling');
    expect(fired().map(({ params }) => params)).toEqual([{ watchId: 7 }]);
  });

  it('names what has no UTF-8 name', async () => {
    const result = await raw.result('fs/watchMissing', { watchId: 1, missing: [`${uri('a')}%FF`] });
    expect(result).toEqual({ watching: true });
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x61, 0xff])]), '');
    await until(() => fired().length === 1, 'the telling');
  });
});
