/** A client program is killed in the middle of its work, and another one goes on where it was. */
import { spawn } from 'node:child_process';
import { createHash, type Hash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { connect, type ProcessHandle } from '@exec-server/client';
import { createExecServer, type ExecServer } from '@exec-server/server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/until.js';

const firstProgram = fileURLToPath(new URL('../support/programs/firstProgram.mjs', import.meta.url));
const STDIN_BYTES = 20 * 1024 * 1024;
const FLOOD_LINES = 1_000_000;

let folder: string;
let server: ExecServer;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'second-program-'));
  server = createExecServer();
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

interface Stored {
  readonly cursors: Record<string, number>;
  readonly hashes: Record<string, Hash>;
}

/** What the first program had stored when it was killed; the last line may be cut. */
function stored(file: string): Stored {
  const cursors: Record<string, number> = {};
  const hashes: Record<string, Hash> = {};
  const text = readFileSync(file, 'utf8');
  for (const line of text.slice(0, text.lastIndexOf('\n')).split('\n')) {
    const { processId, seq, bytes } = JSON.parse(line) as { processId: string; seq: number; bytes: string };
    expect(seq).toBe((cursors[processId] ?? 0) + 1);
    cursors[processId] = seq;
    hashes[processId] ??= createHash('sha256');
    hashes[processId].update(Buffer.from(bytes, 'base64'));
  }
  return { cursors, hashes };
}

/** Reads to the end behind what was stored; every event once and in order. */
async function finish(handle: ProcessHandle | undefined, afterSeq: number, hash: Hash): Promise<string> {
  let last = afterSeq;
  const ends: string[] = [];
  for await (const event of handle ?? []) {
    expect(event).toMatchObject({ seq: last + 1 });
    last += 1;
    if (event.type === 'output') hash.update(event.bytes);
    else ends.push(event.type);
  }
  expect(ends).toEqual(['exited', 'closed']);
  return hash.digest('hex');
}

/** Runs the first program until it is in the middle of its work, kills it, and waits for the server to notice. */
async function killInTheMiddle(url: string): Promise<{ sessionId: string; epoch: string; events: string }> {
  const [session, events] = [join(folder, 'session'), join(folder, 'events')];
  const program = spawn(process.execPath, [firstProgram, url, session, events], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface(program.stdout)) if (line === 'busy') break;
  const ended = once(program, 'exit');
  program.kill('SIGKILL');
  expect(await ended).toEqual([null, 'SIGKILL']);
  await until(() => server.gauges().attachedSessions === 0, 'the server to notice');
  return { ...(JSON.parse(readFileSync(session, 'utf8')) as { sessionId: string; epoch: string }), events };
}

function expectedStdin(): Buffer {
  return Buffer.alloc(STDIN_BYTES, 'every byte once ');
}

function floodHash(): string {
  const hash = createHash('sha256');
  for (let line = 0; line < FLOOD_LINES; line += 1) hash.update(`${String(line).padStart(15, '0')}\n`);
  return hash.digest('hex');
}

describe('a client program that was killed in the middle of its work', () => {
  it('is followed by another one that finishes every process: nothing is lost, doubled or written twice', async () => {
    const { url } = await server.listen();
    const { sessionId, epoch, events } = await killInTheMiddle(url);
    const { cursors, hashes } = stored(events);
    expect(cursors['flood']).toBeGreaterThan(0);

    const second = await connect({ url, resumeSessionId: sessionId, epoch });
    const all = await second.attachAll({ after: cursors });
    expect([...all.keys()].sort()).toEqual(['ended', 'flood', 'reader']);
    const digest = (id: string): Promise<string> =>
      finish(all.get(id), cursors[id] ?? 0, hashes[id] ?? createHash('sha256'));
    const [ended, flood, reader] = [digest('ended'), digest('flood'), all.get('reader')];
    if (reader === undefined) throw new Error('no reader');

    const offset = await reader.stdinOffset();
    expect(offset).toBeGreaterThan(0);
    // Begun one byte early on purpose: what was accepted already is dropped.
    await reader.end(expectedStdin().subarray(offset - 1), { offset: offset - 1 });
    let text = '';
    for await (const piece of reader.text()) text += piece;

    expect(text.split(' ')[0]).toBe(createHash('sha256').update(expectedStdin()).digest('hex'));
    expect(await flood).toBe(floodHash());
    expect(await ended).toBe(createHash('sha256').update('first\nlast\n').digest('hex'));
    expect(await all.get('ended')?.wait()).toMatchObject({ exitCode: 7 });
    expect(await reader.wait()).toMatchObject({ exitCode: 0 });
    await second.close();
    expect(server.gauges()).toMatchObject({ sessions: 0, processes: 0 });
  });

  it('is followed by another one that is told when the server was restarted in between', async () => {
    const { url } = await server.listen();
    const port = Number(new URL(url).port);
    const { sessionId, epoch } = await killInTheMiddle(url);
    await server.close();
    server = createExecServer();
    await server.listen({ port });
    await expect(connect({ url, resumeSessionId: sessionId, epoch })).rejects.toMatchObject({
      code: 'SERVER_GONE',
      message: expect.stringContaining('was restarted') as unknown,
      data: { reason: 'otherEpoch', retryable: false },
    });
  });
});

