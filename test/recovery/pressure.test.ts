/** Readers that are slow, stalled or absent: they hold back their own process and nothing else, and memory stays flat. */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Client, ProcessEvent, ProcessHandle } from '@exec-server/client';
import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { floodArgv, floodBytes, floodDigest } from '../support/flood.js';
import { join, links } from '../support/links.js';
import { Peaks } from '../support/peaks.js';
import { scaled } from '../support/scale.js';
import { takeFlood } from '../support/takeFlood.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
/** More than one read of a child's stream, and more than one chunk as it is sent. */
const ONE_CHUNK_BYTES = 128 * 1024;
/** Pushed output, and the answer to one read of a reader that fell behind what its client keeps, in base64. */
const WAY_OUT_BYTES = limits.OUTBOX_HIGH_WATER_BYTES + ONE_CHUNK_BYTES + 2 * limits.CATCH_UP_READ_BYTES;

/** What attached processes may keep: nothing of them goes to the disk, and the way out holds little. */
function expectBounded(peaks: Peaks, processes: number): void {
  const { retainedBytes, spooledBytes, queuedBytes, tailBytes, reorderBytes, backlogBytes } = peaks.stop();
  expect(retainedBytes).toBeLessThanOrEqual(processes * limits.RETAINED_BYTES_PER_PROCESS);
  expect(spooledBytes).toBe(0);
  expect(queuedBytes).toBeLessThanOrEqual(processes * WAY_OUT_BYTES);
  expect(tailBytes).toBeLessThanOrEqual(processes * limits.CLIENT_TAIL_BYTES);
  expect(reorderBytes).toBeLessThanOrEqual(processes * limits.REORDER_BYTES);
  expect(backlogBytes).toBeLessThanOrEqual(processes * (limits.CATCH_UP_READ_BYTES + ONE_CHUNK_BYTES));
}

/** Output bytes a process has written so far, those nobody took included. */
async function writtenBytes(client: Client, { processId }: ProcessHandle): Promise<number> {
  const { processes } = await client.list();
  return processes.find((process) => process.processId === processId)?.outputBytes ?? 0;
}

/** A process that answers each line with a tick, so that no time is involved. */
class Ticker {
  readonly #handle: ProcessHandle;
  readonly #events: AsyncIterator<ProcessEvent>;
  #ticks = 0;

  private constructor(handle: ProcessHandle) {
    this.#handle = handle;
    this.#events = handle[Symbol.asyncIterator]();
  }

  static async start(client: Client): Promise<Ticker> {
    const script = 'while read -r line; do echo "tick $line"; done';
    return new Ticker(await client.start({ argv: ['sh', '-c', script], stdin: 'pipe' }));
  }

  async tick(): Promise<void> {
    this.#ticks += 1;
    await this.#handle.write(`${this.#ticks}\n`);
    const wanted = `tick ${this.#ticks}\n`;
    let seen = '';
    while (seen !== wanted) {
      const { value, done } = await this.#events.next();
      if (done === true || value.type !== 'output') throw new Error(`the ticker ended at tick ${this.#ticks}`);
      seen += Buffer.from(value.bytes).toString();
      if (!wanted.startsWith(seen)) throw new Error(`${JSON.stringify(seen)} came in place of tick ${this.#ticks}`);
    }
  }

  async end(): Promise<void> {
    await this.#handle.end();
    await this.#handle.closed();
  }
}

describe.each(links)('over %s, a reader that has stalled', (link) => {
  it('holds back its own process alone: a ticker beside it loses no tick, and memory stays flat', async () => {
    const joined = await join(link);
    const { client, server } = joined;
    const peaks = new Peaks(joined);
    const yes = await client.start({ argv: ['yes'] });
    const events = yes[Symbol.asyncIterator]();
    const first = await events.next();
    const ticker = await Ticker.start(client);
    for (let tick = 0; tick < scaled(200, 2_000); tick += 1) await ticker.tick();
    const written = await writtenBytes(client, yes);
    expect(written).toBeLessThanOrEqual(limits.PAUSE_PROCESS_BYTES + 2 * ONE_CHUNK_BYTES);
    if (server !== undefined) {
      await until(() => server.gauges().heldBackProcesses === 1, 'the writer to be held back');
      await ticker.tick();
      expect(await writtenBytes(client, yes)).toBe(await writtenBytes(client, yes));
    }
    // It goes on where it was, and nothing is missing.
    let bytes = first.value?.type === 'output' ? first.value.bytes.length : 0;
    let seq = 1;
    while (bytes < 2 * written) {
      const { value } = await events.next();
      if (value?.type !== 'output') throw new Error(`event ${seq + 1} is ${value?.type}`);
      seq += 1;
      expect(value.seq).toBe(seq);
      const text = Buffer.from(value.bytes).toString('latin1');
      if (text !== (bytes % 2 === 0 ? 'y\n' : '\ny').repeat(Math.ceil(text.length / 2)).slice(0, text.length)) {
        throw new Error(`event ${seq} is not what was written`);
      }
      bytes += value.bytes.length;
    }
    await ticker.tick();
    await ticker.end();
    await events.return?.();
    await yes.terminate();
    await yes.closed();
    expectBounded(peaks, 2);
    await joined.expectClean();
  });
});

