import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plain, rig, settled } from '../../../../test/support/spoolRig.js';
import type { LogRead, OutputEvent } from './eventLog.js';
import { type DetachedPolicy, History } from './history.js';
import { WindowBudget } from './windowBudget.js';

const LIMITS = { bytes: 100, chunks: 20 };
const EVERYTHING = { maxBytes: Number.POSITIVE_INFINITY, maxChunks: Number.POSITIVE_INFINITY };

function setup(detached: DetachedPolicy = 'spool', spoolBytes = Number.POSITIVE_INFINITY) {
  const spooling = rig(spoolBytes);
  let delivered = 0;
  let attached = false;
  const history = new History({
    logLimits: LIMITS,
    detached,
    openSpool: () => spooling.spool,
    deliveredSeq: () => delivered,
    attached: () => attached,
    changed: () => {},
  });
  const written: OutputEvent[] = [];
  return {
    history,
    spooling,
    written,
    write: (length: number) =>
      written.push(
        history.log.appendOutput(
          'stdout',
          Uint8Array.from({ length }, (_, at) => (written.length + at) % 256),
        ),
      ),
    attach: (value: boolean) => (attached = value),
    deliver: (seq: number) => {
      delivered = seq;
      history.delivered(seq);
    },
  };
}

/** Everything behind a cursor, as a reader gets it in as many replies as it takes. */
async function readAll(history: History, afterSeq: number): Promise<LogRead> {
  const chunks: OutputEvent[] = [];
  let throughSeq = afterSeq;
  let gap: LogRead['gap'];
  for (;;) {
    const read = await history.read(throughSeq, EVERYTHING);
    gap ??= read.gap;
    chunks.push(...read.chunks);
    throughSeq = read.throughSeq;
    if (!read.cut) return { chunks, throughSeq, cut: false, gap };
  }
}

describe('the history of a process', () => {
  it('gives back everything that was not delivered, whatever memory holds', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 60 }),
        fc.nat(30),
        fc.nat(60),
        async (lengths, deliveredAfter, exitAfter) => {
          const { history, written, write, deliver, spooling } = setup();
          for (const [index, length] of lengths.entries()) {
            write(length);
            if (index === exitAfter) history.log.appendExited({ exitCode: 0, signal: undefined, reason: 'exited' });
            if (index === deliveredAfter) deliver(Math.floor(deliveredAfter / 2));
            if (index % 7 === 0) await settled(spooling);
          }
          const cursor = lengths.length > deliveredAfter ? Math.floor(deliveredAfter / 2) : 0;
          const { chunks, throughSeq, gap } = await readAll(history, cursor);
          expect(gap).toBeUndefined();
          expect(plain(chunks)).toEqual(plain(written.filter(({ seq }) => seq > cursor)));
          expect(throughSeq).toBe(Math.max(cursor, history.log.nextSeq - 1));
          await history.close();
        },
      ),
      { numRuns: 60 },
    );
  });

  it('tells exactly what is gone when the spool is full, the oldest first', async () => {
    const { history, written, write } = setup('spool', 10 * (10 + 64));
    for (let index = 0; index < 50; index += 1) write(10);
    const { chunks, gap } = await readAll(history, 0);
    expect(gap).toEqual({ fromSeq: 1, throughSeq: 30, bytes: 300 });
    expect(plain(chunks)).toEqual(plain(written.slice(30)));
    await history.close();
  });

  it('keeps nothing on disk that was delivered, and nothing at all where output is dropped', async () => {
    const read = setup();
    for (let index = 0; index < 50; index += 1) {
      read.write(10);
      read.deliver(index + 1);
    }
    expect(read.history.spooledBytes).toBe(0);
    const dropping = setup('drop');
    for (let index = 0; index < 50; index += 1) dropping.write(10);
    expect(dropping.history.spooledBytes).toBe(0);
    expect(dropping.history.gapAfter(0)).toEqual({ fromSeq: 1, throughSeq: 40, bytes: 400 });
    await read.history.close();
  });

  it('says of each event whether it is at hand, on disk, or not there', async () => {
    const { history, write, deliver } = setup();
    for (let index = 0; index < 20; index += 1) write(10);
    expect(history.firstHeldSeq).toBe(1);
    expect(history.at(1)).toBe('spooled');
    expect(history.at(11)).toMatchObject({ seq: 11 });
    expect(history.at(21)).toBeUndefined();
    deliver(5);
    expect(history.firstHeldSeq).toBe(6);
    expect(history.at(5)).toBeUndefined();
    expect(history.bytesThrough(7)).toBe(70);
    await history.close();
  });

  it('tells what the disk does not give back as a gap, and goes on behind it', async () => {
    const { history, spooling, written, write } = setup();
    for (let index = 0; index < 20; index += 1) write(10);
    await settled(spooling);
    spooling.fs.fault = (kind) => (kind === 'read' ? 'EIO' : undefined);
    const { chunks, gap } = await readAll(history, 0);
    expect(gap).toMatchObject({ fromSeq: 1, throughSeq: 10 });
    expect(plain(chunks)).toEqual(plain(written.slice(10)));
    await history.close();
  });

  it('reads memory at once, without the disk', () => {
    const { history, write } = setup();
    write(10);
    expect(history.read(0, EVERYTHING)).not.toBeInstanceOf(Promise);
  });
});

