import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventLog, type LogEvent, type LogLimits } from './eventLog.js';

const roomy: LogLimits = { bytes: 1000, chunks: 100 };
const bytes = (length: number): Uint8Array => new Uint8Array(length);
const budget = (maxBytes: number, maxChunks = 1000): { maxBytes: number; maxChunks: number } => ({
  maxBytes,
  maxChunks,
});

type Step = { readonly kind: 'output'; readonly size: number } | { readonly kind: 'exited' };

/** Keeps everything, and says which output the window has lost by looking at all of it. */
class Model {
  readonly all: LogEvent[] = [];
  #limits: LogLimits;
  /** Output up to this seq was evicted. */
  evictedThrough = 0;

  constructor(limits: LogLimits) {
    this.#limits = limits;
  }

  append(event: LogEvent): void {
    this.all.push(event);
    if (event.kind !== 'output') return;
    const kept = (): LogEvent[] => this.outputAfter(this.evictedThrough);
    while (sizeOf(kept()) > this.#limits.bytes || kept().length > this.#limits.chunks) {
      this.evictedThrough = kept()[0]?.seq ?? this.evictedThrough;
    }
  }

  outputAfter(seq: number): LogEvent[] {
    return this.all.filter((event) => event.kind === 'output' && event.seq > seq);
  }

  held(event: LogEvent): boolean {
    return event.kind !== 'output' || event.seq > this.evictedThrough;
  }

  /** The first run of lost events behind a cursor, one seq after the other. */
  gapAfter(afterSeq: number): { fromSeq: number; throughSeq: number; bytes: number } | undefined {
    const lost = this.all.filter((event) => event.seq > afterSeq && !this.held(event));
    const first = lost[0];
    if (first === undefined) return undefined;
    const run = lost.filter((event, index) => event.seq === first.seq + index);
    return { fromSeq: first.seq, throughSeq: first.seq + run.length - 1, bytes: sizeOf(run) };
  }
}

function sizeOf(events: readonly LogEvent[]): number {
  return events.reduce((sum, event) => sum + (event.kind === 'output' ? event.bytes.length : 0), 0);
}

