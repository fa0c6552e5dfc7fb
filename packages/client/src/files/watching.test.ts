import { describe, expect, it } from 'vitest';
import type { Client } from '../client.js';
import { settle } from '../testSupport/connectFake.js';
import { FakeFiles } from '../testSupport/fakeFiles.js';
import { QUEUED_CHANGES } from './watching.js';

const change = (name: string, kind = 'created'): object => ({ kind, path: `file:///srv/${name}`, isDirectory: false });
const shown = (name: string, kind = 'created'): object => ({ kind, path: `/srv/${name}`, isDirectory: false });

async function serve(): Promise<{ files: FakeFiles; client: Client; tell: (params: object) => void }> {
  const files = new FakeFiles();
  const client = await files.connect();
  const tell = (params: object): void => {
    const [watchId] = files.watches;
    files.connection?.notify('fs/changed', { watchId, changes: [], ...params });
  };
  return { files, client, tell };
}

describe('a watch', () => {
  it('that is aborted before it begins sends nothing', async () => {
    const { files, client } = await serve();
    await expect(client.fs.watch('/srv', { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'ABORTED' });
    expect(files.sent('fs/watch')).toEqual([]);
    await client.close();
  });

  it('tells what has changed since the last batch, and is ended by leaving it', async () => {
    const { files, client, tell } = await serve();
    const watch = await client.fs.watch('/srv', { recursive: false });
    expect(files.sent('fs/watch')).toMatchObject([{ path: 'file:///srv', recursive: false }]);
    tell({ changes: [change('a')] });
    tell({ changes: [change('b', 'removed')] });
    await settle();
    for await (const batch of watch) {
      expect(batch).toEqual({ changes: [shown('a'), shown('b', 'removed')], overflow: false });
      break;
    }
    expect(files.watches.size).toBe(0);
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    tell({ watchId: watch.watchId, changes: [change('late')] });
    await settle();
    expect(client.state).toBe('ready');
    await client.close();
  });

  it('is put in place again after a cut, and says then that changes may be missing', async () => {
    const { files, client, tell } = await serve();
    const watch = await client.fs.watch('/srv');
    files.cutNow();
    expect((await watch.next()).value).toEqual({ changes: [], overflow: true });
    expect(files.count('fs/watch')).toBe(2);
    tell({ changes: [change('a')] });
    expect((await watch.next()).value).toEqual({ changes: [shown('a')], overflow: false });
    await watch.return();
    await client.close();
  });

  it('comes into place when its connection is cut before the answer', async () => {
    for (const when of ['before', 'after'] as const) {
      const { files, client } = await serve();
      files.cut = { at: 1, when };
      const watch = await client.fs.watch('/srv');
      expect(files.watches).toEqual(new Set([watch.watchId]));
      await client.close();
    }
  });

  it('rejects when what it watches is gone after a cut', async () => {
    const { files, client } = await serve();
    const watch = await client.fs.watch('/srv');
    files.answers.set('fs/watch', () => {
      throw files.refusal(-32004, 'No such file or directory (os error 2)', {
        reason: 'fileNotFound',
        errno: 'ENOENT',
      });
    });
    files.cutNow();
    await expect(watch.next()).rejects.toMatchObject({ code: 'ENOENT', data: { path: '/srv' } });
    await client.close();
  });

  it('ends with its last batch when the server ends it', async () => {
    const { client, tell } = await serve();
    const watch = await client.fs.watch('/srv');
    tell({ changes: [change('srv', 'removed')], ended: 'the folder was removed' });
    const last = { changes: [shown('srv', 'removed')], overflow: false, ended: 'the folder was removed' };
    expect((await watch.next()).value).toEqual(last);
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    await client.close();
  });

  it('keeps a bounded number of changes that nobody takes', async () => {
    const { client, tell } = await serve();
    const watch = await client.fs.watch('/srv');
    const changes = Array.from({ length: 1024 }, (_, index) => change(String(index)));
    for (let batch = 0; batch <= QUEUED_CHANGES / 1024; batch++) tell({ changes });
    await settle();
    const { value } = await watch.next();
    expect(value?.overflow).toBe(true);
    expect(value?.changes.length).toBeLessThanOrEqual(QUEUED_CHANGES);
    await client.close();
  });

  it('rejects when it is aborted, and when the client ends', async () => {
    const { files, client } = await serve();
    const abort = new AbortController();
    const aborted = await client.fs.watch('/srv', { signal: abort.signal });
    const waiting = aborted.next();
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'ABORTED' });
    await settle();
    expect(files.watches.size).toBe(0);
    const open = await client.fs.watch('/srv');
    const last = open.next();
    last.catch(() => undefined);
    await client.close();
    await expect(last).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('leaves nothing behind when it is aborted before it stands', async () => {
    const { files, client } = await serve();
    const abort = new AbortController();
    files.answers.set('fs/watch', ({ watchId }) => {
      files.watches.add(String(watchId));
      return FakeFiles.silent;
    });
    const watching = client.fs.watch('/srv', { signal: abort.signal });
    watching.catch(() => undefined);
    await settle();
    expect(files.watches.size).toBe(1);
    abort.abort();
    await expect(watching).rejects.toMatchObject({ code: 'ABORTED' });
    await settle();
    expect(files.watches.size).toBe(0);
    await client.close();
  });

  it('ends the connection of a server whose changes do not decode', async () => {
    const { client, tell } = await serve();
    await client.fs.watch('/srv');
    // It comes back at once.
    const states: string[] = [];
    client.onState((state) => states.push(state));
    tell({ changes: [{ kind: 'moved', path: 'file:///a', isDirectory: false }] });
    await settle();
    expect(states[0]).toBe('recovering');
    await client.close();
  });
});
