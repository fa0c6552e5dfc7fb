import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { all, exited, output, plain, rig, SEGMENT, settled } from '../../../../../test/support/spoolRig.js';
import { SpoolReadError } from './spool.js';

describe('Spool on a disk that fails', () => {
  it('keeps what a failed write left in memory, says so once, and refuses more', async () => {
    const run = rig();
    const { spool, fs, changes } = run;
    for (let seq = 1; seq <= 10; seq += 1) {
      expect(spool.append(output(seq, (seq - 1) * 400, 400))).toBe(true);
      if (seq !== 6) continue;
      await settled(run);
      fs.fault = (kind, count) => (kind === 'write' && count >= 7 ? 'ENOSPC' : undefined);
    }
    await settled(run);
    expect(spool.errno).toBe('ENOSPC');
    expect(changes.filter((errno) => errno !== undefined)).toEqual(['ENOSPC']);
    const pending = spool.pendingBytes;
    expect(pending).toBeGreaterThan(0);
    expect(spool.append(output(11, 4000, 400))).toBe(false);
    expect(spool.append(exited(11))).toBe(true);
    expect(await all(spool)).toHaveLength(10);
    await spool.close();
  });

  it('takes as much as dropping freed, and goes on once the disk does', async () => {
    const run = rig();
    const { spool, fs } = run;
    // Dropped while it is being written: that must not count afterwards.
    spool.append(output(1, 0, 500));
    for (let turn = 0; turn < 2; turn += 1) await nextTurn();
    spool.dropThrough(1);
    await settled(run);
    expect([fs.writes, fs.openFiles]).toEqual([[500], 0]);
    fs.capacityBytes = 2 * SEGMENT;
    for (let seq = 1; seq <= 12; seq += 1) spool.append(output(seq, (seq - 1) * 250, 250));
    await settled(run);
    expect([spool.errno, spool.pendingBytes]).toEqual(['ENOSPC', 1000]);
    spool.dropThrough(3);
    expect(spool.append(output(13, 3000, 250))).toBe(false);
    spool.dropThrough(4);
    for (let seq = 13; seq <= 16; seq += 1) expect(spool.append(output(seq, (seq - 1) * 250, 250))).toBe(true);
    expect(spool.append(output(17, 4000, 250))).toBe(false);
    await settled(run);
    expect([spool.errno, spool.pendingBytes]).toEqual(['ENOSPC', 1000]);
    fs.capacityBytes = Number.POSITIVE_INFINITY;
    spool.dropThrough(8);
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    expect([spool.errno, spool.pendingBytes]).toEqual([undefined, 0]);
    expect(plain(await all(spool))).toEqual(plain(range(9, 16).map((seq) => output(seq, (seq - 1) * 250, 250))));
    await spool.close();
  });

  it.each([10, 60])('counts a file that takes %i turns to close while a write fails', async (closeTurns) => {
    const run = rig();
    const { spool, fs } = run;
    const append = (seq: number): boolean => spool.append(output(seq, (seq - 1) * 250, 250));
    const turns = async (count: number): Promise<void> => {
      for (let turn = 0; turn < count; turn += 1) await nextTurn();
    };
    fs.capacityBytes = 2 * SEGMENT;
    for (let seq = 1; seq <= 12; seq += 1) append(seq);
    await settled(run);
    expect([spool.errno, spool.pendingBytes]).toEqual(['ENOSPC', 1000]);
    fs.capacityBytes = SEGMENT;
    fs.turns = { write: 20, close: 10 };
    spool.dropThrough(4);
    await turns(12);
    // The write that the first file made room for is under way, and will fail.
    fs.turns.close = closeTurns;
    spool.dropThrough(8);
    await turns(25);
    for (let seq = 13; seq <= 16; seq += 1) expect(append(seq)).toBe(true);
    await turns(200);
    expect([spool.pendingBytes, fs.usedBytes]).toEqual([1000, 1000]);
    await spool.close();
  });

  it('opens a file again after a failure to open one', async () => {
    const run = rig();
    const { spool, fs } = run;
    fs.fault = (kind) => (kind === 'open' ? 'EMFILE' : undefined);
    for (let seq = 1; seq <= 2; seq += 1) spool.append(output(seq, (seq - 1) * 100, 100));
    await settled(run);
    expect(spool.errno).toBe('EMFILE');
    fs.fault = () => undefined;
    spool.dropThrough(1);
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    expect([spool.errno, spool.pendingBytes]).toEqual([undefined, 0]);
    await spool.close();
  });

  it('rejects a read that the disk fails with what was asked and why, and reads it later', async () => {
    const run = rig();
    const { spool, fs } = run;
    spool.append(output(1, 0, 300));
    spool.append(output(2, 300, 300));
    await settled(run);
    fs.fault = (kind) => (kind === 'read' ? 'EIO' : undefined);
    await expect(all(spool)).rejects.toMatchObject({ name: 'SpoolReadError', errno: 'EIO', fromSeq: 1, throughSeq: 2 });
    fs.fault = () => undefined;
    expect(await all(spool)).toHaveLength(2);
    await spool.close();
    await expect(all(spool)).rejects.toBeInstanceOf(SpoolReadError);
    expect(spool.append(output(3, 600, 1))).toBe(false);
  });

  it('answers a read whose events are dropped, or whose spool is closed, meanwhile', async () => {
    const run = rig();
    const { spool, fs } = run;
    for (let seq = 1; seq <= 8; seq += 1) spool.append(output(seq, (seq - 1) * 500, 500));
    await settled(run);
    expect(fs.openFiles).toBe(4);
    fs.stepBytes = 100;
    const dropped = all(spool);
    spool.dropThrough(4);
    const closed = all(spool);
    await spool.close();
    expect([fs.openFiles, fs.badDescriptors]).toEqual([0, 0]);
    expect([(await dropped).length, (await closed).length]).toEqual([8, 4]);
  });
});

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