const steps = fc.array(
  fc.oneof(
    {
      weight: 20,
      arbitrary: fc.record({ kind: fc.constant('output' as const), size: fc.integer({ min: 1, max: 12 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('exited' as const) }),
    },
  ),
  { maxLength: 80 },
);
const smallLimits = fc.record({ bytes: fc.integer({ min: 12, max: 60 }), chunks: fc.integer({ min: 1, max: 12 }) });

function fill(script: readonly Step[], limits: LogLimits, close: boolean): { log: EventLog; model: Model } {
  const log = new EventLog(limits);
  const model = new Model(limits);
  for (const step of script) {
    if (step.kind === 'output') model.append(log.appendOutput('stdout', bytes(step.size)));
    else if (log.exited === undefined)
      model.append(log.appendExited({ exitCode: 3, signal: undefined, reason: 'exited' }));
  }
  if (close) {
    if (log.exited === undefined) model.append(log.appendExited({ exitCode: 3, signal: undefined, reason: 'exited' }));
    model.append(log.appendClosed({ reason: 'ended', holders: undefined }));
  }
  return { log, model };
}

describe('the event log, against a model that keeps everything', () => {
  const filled = fc
    .record({ script: steps, limits: smallLimits, close: fc.boolean() })
    .map(({ script, limits, close }) => fill(script, limits, close));

  it('counts seqs without holes and offsets in bytes of output', () => {
    fc.assert(
      fc.property(filled, ({ log, model }) => {
        expect(model.all.map(({ seq }) => seq)).toEqual(model.all.map((_, index) => index + 1));
        let offset = 0;
        for (const event of model.all) {
          if (event.kind !== 'output') continue;
          expect(event.offset).toBe(offset);
          offset += event.bytes.length;
        }
        expect(log.nextSeq).toBe(model.all.length + 1);
        expect(log.totalBytes).toBe(offset);
        expect(log.retainedBytes).toBe(sizeOf(model.outputAfter(model.evictedThrough)));
      }),
    );
  });

  it('has exactly the events the model holds, the exit and the close always', () => {
    fc.assert(
      fc.property(filled, ({ log, model }) => {
        for (const event of model.all) expect(log.at(event.seq)).toBe(model.held(event) ? event : undefined);
        expect(log.at(0)).toBeUndefined();
        expect(log.at(log.nextSeq)).toBeUndefined();
      }),
    );
  });

  it('tells a gap with its exact range and bytes, ending before the next event that is held', () => {
    fc.assert(
      fc.property(filled, ({ log, model }) => {
        for (let after = 0; after <= log.nextSeq; after += 1)
          expect(log.gapAfter(after)).toEqual(model.gapAfter(after));
      }),
    );
  });

  it('knows the bytes through every seq while positions are remembered', () => {
    fc.assert(
      fc.property(filled, ({ log, model }) => {
        for (let seq = 0; seq <= log.nextSeq; seq += 1) {
          expect(log.bytesThrough(seq)).toBe(sizeOf(model.all.filter((event) => event.seq <= seq)));
        }
      }),
    );
  });

  it('reads whole chunks within the budget, at least one, and says how far it speaks', () => {
    fc.assert(
      fc.property(
        filled,
        fc.nat(90),
        fc.nat(40),
        fc.integer({ min: 1, max: 5 }),
        ({ log, model }, after, maxBytes, maxChunks) => {
          const read = log.read(after, budget(maxBytes, maxChunks));
          const held = model.outputAfter(after).filter((event) => model.held(event));
          expect(read.chunks).toEqual(held.slice(0, read.chunks.length));
          expect(read.cut).toBe(read.chunks.length < held.length);
          expect(read.gap).toEqual(model.gapAfter(after));
          if (read.chunks.length > 1) expect(sizeOf(read.chunks)).toBeLessThanOrEqual(maxBytes);
          if (held.length > 0) expect(read.chunks.length).toBeGreaterThan(0);
          const next = held[read.chunks.length];
          if (next === undefined) expect(read.throughSeq).toBe(Math.max(after, log.nextSeq - 1));
          else {
            expect(read.throughSeq).toBeLessThan(next.seq);
            expect(read.throughSeq).toBeGreaterThanOrEqual(read.chunks.at(-1)?.seq ?? 0);
            expect(sizeOf([...read.chunks, next]) > maxBytes || read.chunks.length === maxChunks).toBe(true);
          }
        },
      ),
    );
  });

  it('gives everything that is held to a reader that goes on from each reply', () => {
    fc.assert(
      fc.property(filled, fc.integer({ min: 1, max: 30 }), ({ log, model }, maxBytes) => {
        const seen: LogEvent[] = [];
        let cursor = 0;
        while (cursor < log.nextSeq - 1) {
          const read = log.read(cursor, budget(maxBytes));
          seen.push(...read.chunks);
          expect(read.throughSeq).toBeGreaterThan(cursor);
          cursor = read.throughSeq;
        }
        expect(seen).toEqual(model.outputAfter(0).filter((event) => model.held(event)));
      }),
    );
  });
});

describe('the event log', () => {
  it('keeps an exit that output has left behind, and tells the output lost on both sides of it', () => {
    const log = new EventLog({ bytes: 10, chunks: 100 });
    log.appendOutput('stdout', bytes(5));
    const exited = log.appendExited({ exitCode: 0, signal: undefined, reason: 'exited' });
    for (let index = 0; index < 4; index += 1) log.appendOutput('stderr', bytes(5));
    expect(log.firstRetainedSeq).toBe(5);
    expect(log.at(2)).toBe(exited);
    expect(log.gapAfter(0)).toEqual({ fromSeq: 1, throughSeq: 1, bytes: 5 });
    expect(log.gapAfter(1)).toEqual({ fromSeq: 3, throughSeq: 4, bytes: 10 });
    expect(log.gapAfter(2)).toEqual({ fromSeq: 3, throughSeq: 4, bytes: 10 });
    expect(log.gapAfter(4)).toBeUndefined();
  });

  it('holds no bytes of events that left the window', async () => {
    const log = new EventLog({ bytes: 100, chunks: 10 });
    const evicted = new WeakRef(log.appendOutput('stdout', bytes(100)));
    log.appendOutput('stdout', bytes(100));
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    // A weak reference holds its target until the turn in which it was made or asked is over.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(evicted.deref()).toBeUndefined();
    expect(log.retainedBytes).toBe(100);
  });

  it('forgets the bytes of a gap, not its range, when the cursor is older than the positions it remembers', () => {
    const log = new EventLog({ bytes: 10, chunks: 5 });
    const total = 40_000;
    for (let index = 0; index < total; index += 1) log.appendOutput('stdout', bytes(2));
    expect(log.gapAfter(0)).toEqual({ fromSeq: 1, throughSeq: total - 5, bytes: 2 * (total - 5) });
    expect(log.gapAfter(1)).toEqual({ fromSeq: 2, throughSeq: total - 5, bytes: undefined });
    const remembered = total - 16_000;
    expect(log.gapAfter(remembered)).toEqual({
      fromSeq: remembered + 1,
      throughSeq: total - 5,
      bytes: (total - 5 - remembered) * 2,
    });
    expect(log.bytesThrough(total)).toBe(2 * total);
  });

  it('evicts by number as well as by bytes', () => {
    const log = new EventLog({ bytes: 1000, chunks: 3 });
    for (let index = 0; index < 5; index += 1) log.appendOutput('stdout', bytes(1));
    expect(log.firstRetainedSeq).toBe(3);
    expect(log.retainedBytes).toBe(3);
  });

  it('ends a read by the weight of many small chunks', () => {
    const log = new EventLog(roomy);
    for (let index = 0; index < 10; index += 1) log.appendOutput('stdout', bytes(1));
    const read = log.read(0, { maxBytes: 1000, maxChunks: 100, maxWeight: 100 });
    expect(read.chunks.length).toBe(2);
    expect(read.cut).toBe(true);
  });

  it('speaks for no more than the cursor when that lies beyond the end', () => {
    const log = new EventLog(roomy);
    log.appendOutput('stdout', bytes(1));
    expect(log.read(99, budget(10))).toEqual({ chunks: [], throughSeq: 99, cut: false, gap: undefined });
  });
});
