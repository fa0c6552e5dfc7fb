/** Field cases D04 and D11: a flood of output over a connection that is cut again and again. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type ProcessHandle } from '@exec-server/client';
import { limits } from '@exec-server/protocol';
import { createExecServer } from '@exec-server/server';
import { type SeededRandom, startFaultProxy } from '@exec-server/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { floodArgv, floodBytes } from '../support/flood.js';
import { ManualClock } from '../support/manualClock.js';
import { Peaks } from '../support/peaks.js';
import { joinByProxy, type Proxied } from '../support/proxied.js';
import { runClock } from '../support/runClock.js';
import { full, scaled } from '../support/scale.js';
import { seeded } from '../support/seeded.js';
import { type FloodTaken, takeFlood } from '../support/takeFlood.js';
import { until } from '../support/until.js';

const LINES = scaled(1_048_576, 6_553_600);
const BYTES = floodBytes(LINES);
const DIGEST = full
  ? '78cda6b10af25b76bdbeb0cf88c38da648609108e08311acda669373f1be1046'
  : '28a2da38210c99ca800ffa7ebb2ccce89c7997ae80037b5a92635578f2c0e6fe';
const CUTS = scaled(10, 50);
/** The smallest window a server takes. */
const WINDOW_BYTES = limits.PAUSE_PROCESS_BYTES + 256 * 1024;

/** The flood is written in parts, and each leaves a mark when it is out. */
const PARTS = scaled(8, 50);
const PART_BYTES = BYTES / PARTS;
/** Written behind what the reader has, so many parts do not fit the window. */
const PARTS_PAST_WINDOW = 3;

let marks: string;
beforeEach(async () => {
  marks = await mkdtemp(join(tmpdir(), 'flood-'));
});
afterEach(async () => {
  await rm(marks, { recursive: true, force: true });
});

/** Ends when it is told to, so that its exit comes behind its last chunk. */
function markedFlood(): string[] {
  const part = LINES / PARTS;
  const script = `first=0
    for part in $(seq ${PARTS}); do
      seq -f %015.0f $first $((first + ${part} - 1))
      : > "$0/$part"
      first=$((first + ${part}))
    done
    read end`;
  return ['sh', '-c', script, marks];
}

/** Cuts the connection at random bytes of what one reader gets: at once or a bit later, by reset or in order, some for longer. */
class Cutter {
  readonly #joined: Proxied;
  readonly #random: SeededRandom;
  readonly #policy: 'spool' | 'pause' | 'drop';
  readonly #lasting: Promise<void>[] = [];
  #begun = 0;
  #next: number;
  /** Losses the client has noticed. */
  #noticed = 0;

  constructor(joined: Proxied, random: SeededRandom, policy: 'spool' | 'pause' | 'drop') {
    this.#joined = joined;
    this.#random = random.fork('cuts');
    this.#policy = policy;
    this.#next = this.#nextAfter(0);
    joined.client.onState((state) => {
      if (state === 'recovering') this.#noticed += 1;
    });
  }

  /** To be called after each event. */
  async at(offset: number): Promise<void> {
    while (this.#begun < CUTS && offset >= this.#next && this.#joined.proxy.counters.cuts === this.#begun) {
      const isBack = (): boolean => this.#joined.client.state === 'ready' && this.#noticed === this.#begun;
      await until(isBack, `the connection to be back after cut ${this.#begun}`);
      this.#begun += 1;
      this.#cut(offset);
      this.#next = this.#nextAfter(offset);
    }
  }

