import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { entryPoints, reportOf, reportPath } from './rig/apiReport.js';
import { isUpdate } from './rig/update.js';

/** The reports are committed: whoever changes the public surface shows it in the same change. */
describe('the public surface', () => {
  it.each(entryPoints)('of $name/$module is what $report says (pnpm test:packages:update)', async (entry) => {
    const report = await reportOf(entry);
    if (isUpdate) await writeFile(reportPath(entry), report);
    expect(report).toBe(await readFile(reportPath(entry), 'utf8'));
  });
});
