import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StreamName } from '@exec-server/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scaled } from '../../../../../test/support/scale.js';
import { all, exited, output, plain, rig, settled, unlimited } from '../../../../../test/support/spoolRig.js';
import type { LogEvent, OutputEvent } from '../eventLog.js';
import { SPOOLED_EVENT_COST_BYTES } from './spool.js';

const steps = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('output' as const),
        length: fc.oneof(fc.nat(60), fc.nat(2500)),
        stream: fc.constantFrom<StreamName[]>('stdout', 'stderr', 'pty'),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('exited' as const) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('drop' as const), events: fc.nat(8) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('read' as const),
        skip: fc.nat(10),
        maxBytes: fc.nat(4000),
        maxChunks: fc.nat(10),
      }),
    },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('turn' as const), turns: fc.nat(4) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('disk' as const),
        capacity: fc.constantFrom(0, 1500, 4000, Number.POSITIVE_INFINITY),
        code: fc.constantFrom(undefined, 'EIO', 'EMFILE'),
      }),
    },
  ),
  { maxLength: 80 },
);

describe('Spool', () => {
  it('agrees with a list of everything, over a full and a failing disk', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 10, max: 3000 }), async (taken, stepBytes) => {
        const run = rig(12_000);
        const { spool, fs, budget } = run;
        fs.stepBytes = stepBytes;
        const held: LogEvent[] = [];
        const reads: Promise<void>[] = [];
        let nextSeq = 1;
        let offset = 0;
        const dropThrough = (seq: number): void => {
          const gone = held.splice(0, held.filter((event) => event.seq <= seq).length);
          const [first] = gone;
          const range = { fromSeq: first?.seq, throughSeq: gone.at(-1)?.seq, bytes: sizeOf(gone) };
          expect(spool.dropThrough(seq)).toEqual(first === undefined ? undefined : range);
        };
        const append = (event: LogEvent): void => {
          nextSeq += 1;
          if (event.kind === 'output') offset += event.bytes.length;
          while (!spool.append(event)) {
            const size = event.kind === 'output' ? event.bytes.length : 0;
            const overBudget = budget.freeBytes < size + SPOOLED_EVENT_COST_BYTES;
            expect(overBudget || spool.errno !== undefined).toBe(true);
            expect(held.length > 0 || overBudget).toBe(true);
            if (held.length === 0) return;
            dropThrough(spool.firstSeq);
          }
          held.push(event);
        };
        for (const step of taken) {
          if (step.kind === 'output') append(output(nextSeq, offset, step.length, step.stream));
          else if (step.kind === 'exited') append(exited(nextSeq));
          else if (step.kind === 'drop') dropThrough((held[0]?.seq ?? nextSeq) - 1 + step.events);
          else if (step.kind === 'turn') for (let n = 0; n < step.turns; n += 1) await nextTurn();
          else if (step.kind === 'disk') {
            fs.capacityBytes = step.capacity;
            fs.fault = (kind) => (kind === 'read' ? undefined : step.code);
          } else {
            const after = (held[0]?.seq ?? nextSeq) - 1 + step.skip;
            const expected = firstOf(held, after, step.maxBytes, step.maxChunks);
            const reading = spool.read(after, step.maxBytes, step.maxChunks);
            reads.push(reading.then((events) => expect(plain(events)).toEqual(plain(expected))));
          }
          expect(spool.bytes).toBe(sizeOf(held));
          expect(budget.usedBytes).toBe(sizeOf(held) + held.length * SPOOLED_EVENT_COST_BYTES);
          expect(spool.pendingBytes).toBeLessThanOrEqual(spool.bytes);
          if (held.length > 0) expect([spool.firstSeq, spool.endSeq]).toEqual([held[0]?.seq, nextSeq]);
          for (const event of held) {
            if (event.kind !== 'output') continue;
            expect(spool.bytesThrough(event.seq)).toBe(event.offset + event.bytes.length);
          }
        }
        await Promise.all(reads);
        await settled(run);
        expect(plain(await all(spool))).toEqual(plain(firstOf(held, 0, 1e9, 1e9)));
        expect(fs.names).toEqual([]);
        const closing = spool.close();
        expect([spool.bytes, spool.pendingBytes, budget.usedBytes]).toEqual([0, 0, 0]);
        await closing;
        expect([fs.openFiles, fs.badDescriptors]).toEqual([0, 0]);
      }),
      { numRuns: scaled(150, 2000) },
    );
    expect(unlimited.usedBytes).toBe(0);
  });

  it('closes the file of an emptied spool and starts a new one', async () => {
    const run = rig();
    const { spool, fs } = run;
    spool.append(output(1, 0, 10));
    await settled(run);
    spool.dropThrough(1);
    await settled(run);
    expect(fs.openFiles).toBe(0);
    spool.append(output(90, 7000, 10));
    await settled(run);
    expect(plain(await all(spool))).toEqual(plain([output(90, 7000, 10)]));
    await spool.close();
  });
});

function sizeOf(events: readonly LogEvent[]): number {
  return events.reduce((sum, event) => sum + (event.kind === 'output' ? event.bytes.length : 0), 0);
}

function firstOf(held: readonly LogEvent[], after: number, maxBytes: number, maxChunks: number): OutputEvent[] {
  const found: OutputEvent[] = [];
  for (const event of held) {
    if (event.kind !== 'output' || event.seq <= after) continue;
    const fits = sizeOf(found) + event.bytes.length <= maxBytes && found.length < maxChunks;
    if (found.length > 0 && !fits) break;
    found.push(event);
  }
  return found;
}