describe('a client that detaches in the middle of a flood', () => {
  it('leaves every process to another one, which goes on at the cursor with nothing missing', async () => {
    const { url } = await server.listen();
    const first = await connect({ url });
    const argv = ['seq', '-f', '%015.0f', '0', String(FLOOD_LINES - 1)];
    const flood = await first.start({ processId: 'flood', argv });
    await first.start({ processId: 'quiet', argv: ['sh', '-c', 'read line; echo "$line"'], stdin: 'pipe' });
    const hash = createHash('sha256');
    for await (const event of flood) {
      if (event.type === 'output') hash.update(event.bytes);
      if (flood.cursor === 30) break;
    }
    const { sessionId } = first;
    await first.detach();
    await until(() => server.gauges().runningProcesses === 1, 'the flood to end while nobody is attached');
    const second = await connect({ url, resumeSessionId: sessionId });
    const all = await second.attachAll({ after: { flood: flood.cursor } });
    const digest = finish(all.get('flood'), flood.cursor, hash);
    await all.get('quiet')?.end('still here\n');
    expect(await all.get('quiet')?.wait()).toMatchObject({ exitCode: 0 });
    expect(await digest).toBe(floodHash());
    await second.close();
  });
});

describe('a process that was read to its close in the first program', () => {
  it('has ended in the second one, also when the server has let go of it', async () => {
    const { url } = await server.listen();
    const first = await connect({ url });
    const handle = await first.start({ processId: 'done', argv: ['sh', '-c', 'echo out; exit 5'] });
    for await (const event of handle) expect(event.type).not.toBe('gap');
    await handle.release();
    const { sessionId } = first;
    await first.detach();
    const second = await connect({ url, resumeSessionId: sessionId });
    const done = (await second.attachAll({ after: { done: handle.cursor } })).get('done');
    const events: unknown[] = [];
    for await (const event of done ?? []) events.push(event);
    expect(events).toEqual([]);
    expect(await done?.wait()).toMatchObject({ exitCode: 5 });
    await done?.closed();
    await second.close();
  });
});

describe('a second program that attaches to one process more than once', () => {
  it('gets all that is kept from each cursor, also from one before the first it began at', async () => {
    const { url } = await server.listen();
    const first = await connect({ url });
    const handle = await first.start({ processId: 'p', argv: ['sh', '-c', 'echo 1; read _; echo 2'], stdin: 'pipe' });
    for await (const { type } of handle) if (type === 'output') break;
    const { sessionId } = first;
    await first.detach();
    const second = await connect({ url, resumeSessionId: sessionId });
    const late = await second.attach('p', { afterSeq: handle.cursor });
    const all = (await second.attachAll()).get('p');
    const texts = [all, late].map(async (one) => {
      let text = '';
      for await (const piece of one?.text() ?? []) text += piece;
      return text;
    });
    await expect(second.attach('p', { afterSeq: 1_000 })).rejects.toMatchObject({ code: 'OUTPUT_LOST' });
    await late.end('\n');
    expect(await Promise.all(texts)).toEqual(['1\n2\n', '2\n']);
    await second.close();
  });
});
