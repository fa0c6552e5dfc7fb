/** A spool over files in memory, and the events for it. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StreamName } from '@exec-server/protocol';
import type { LogEvent, OutputEvent } from '../../packages/server/src/processes/eventLog.js';
import { openUnlinked } from '../../packages/server/src/processes/spool/segmentFs.js';
import { Segments } from '../../packages/server/src/processes/spool/segments.js';
import { Spool } from '../../packages/server/src/processes/spool/spool.js';
import { SpoolBudget } from '../../packages/server/src/processes/spool/spoolBudget.js';
import { MemorySegmentFs } from './memorySegmentFs.js';

export const SEGMENT = 1000;
export const unlimited = new SpoolBudget(Number.POSITIVE_INFINITY);

export interface Rig {
  readonly spool: Spool;
  readonly fs: MemorySegmentFs;
  readonly budget: SpoolBudget;
  readonly changes: (string | undefined)[];
}

/** `changed` is called as the owner of a spool is. */
export function rig(limitBytes = Number.POSITIVE_INFINITY, changed: () => void = () => {}): Rig {
  const fs = new MemorySegmentFs();
  const budget = new SpoolBudget(limitBytes, unlimited);
  const changes: (string | undefined)[] = [];
  let files = 0;
  const openFile = (): Promise<number> => openUnlinked(fs, `f${(files += 1)}`);
  const spool: Spool = new Spool({
    openSegments: (events) => new Segments({ fs, openFile, segmentBytes: SEGMENT, ...events }),
    budget,
    changed: () => {
      changes.push(spool.errno);
      changed();
    },
  });
  return { spool, fs, budget, changes };
}

export function output(seq: number, offset: number, length: number, stream: StreamName = 'stdout'): OutputEvent {
  const bytes = Uint8Array.from({ length }, (_, index) => (seq * 7 + index) % 256);
  return { kind: 'output', seq, stream, bytes, offset };
}

export function exited(seq: number): LogEvent {
  return { kind: 'exited', seq, exitCode: 0, signal: undefined, reason: 'exited' };
}

export async function settled({ spool }: Rig): Promise<void> {
  for (let turn = 0; turn < 10_000 && spool.pendingBytes > 0 && spool.errno === undefined; turn += 1) await nextTurn();
  for (let turn = 0; turn < 5; turn += 1) await nextTurn();
}

export const all = (spool: Spool): Promise<readonly OutputEvent[]> => spool.read(0, 1e9, 1e9);

/** Bytes as text, which compares fast. */
export function plain(events: readonly OutputEvent[]): unknown[] {
  return events.map((event) => ({ ...event, bytes: Buffer.from(event.bytes).toString('latin1') }));
}
