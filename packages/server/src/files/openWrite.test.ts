import { spawnSync } from 'node:child_process';
import { chmodSync, closeSync, constants, linkSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import type { ParamsOf } from '@exec-server/protocol';
import { limits } from '@exec-server/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { asNobody, isRoot } from '../../../../test/support/nobody.js';
import { Scratch } from '../../../../test/support/scratch.js';
import { unguardedTemps } from '../../../../test/support/temps.js';
import { ConnectionFiles } from './connectionFiles.js';
import type { OpenHandle } from './fileHandles.js';
import { type OpenedForWriting, openForWriting } from './openWrite.js';
import { SessionFiles } from './sessionFiles.js';
import type { TempFiles } from './tempFiles.js';

describe.skipIf(process.platform !== 'linux')('opening for writing', () => {
  let scratch: Scratch;
  let temps: TempFiles;
  let session: SessionFiles;
  let connection: ConnectionFiles;
  beforeEach(() => {
    scratch = new Scratch();
    temps = unguardedTemps();
    session = new SessionFiles();
    connection = dial();
  });
  afterEach(async () => {
    await session.end();
    expect(temps.size).toBe(0);
    scratch.remove();
  });

  function dial(): ConnectionFiles {
    // Nothing is sent or answered here: the host of a connection is not asked for anything.
    return new ConnectionFiles({} as ConnectionFiles['host']);
  }
  const open = (
    name: string,
    params: Partial<ParamsOf<'fs/open'>> = {},
    files = connection,
  ): Promise<OpenedForWriting> =>
    openForWriting(
      { files, session: { files: session }, server: { tempFiles: temps } },
      { handleId: 'h', path: scratch.path(name), mode: 'replace', ...params },
    );
  async function held(...args: Parameters<typeof open>): Promise<OpenHandle> {
    const { handle } = await open(...args);
    if (handle === undefined) throw new Error('no handle was opened');
    return handle;
  }
  const write = async (handle: OpenHandle, text: string, offset = 0): Promise<void> =>
    handle.write?.(offset, Buffer.from(text));
  const temporary = (): string[] => scratch.names().filter((name) => name.endsWith('.tmp'));

  describe('in place', () => {
    it('empties the file at once, writes at any position, and keeps what the file is', async () => {
      scratch.file('f', 'previous', 0o640);
      linkSync(scratch.path('f'), scratch.path('hard'));
      const { handle, result } = await open('f', { permissions: 0o600, detail: true });
      expect([result.size, result.mode, scratch.text('f'), handle?.read]).toEqual([0, 0o640, '', undefined]);
      if (handle === undefined) return;
      await write(handle, 'hello');
      await write(handle, 'end', 8);
      expect(await handle.close({ fsync: true })).toEqual({});
      expect(scratch.text('hard')).toBe('hello\0\0\0end');
    });

    it('keeps the content with keep, creates with permissions, and refuses what exists with exclusive', async () => {
      scratch.file('f', 'previous');
      const kept = await held('f', { keep: true });
      await write(kept, 'PRE');
      await kept.close({});
      await (await held('g', { permissions: 0o606 })).close({});
      expect([scratch.text('f'), scratch.mode('g')]).toEqual(['PREvious', 0o606]);
      await expect(open('f', { exclusive: true })).rejects.toMatchObject({ reason: 'fileExists' });
      expect(scratch.text('f')).toBe('PREvious');
    });

    it('refuses folders, FIFOs nobody reads, links where none may be, and offsets no file reaches', async () => {
      scratch.folder('d');
      scratch.file('f', 'x');
      scratch.link('l', 'f');
      scratch.link('to-d', 'd');
      expect(spawnSync('mkfifo', [scratch.path('fifo')]).status).toBe(0);
      await expect(open('d')).rejects.toMatchObject({ reason: 'isDirectory' });
      await expect(open('none/x')).rejects.toMatchObject({ reason: 'fileNotFound' });
      await expect(open('fifo')).rejects.toMatchObject({ code: -32603, data: { errno: 'ENXIO' } });
      await expect(open('l', { followSymlinks: false })).rejects.toMatchObject({ reason: 'tooManyLinks' });
      await expect(open('to-d/x', { followSymlinks: false })).rejects.toMatchObject({ reason: 'notDirectory' });
      await expect(open('f', { permissions: 0o10000 })).rejects.toMatchObject({ reason: 'invalidArgument' });
      const handle = await held('f', { keep: true });
      await expect(write(handle, 'x', 2 ** 53)).rejects.toMatchObject({ data: { errno: 'EFBIG' } });
      await handle.drop();
      expect(scratch.text('f')).toBe('x');
    });

    it('writes to a FIFO one block behind the other', async () => {
      expect(spawnSync('mkfifo', [scratch.path('fifo')]).status).toBe(0);
      const reader = openSync(scratch.path('fifo'), constants.O_RDONLY | constants.O_NONBLOCK);
      const handle = await held('fifo');
      await write(handle, 'one ');
      await write(handle, 'two', 4);
      const got = Buffer.alloc(16);
      expect(got.toString('utf8', 0, readSync(reader, got))).toBe('one two');
      await handle.drop();
      closeSync(reader);
    });
  });

  describe('to a stage', () => {
    it('shows nothing until the commit, which then replaces the file whole', async () => {
      scratch.file('f', 'old', 0o640);
      scratch.link('l', 'f');
      const { handle, result } = await open('l', { stage: 's' });
      if (handle === undefined) throw new Error('no handle was opened');
      expect(result).toEqual({ handleId: 'h', stagedBytes: 0 });
      await write(handle, 'new', 2);
      await write(handle, 'a ');
      expect([scratch.text('f'), scratch.mode(temporary()[0] ?? '')]).toEqual(['old', 0o600]);
      expect(await handle.close({ commit: true, fsync: true })).toEqual({});
      expect([scratch.text('f'), scratch.mode('f'), scratch.stats('l').isSymbolicLink()]).toEqual([
        'a new',
        0o640,
        true,
      ]);
      expect(temporary()).toEqual([]);
    });

    it('is dropped by a plain close, and left for later with keepStage', async () => {
      const first = await held('f', { stage: 's' });
      await write(first, 'four');
      await first.close({ keepStage: true, fsync: true });
      const { handle, result } = await open('f', { stage: 's' });
      expect(result.stagedBytes).toBe(4);
      await handle?.close({});
      expect(temporary()).toEqual([]);
      expect((await open('f', { stage: 's' })).result.stagedBytes).toBe(0);
    });

    it('goes on after its connection was lost, once the handle of that one has let go', async () => {
      const first = await held('f', { stage: 's' });
      await write(first, 'half');
      await expect(open('f', { stage: 's' })).rejects.toMatchObject({ reason: 'invalidArgument' });
      await connection.handles.open('h', () => Promise.resolve(first));
      let opened = false;
      const ended = connection.end();
      const next = open('f', { stage: 's' }, dial()).then((result) => {
        opened = true;
        return result;
      });
      expect(opened).toBe(false);
      await ended;
      const { handle, result } = await next;
      expect(result.stagedBytes).toBe(4);
      if (handle === undefined) return;
      await write(handle, ' whole', 4);
      await handle.close({ commit: true });
      expect(scratch.text('f')).toBe('half whole');
    });

    it('tells a repeat that it was committed, also one that comes during the commit', async () => {
      scratch.file('f', 'old');
      linkSync(scratch.path('f'), scratch.path('hard'));
      const handle = await held('f', { stage: 's' });
      await write(handle, 'new');
      const commit = handle.close({ commit: true });
      const repeat = await open('f', { stage: 's' }, dial());
      expect(repeat).toEqual({
        handle: undefined,
        result: { handleId: 'h', committed: { inPlace: 'hardLinks' } },
      });
      expect(await commit).toEqual({ inPlace: 'hardLinks' });
      expect((await open('f', { stage: 's' })).result.committed).toEqual({ inPlace: 'hardLinks' });
      await expect(open('g', { stage: 's' })).rejects.toMatchObject({ data: { field: 'path' } });
      expect(scratch.text('hard')).toBe('new');
    });

    it('stays when the commit fails, and can be committed later', async () => {
      scratch.file('f', 'old');
      const handle = await held('f', { stage: 's' });
      await write(handle, 'new');
      rmSync(scratch.path('f'));
      scratch.folder('f');
      await expect(handle.close({ commit: true })).rejects.toMatchObject({ reason: 'isDirectory' });
      rmSync(scratch.path('f'), { recursive: true });
      const again = await open('f', { stage: 's', permissions: 0o604 });
      expect(again.result.stagedBytes).toBe(3);
      await again.handle?.close({ commit: true });
      expect([scratch.text('f'), scratch.mode('f')]).toEqual(['new', 0o604]);
    });

    it('refuses with exclusive what exists when it is opened, and what appeared until the commit', async () => {
      scratch.file('f', 'old');
      await expect(open('f', { stage: 's', exclusive: true })).rejects.toMatchObject({ reason: 'fileExists' });
      const handle = await held('g', { stage: 's', exclusive: true });
      scratch.file('g', 'theirs');
      await expect(handle.close({ commit: true })).rejects.toMatchObject({ reason: 'fileExists' });
      expect(scratch.text('g')).toBe('theirs');
    });

    it('refuses other paths, keep, bad ids, and targets that cannot be written', async () => {
      scratch.folder('d');
      const handle = await held('f', { stage: 's' });
      await handle.drop();
      await expect(open('g', { stage: 's' })).rejects.toMatchObject({ data: { field: 'path' } });
      await expect(open('g', { stage: 't', keep: true })).rejects.toMatchObject({ data: { field: 'keep' } });
      await expect(open('g', { stage: '' })).rejects.toMatchObject({ data: { field: 'stage' } });
      await expect(open('g', { stage: 'x'.repeat(65) })).rejects.toMatchObject({ data: { limitBytes: 64 } });
      await expect(open('d', { stage: 't' })).rejects.toMatchObject({ reason: 'isDirectory' });
      await expect(open('none/f', { stage: 't' })).rejects.toMatchObject({ reason: 'fileNotFound' });
      scratch.link('l', 'd');
      await expect(open('l/f', { stage: 't', followSymlinks: false })).rejects.toMatchObject({
        reason: 'notDirectory',
      });
      expect(session.stages.size).toBe(1);
    });

    it('are bounded in number', async () => {
      await Promise.all(
        Array.from({ length: limits.STAGES_PER_SESSION }, (_, index) => open(`f${index}`, { stage: `s${index}` })),
      );
      await expect(open('more', { stage: 'more' })).rejects.toMatchObject({
        reason: 'tooManyHandles',
        data: { limit: limits.STAGES_PER_SESSION },
      });
    });

    it('end with the session, those in a handle and those being opened too', async () => {
      const open1 = await held('f', { stage: 's' });
      await write(open1, 'x');
      await (await held('g', { stage: 't' })).drop();
      const opening = open('h', { stage: 'u' });
      await Promise.all([session.end(), expect(opening).rejects.toMatchObject({ reason: 'sessionEnded' })]);
      expect([scratch.names(), temps.size]).toEqual([[], 0]);
      await expect(write(open1, 'y')).rejects.toMatchObject({ reason: 'sessionEnded' });
      await expect(open1.close({ commit: true })).rejects.toMatchObject({ reason: 'sessionEnded' });
      await open1.drop();
      await expect(open('f', { stage: 's' })).rejects.toMatchObject({ reason: 'sessionEnded' });
      expect(scratch.names()).toEqual([]);
    });

    it.runIf(isRoot)('lies elsewhere where its folder takes no file, and is then copied in place', () => {
      const files = new URL('../../dist/files/', import.meta.url).href;
      const elsewhere = new Scratch();
      chmodSync(elsewhere.root, 0o777);
      chmodSync(scratch.file('f', 'old content'), 0o666);
      chmodSync(scratch.root, 0o755);
      const said = asNobody(`
        import { Stages } from '${files}stages.js';
        import { TempFiles } from '${files}tempFiles.js';
        import { readdirSync } from 'node:fs';
        process.env.TMPDIR = '${elsewhere.root}';
        const temps = new TempFiles({ life: 'nobody', list() {}, unlist() {} });
        const request = {
          id: 's', path: '${scratch.path('f')}', followSymlinks: true, options: {}, holder: { ended: false },
          turn: (action) => action(), temps,
        };
        const { stage } = await new Stages().open(request);
        const before = readdirSync('${elsewhere.root}').length;
        await stage.temp.file.write('new');
        const { inPlace } = await stage.commit(false);
        const refused = await new Stages().open({ ...request, path: '${scratch.path('none')}' }).catch((error) => error.reason);
        console.log(before, inPlace, readdirSync('${elsewhere.root}').length, refused);`);
      expect(said).toBe('1 directoryNotWritable 0 permissionDenied');
      expect(readFileSync(scratch.path('f'), 'utf8')).toBe('new');
      elsewhere.remove();
    });
  });
});