describe.each(links)('over %s, a process that writes a lot to both streams', (link) => {
  const lines = scaled(16, 64) * (MIB / 16);
  const bytes = floodBytes(lines);
  const argv = ['sh', '-c', `"$@" & head -c ${bytes} /dev/zero >&2; wait`, 'sh', ...floodArgv(lines)];

  it('ends when nobody reads', async () => {
    const joined = await join(link);
    const peaks = new Peaks(joined);
    const handle = await joined.client.start({ argv });
    expect(await handle.wait()).toMatchObject({ exitCode: 0 });
    expect(await handle.closed()).toMatchObject({ reason: 'ended' });
    expect(await writtenBytes(joined.client, handle)).toBe(2 * bytes);
    expectBounded(peaks, 1);
    await joined.expectClean();
  });

  it('gives all of stdout to a reader that leaves stderr alone', async () => {
    const joined = await join(link);
    const peaks = new Peaks(joined);
    const handle = await joined.client.start({ argv });
    const hash = createHash('sha256');
    let received = 0;
    for await (const piece of handle.stdout) {
      hash.update(piece);
      received += piece.length;
    }
    expect(received).toBe(bytes);
    expect(hash.digest('hex')).toBe(floodDigest(lines));
    expect(handle.gaps).toEqual([]);
    expect(await handle.wait()).toMatchObject({ exitCode: 0 });
    expectBounded(peaks, 1);
    await joined.expectClean();
  });
});

describe.each(links)('over %s, a flood for a reader that takes its time', (link) => {
  const lines = scaled(32, 128) * (MIB / 16);
  const bytes = floodBytes(lines);

  it('arrives whole, never far ahead of the reader, while other calls pass it', async () => {
    const joined = await join(link);
    const { client } = joined;
    const peaks = new Peaks(joined);
    const handle = await client.start({ argv: floodArgv(lines) });
    let events = 0;
    let ahead = 0;
    let callsInAStall = 0;
    const taken = await takeFlood(handle, async ({ view }, event) => {
      events += 1;
      if (event.type === 'output') createHash('sha512').update(event.bytes).digest();
      await nextTurn();
      peaks.sample();
      if (events % 32 === 0) ahead = Math.max(ahead, (await writtenBytes(client, handle)) - view.offset);
      if (view.offset < bytes / 2 || callsInAStall > 0) return;
      // Nothing is taken from here on: the process writes until it is held back, and these calls are answered all the same.
      const least = limits.RESUME_PROCESS_BYTES - limits.ACK_EVERY_BYTES;
      const isAhead = async (): Promise<boolean> => (await writtenBytes(client, handle)) - view.offset >= least;
      await until(isAhead, 'the process to write ahead');
      const calls = Array.from({ length: 100 }, () => client.call('environment/status', {}));
      callsInAStall = (await Promise.all(calls)).filter(({ status }) => status === 'ready').length;
      ahead = Math.max(ahead, (await writtenBytes(client, handle)) - view.offset);
    });
    expect(taken.order).toEqual(['exited', 'closed']);
    expect(taken.view).toMatchObject({ received: bytes, digest: floodDigest(lines) });
    expect(callsInAStall).toBe(100);
    expect(ahead).toBeLessThanOrEqual(limits.PAUSE_PROCESS_BYTES + limits.ACK_EVERY_BYTES + ONE_CHUNK_BYTES);
    expectBounded(peaks, 1);
    await joined.expectClean();
  });
});
