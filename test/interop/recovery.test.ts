/** Our client on the reference through cuts: it resumes by what the base protocol has, and says what that cannot give. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import type { ProcessEvent, ProcessHandle } from '@exec-server/client';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { until } from '../support/until.js';
import { joinReference, type JoinedReference } from './rig/joinReference.js';

const MIB = 1024 * 1024;
const sh = (script: string): [string, ...string[]] => ['/bin/sh', '-c', script];

async function collect(handle: ProcessHandle): Promise<ProcessEvent[]> {
  const events: ProcessEvent[] = [];
  for await (const event of handle) events.push(event);
  return events;
}

const textOf = (events: readonly ProcessEvent[]): string =>
  Buffer.concat(events.flatMap((event) => (event.type === 'output' ? [event.bytes] : []))).toString();

describe.skipIf(inject('referenceBinary') === null)('our client on the reference, when its connection is cut', () => {
  let joined: JoinedReference;
  let folder: string;
  const at = (name: string): string => joinPath(folder, name);
  beforeEach(async () => {
    folder = await mkdtemp(joinPath(tmpdir(), 'exec-server-recovery-'));
    joined = await joinReference();
  });
  afterEach(async () => {
    await joined.expectClean();
    await rm(folder, { recursive: true, force: true });
  });

  it('resumes its session and misses nothing', async () => {
    const { client, proxy, recorder } = joined;
    const { sessionId } = client;
    const argv = sh('echo before; until [ -e go ]; do sleep 0.02; done; seq 1 20000; exit 5');
    const handle = await client.start({ argv, cwd: folder });
    const events = collect(handle);
    await until(() => handle.cursor > 0, 'the first line');
    proxy.cut();
    await writeFile(at('go'), '');
    const expected = `before\n${Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join('')}`;
    expect(textOf(await events)).toBe(expected);
    expect((await handle.wait()).exitCode).toBe(5);
    expect(recorder.requests('initialize').at(-1)?.params?.['resumeSessionId']).toBe(sessionId);
  });

  it('tells what the server let go of meanwhile as a gap, and goes on', async () => {
    const { client, proxy } = joined;
    const argv = sh(`until [ -e go ]; do sleep 0.02; done; head -c ${4 * MIB} /dev/zero; touch done`);
    const handle = await client.start({ argv, cwd: folder });
    const events = collect(handle);
    proxy.refuse(true);
    proxy.cut();
    await writeFile(at('go'), '');
    await until(() => readFile(at('done')).then(Boolean, () => false), 'the output to be written');
    proxy.refuse(false);
    const seen = await events;
    const gaps = seen.filter((event) => event.type === 'gap');
    expect(gaps.length).toBeGreaterThan(0);
    // Every number is there once, as an event or in a gap.
    let next = 1;
    for (const event of seen) {
      expect(event.type === 'gap' ? event.fromSeq : event.seq).toBe(next);
      next = (event.type === 'gap' ? event.throughSeq : event.seq) + 1;
    }
    expect(seen.at(-1)?.type).toBe('closed');
  });

  it('writes each byte of stdin once', async () => {
    const { client, proxy } = joined;
    const handle = await client.start({ argv: sh('cat > taken'), cwd: folder, stdin: 'pipe' });
    const lines = Array.from({ length: 200 }, (_, index) => `line ${index}\n`);
    for (const [index, line] of lines.entries()) {
      // Some of the cuts swallow a write, some the answer to it.
      if (index % 20 === 7) proxy.cutAfterBytes('up', 60);
      if (index % 20 === 17) proxy.cutAfterBytes('down', 20);
      await handle.write(line);
    }
    expect(proxy.counters.cuts).toBeGreaterThan(10);
    await until(async () => (await readFile(at('taken'))).length === lines.join('').length, 'all of it to be written');
    expect(await readFile(at('taken'), 'utf8')).toBe(lines.join(''));
  });

  it('starts a process once though the answer is lost', async () => {
    const { client, proxy } = joined;
    for (let round = 0; round < 5; round += 1) {
      proxy.cutAfterBytes('down', 10);
      const handle = await client.start({ argv: sh('echo ran >> ran; echo said; exit 3'), cwd: folder });
      expect(textOf(await collect(handle))).toBe('said\n');
      expect((await handle.wait()).exitCode).toBe(3);
    }
    expect(await readFile(at('ran'), 'utf8')).toBe('ran\n'.repeat(5));
  });

  it('reads a file to its end, and does not write one twice', async () => {
    const { client, proxy } = joined;
    const content = Buffer.alloc(5 * MIB, 'abcdefg');
    await writeFile(at('file'), content);
    proxy.cutAfterBytes('down', 2 * MIB);
    const pieces: Uint8Array[] = [];
    for await (const piece of client.fs.readStream(at('file'))) pieces.push(piece);
    expect(content.equals(Buffer.concat(pieces))).toBe(true);
    expect(proxy.counters.cuts).toBe(1);
    proxy.cutAfterBytes('up', 100);
    await expect(client.fs.writeFile(at('written'), 'x'.repeat(1_000))).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    await client.fs.writeFile(at('written'), 'again');
    expect(await client.fs.readText(at('written'))).toBe('again');
  });
});