describe('a window that is left by what was not delivered', () => {
  it('leaves no hole between the spool and memory, whoever comes and goes, under any policy', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('write' as const), length: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ kind: fc.constant('attach' as const), value: fc.boolean() }),
      fc.record({ kind: fc.constant('deliver' as const), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
    );
    const policy = fc.constantFrom<DetachedPolicy>('spool', 'pause', 'drop');
    await fc.assert(
      fc.asyncProperty(policy, fc.array(step, { maxLength: 60 }), async (detached, steps) => {
        const { history, written, write, attach, deliver } = setup(detached, 600);
        for (const each of steps) {
          if (each.kind === 'write') write(each.length);
          else if (each.kind === 'attach') attach(each.value);
          else deliver(Math.floor(each.part * written.length));
          for (let seq = history.firstHeldSeq; seq < history.log.nextSeq; seq += 1) {
            expect(history.at(seq)).toBeDefined();
          }
        }
        const { chunks, gap } = await readAll(history, 0);
        const bytes = chunks.reduce((sum, chunk) => sum + chunk.bytes.length, 0);
        expect(bytes + (gap?.bytes ?? 0)).toBe(history.log.totalBytes);
        await history.close();
      }),
    );
  });

  it('tells a gap that names nothing of what the same read returns', async () => {
    const { history, write, deliver } = setup();
    for (let index = 0; index < 30; index += 1) write(10);
    deliver(5);
    const reading = history.read(2, EVERYTHING);
    // Delivered while the disk is read.
    deliver(15);
    const read = await reading;
    expect(read.chunks[0]?.seq).toBe(6);
    expect(read.gap).toMatchObject({ fromSeq: 3, throughSeq: 5 });
  });

  it('keeps what an attached reader has not got where there is no disk', () => {
    const budget = new WindowBudget(400);
    let attached = true;
    const windows = [0, 1].map(
      () =>
        new History({
          logLimits: { bytes: 10_000, chunks: 100 },
          detached: 'spool',
          openSpool: undefined,
          windows: budget,
          deliveredSeq: () => 2,
          attached: () => attached,
          changed: () => {},
        }),
    );
    for (const window of windows)
      for (let index = 0; index < 4; index += 1) window.append('stdout', new Uint8Array(10));
    expect(windows.map(({ firstHeldSeq }) => firstHeldSeq)).toEqual([3, 3]);
    attached = false;
    windows[0]?.append('stdout', new Uint8Array(10));
    expect(budget.usedBytes).toBeLessThanOrEqual(400);
  });

  it('opens no spool to give up what was delivered', () => {
    const budget = new WindowBudget(400);
    let opened = 0;
    const window = new History({
      logLimits: { bytes: 10_000, chunks: 100 },
      detached: 'spool',
      openSpool: () => {
        opened += 1;
        return undefined;
      },
      windows: budget,
      deliveredSeq: () => 100,
      attached: () => true,
      changed: () => {},
    });
    for (let index = 0; index < 10; index += 1) window.append('stdout', new Uint8Array(10));
    expect(budget.usedBytes).toBeLessThanOrEqual(400);
    expect(opened).toBe(0);
  });
});
