/** Every file operation with its connection cut at each of its requests, before and after the server did it. */
import { describe, expect, it } from 'vitest';
import type { Client } from '../client.js';
import { foreignReply } from '../testSupport/connectFake.js';
import { CUTS_WITHOUT_PROGRESS } from './cuts.js';
import { type Cut, FakeFiles, numbered } from '../testSupport/fakeFiles.js';

const PATH = '/srv/a';
const URI = 'file:///srv/a';
const LARGE = numbered(1_500_000);

async function gather(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function fill(stream: WritableStream<string | Uint8Array>, bytes: Uint8Array, pieceBytes: number): Promise<void> {
  const writer = stream.getWriter();
  for (let at = 0; at < bytes.length; at += pieceBytes) await writer.write(bytes.subarray(at, at + pieceBytes));
  await writer.close();
}

const same = (one: Uint8Array | undefined, other: Uint8Array): boolean =>
  one !== undefined && Buffer.compare(one, other) === 0;

interface Case {
  readonly name: string;
  readonly run: (client: Client) => Promise<unknown>;
  readonly check: (files: FakeFiles, result: unknown) => void;
}

const read = (name: string, run: Case['run']): Case => ({
  name,
  run,
  check: (_files, result) => expect(result instanceof Uint8Array && same(result, LARGE)).toBe(true),
});
const wrote = (name: string, effect: string | undefined, run: Case['run'], expected = LARGE): Case => ({
  name,
  run,
  check: (files) => {
    expect(files.effects).toEqual(effect === undefined ? [] : [effect]);
    expect(same(files.files.get(URI)?.bytes, expected)).toBe(true);
  },
});
const once = (method: string, run: Case['run']): Case => ({
  name: method,
  run,
  check: (files) => expect(files.effects).toEqual([`${method} ${URI}`]),
});

const cases: readonly Case[] = [
  read('readFile', (client) => client.fs.readFile(PATH)),
  read('readStream', async (client) => await gather(client.fs.readStream(PATH))),
  wrote(
    'a small writeFile',
    `fs/writeFile ${URI}`,
    (client) => client.fs.writeFile(PATH, LARGE.subarray(0, 9)),
    LARGE.subarray(0, 9),
  ),
  wrote('a large writeFile', `commit ${URI}`, (client) => client.fs.writeFile(PATH, LARGE)),
  wrote('writeStream', `commit ${URI}`, (client) => fill(client.fs.writeStream(PATH), LARGE, 70_000)),
  wrote('writeStream in place', undefined, (client) =>
    fill(client.fs.writeStream(PATH, { inPlace: true, fsync: true }), LARGE, 400_000),
  ),
  once('fs/createDirectory', (client) => client.fs.mkdir(PATH)),
  once('fs/remove', (client) => client.fs.remove(PATH)),
  once('fs/copy', (client) => client.fs.copy(PATH, '/srv/b')),
  once('fs/move', (client) => client.fs.move(PATH, '/srv/b')),
];

async function runWith(cut: Cut | undefined, { run, check }: Case): Promise<number> {
  const files = new FakeFiles();
  files.put(URI, LARGE);
  const client = await files.connect();
  files.cut = cut;
  const result = await run(client);
  check(files, result);
  expect(files.handles.size).toBe(0);
  expect([...files.stages.values()].every(({ committed }) => committed)).toBe(true);
  expect(files.cuts).toBe(cut === undefined ? 0 : 1);
  await client.close();
  return files.requests.length;
}

describe.each(cases)('$name', (subject) => {
  it('comes to the same end wherever its connection is cut', async () => {
    const requests = await runWith(undefined, subject);
    expect(requests).toBeGreaterThan(0);
    for (let at = 1; at <= requests; at++) {
      for (const when of ['before', 'after'] as const) await runWith({ at, when }, subject);
    }
  });
});

describe('a transfer that cuts its own connection', () => {
  it.each([
    ['fs/open', (client: Client) => client.fs.writeFile(PATH, LARGE)],
    ['fs/writeBlock', (client: Client) => client.fs.writeFile(PATH, LARGE)],
    ['fs/close', (client: Client) => client.fs.writeFile(PATH, LARGE)],
    ['fs/open', (client: Client) => gather(client.fs.readStream(PATH))],
    ['fs/readBlock', (client: Client) => gather(client.fs.readStream(PATH))],
  ] as const)('gives up, as retryable, after some cuts by %s without progress', async (method, run) => {
    const files = new FakeFiles();
    files.put(URI, LARGE);
    const client = await files.connect();
    files.answers.set(method, () => {
      files.cutNow();
      return FakeFiles.silent;
    });
    await expect(run(client)).rejects.toMatchObject({ code: 'TRANSFER_LOST', data: { path: PATH, retryable: true } });
    // Dropping what is left of it may be cut once more.
    expect([CUTS_WITHOUT_PROGRESS, CUTS_WITHOUT_PROGRESS + 1]).toContain(files.cuts);
    await client.close();
  });
});

describe('append', () => {
  it('adds each piece once, wherever its connection is cut', async () => {
    for (let at = 0; at <= 2; at++) {
      const files = new FakeFiles();
      files.put(URI, 'old');
      const client = await files.connect();
      if (at > 0) files.cut = { at, when: 'after' };
      await client.fs.writeFile(PATH, LARGE, { append: true });
      expect(same(files.files.get(URI)?.bytes, Buffer.concat([Buffer.from('old'), LARGE]))).toBe(true);
      expect(files.effects).toHaveLength(2);
      await client.close();
    }
  });
});

describe('a file that is read while its connection is cut', () => {
  const cutAndReplace = async (): Promise<{ files: FakeFiles; client: Client }> => {
    const files = new FakeFiles();
    files.put(URI, LARGE);
    const client = await files.connect();
    files.answers.set('fs/readBlock', ({ offset }) => {
      if (offset !== 512 * 1024) return undefined;
      files.answers.delete('fs/readBlock');
      files.put(URI, numbered(1_600_000).toReversed());
      files.cut = { at: files.requests.length + 1, when: 'before' };
      return undefined;
    });
    return { files, client };
  };

  it('is FILE_CHANGED as a stream when another file has its path by then', async () => {
    const { client } = await cutAndReplace();
    await expect(gather(client.fs.readStream(PATH))).rejects.toMatchObject({
      code: 'FILE_CHANGED',
      data: { path: PATH, retryable: true },
    });
    await client.close();
  });

  it('is read from the start as a whole, since nothing was given out', async () => {
    const { files, client } = await cutAndReplace();
    const bytes = await client.fs.readFile(PATH);
    expect(same(files.files.get(URI)?.bytes, bytes)).toBe(true);
    await client.close();
  });
});

describe('on a foreign server', () => {
  it('a change whose answer is lost is OUTCOME_UNKNOWN, and not repeated', async () => {
    for (const when of ['before', 'after'] as const) {
      const files = new FakeFiles(foreignReply);
      const client = await files.connect();
      files.cut = { at: 1, when };
      await expect(client.fs.writeFile(PATH, 'new')).rejects.toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        data: { method: 'fs/writeFile', path: PATH },
      });
      expect(files.count('fs/writeFile')).toBe(1);
      await client.close();
    }
  });

  it('a stream into a file is OUTCOME_UNKNOWN after a cut', async () => {
    const files = new FakeFiles(foreignReply);
    const client = await files.connect();
    files.cut = { at: 3, when: 'after' };
    await expect(fill(client.fs.writeStream(PATH), LARGE, 300_000)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await client.close();
  });

  it('reading goes on while size and time are the same', async () => {
    for (let at = 1; at <= 6; at++) {
      const files = new FakeFiles(foreignReply);
      files.put(URI, LARGE);
      const client = await files.connect();
      files.cut = { at, when: 'after' };
      expect(same(await client.fs.readFile(PATH), LARGE)).toBe(true);
      expect(files.cuts).toBe(1);
      await client.close();
    }
  });
});