  /** Every cut has taken place and is over. */
  async done(): Promise<void> {
    await Promise.all(this.#lasting);
    expect(this.#joined.proxy.counters.cuts).toBe(CUTS);
  }

  #cut(offset: number): void {
    const { proxy } = this.#joined;
    // The second one lasts, so that one always does; the others by chance.
    if (this.#begun === 2 || this.#random.integer(5) === 0) this.#refuse(offset);
    const isNearEnd = BYTES - offset < 3 * 1024 * 1024;
    if (!isNearEnd && this.#random.integer(2) === 0) proxy.cutAfterBytes('down', 1 + this.#random.integer(200_000));
    else proxy.cut({ hard: this.#random.integer(2) === 0 });
  }

  #refuse(offset: number): void {
    const { proxy, server } = this.#joined;
    const cutsBefore = proxy.counters.cuts;
    const part = Math.min(PARTS, Math.ceil(offset / PART_BYTES) + PARTS_PAST_WINDOW);
    const isWritten = (mark: number): boolean => existsSync(join(marks, String(mark)));
    proxy.refuse(true);
    const lasted = async (): Promise<void> => {
      await until(() => proxy.counters.cuts > cutsBefore, 'the cut');
      await until(() => server.gauges().attachedSessions === 0, 'the server to notice the cut');
      if (this.#policy === 'pause') {
        await until(() => server.gauges().heldBackProcesses === 1 || isWritten(PARTS), 'the flood to be held back');
      } else {
        await until(() => isWritten(part), `part ${part} to be written while nobody is attached`);
      }
      proxy.refuse(false);
    };
    const lasting = lasted();
    // Looked at by `done`, unless the test fails before.
    lasting.catch(() => undefined);
    this.#lasting.push(lasting);
  }

  #nextAfter(offset: number): number {
    const left = CUTS - this.#begun;
    return offset + Math.floor((this.#random.next() * 2 * (BYTES - offset)) / (left + 1));
  }
}

/** Takes a flood over all cuts, and one more between its last chunk and its exit. */
async function takeCut(
  random: SeededRandom,
  detached: 'spool' | 'pause' | 'drop',
): Promise<{ readonly taken: FloodTaken; readonly joined: Proxied; readonly spooledBytes: number }> {
  const joined = await joinByProxy({
    server: { retainedBytesPerProcess: WINDOW_BYTES },
    proxy: { seed: random.seed },
  });
  const handle = await joined.client.start({ argv: markedFlood(), stdin: 'pipe', detached });
  const peaks = new Peaks(joined);
  const cutter = new Cutter(joined, random, detached);
  let ending: Promise<void> | undefined;
  const taken = await takeFlood(handle, async ({ view }) => {
    await cutter.at(view.offset);
    if (view.offset < BYTES || ending !== undefined) return;
    await cutter.done();
    joined.proxy.addRule({
      when: { direction: 'down', beforeMessage: (text) => text.includes('"process/exited"') },
      do: 'cut',
    });
    ending = handle.end('\n');
  });
  await ending;
  const { retainedBytes, spooledBytes, tailBytes, reorderBytes } = peaks.stop();
  expect(retainedBytes).toBeLessThanOrEqual(WINDOW_BYTES);
  expect(tailBytes).toBeLessThanOrEqual(limits.CLIENT_TAIL_BYTES);
  expect(reorderBytes).toBeLessThanOrEqual(limits.REORDER_BYTES);
  expect(joined.proxy.counters.cuts).toBe(CUTS + 1);
  expect(await handle.wait()).toMatchObject({ exitCode: 0 });
  return { taken, joined, spooledBytes };
}

describe(`a flood of ${BYTES} bytes over ${CUTS} cuts, some lasting, and one before its exit`, () => {
  it.each(['spool', 'pause'] as const)('arrives whole, each event once and in order, under %s', (detached) =>
    seeded(async (random) => {
      const { taken, joined, spooledBytes } = await takeCut(random, detached);
      expect(taken.order).toEqual(['exited', 'closed']);
      expect(taken.view).toMatchObject({ received: BYTES, lost: 0, digest: DIGEST });
      expect(spooledBytes > 0).toBe(detached === 'spool');
      await joined.expectClean();
    })(),
  );

  it(
    'is told byte by byte under drop: what arrives is right for its offset, and what does not is a gap',
    seeded(async (random) => {
      const { taken, joined, spooledBytes } = await takeCut(random, 'drop');
      expect(taken.order.filter((type) => type !== 'gap')).toEqual(['exited', 'closed']);
      expect(taken.view.gaps).toBeGreaterThan(0);
      expect(taken.view.received).toBeLessThan(BYTES);
      expect(taken.view.received + taken.view.lost).toBe(BYTES);
      expect(spooledBytes).toBe(0);
      await joined.expectClean();
    }),
  );
});

describe('a flood under pause whose reader has stalled', () => {
  it('is held back where it was, however often the connection is cut', async () => {
    const joined = await joinByProxy();
    const { client, server, proxy } = joined;
    const handle = await client.start({ argv: floodArgv(LINES), detached: 'pause' });
    const peaks = new Peaks(joined);
    let losses = 0;
    client.onState((state) => {
      if (state === 'recovering') losses += 1;
    });
    let stalled = false;
    const taken = await takeFlood(handle, async () => {
      if (stalled) return;
      stalled = true;
      for (let cut = 1; cut <= scaled(8, 50); cut += 1) {
        await until(() => server.gauges().heldBackProcesses === 1, 'the flood to be held back');
        proxy.cut();
        await until(() => losses === cut && client.state === 'ready', `the connection to be back after cut ${cut}`);
        const { processes } = await client.list();
        // Nothing of it was acknowledged, so no more than this may be written.
        expect(processes[0]?.outputBytes, `after cut ${cut}`).toBeLessThanOrEqual(WINDOW_BYTES);
      }
    });
    expect(taken.order).toEqual(['exited', 'closed']);
    expect(taken.view).toMatchObject({ received: BYTES, lost: 0, digest: DIGEST });
    expect(peaks.stop().spooledBytes).toBe(0);
    await joined.expectClean();
  });
});

/** Takes until `bytes` were there, then lets `then` act; resolves with how it ended. */
async function takeUntil(handle: ProcessHandle, bytes: number, then: () => Promise<void>): Promise<unknown> {
  let acting: Promise<void> | undefined;
  let lastSeq = 0;
  const failure: unknown = await takeFlood(handle, (so) => {
    lastSeq = so.lastSeq;
    if (so.view.offset >= bytes) acting ??= then();
  }).catch((error: unknown) => error);
  await acting;
  expect(failure).toMatchObject({ data: { cursor: lastSeq } });
  return failure;
}

describe('a flood whose session cannot be taken up again', () => {
  it('ends with SESSION_EXPIRED when the cut outlasts the lease', async () => {
    const clock = new ManualClock();
    const joined = await joinByProxy({ server: { clock } });
    const handle = await joined.client.start({ argv: floodArgv(LINES) });
    const failure = await takeUntil(handle, BYTES / 8, async () => {
      joined.proxy.refuse(true);
      joined.proxy.cut();
      await until(() => joined.server.gauges().attachedSessions === 0, 'the server to notice the cut');
      clock.advance(limits.SESSION_LEASE_MS - 1);
      expect(joined.server.gauges().sessions).toBe(1);
      clock.advance(1);
      expect(joined.server.gauges().sessions).toBe(0);
      joined.proxy.refuse(false);
    });
    expect(failure).toMatchObject({ code: 'SESSION_EXPIRED' });
    await expect(handle.wait()).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
    const stopClock = runClock(clock);
    await joined.expectClean();
    stopClock();
  });

  it('ends with a word about the session, not about an unknown process, when the server was restarted', async () => {
    const first = createExecServer();
    const proxy = await startFaultProxy({ target: (await first.listen()).url });
    const client = await connect({ url: proxy.url });
    const second = createExecServer();
    const handle = await client.start({ argv: floodArgv(LINES) });
    const failure = await takeUntil(handle, BYTES / 8, async () => {
      proxy.setTarget((await second.listen()).url);
      proxy.cut();
    });
    expect(failure).toMatchObject({ code: expect.stringMatching(/^(SESSION_EXPIRED|SERVER_GONE)$/) });
    expect(failure).not.toMatchObject({ message: expect.stringContaining('unknown process') });
    await client.close();
    await proxy.close();
    await first.close();
    await second.close();
  });
});
