import { describe, expect, it } from 'vitest';
import { archiveBytes, BATCH_BYTES, BATCH_ENTRIES, jobsOf, SMALL_FILE_BYTES } from './batches.js';
import type { TreeItem } from './tree.js';

const file = (name: string, size: number): TreeItem => ({ name, kind: 'file', size, mode: 0o644, modifiedAtMs: 0 });
const many = (count: number, size: number): TreeItem[] =>
  Array.from({ length: count }, (_, index) => file(`f${index}`, size));

describe('jobsOf', () => {
  it('keeps every item once and in order', () => {
    const items = many(1_300, 10);
    const jobs = [...jobsOf(items)];
    expect(jobs.flatMap((job) => (job.kind === 'batch' ? job.items : [job.item]))).toEqual(items);
    expect(jobs.map((job) => (job.kind === 'batch' ? job.items.length : 1))).toEqual([
      BATCH_ENTRIES,
      BATCH_ENTRIES,
      276,
    ]);
  });

  it('fills no batch beyond its bytes', () => {
    for (const job of jobsOf(many(100, SMALL_FILE_BYTES))) {
      if (job.kind === 'alone') throw new Error('a small file travels alone');
      const bytes = job.items.reduce((sum, item) => sum + archiveBytes(item), 0);
      expect(bytes).toBeLessThanOrEqual(BATCH_BYTES);
      expect(job.items.length).toBeGreaterThan(1);
    }
  });

  it('sends alone what is large, and what no archive can name', () => {
    const large = file('large', SMALL_FILE_BYTES + 1);
    const unnamed = file('f\xff', 1);
    expect([...jobsOf([large, unnamed])]).toEqual([
      { kind: 'alone', item: large },
      { kind: 'alone', item: unnamed },
    ]);
  });
});
