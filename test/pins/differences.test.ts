import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { differences } from '../conformance/differences.js';

const document = readFileSync(fileURLToPath(new URL('../../docs/protocol.md', import.meta.url)), 'utf8');

const reasons = { extension: 'an addition', safety: 'safety', hostLimit: 'not to be had here' };

describe('the table of differences in docs/protocol.md', () => {
  it('shows what conversations with the reference may differ in, and why', () => {
    const start = '<!-- the table of test/conformance/differences.ts -->\n\n';
    const from = document.indexOf(start) + start.length;
    const shown = document.slice(from, document.indexOf('\n\n<!-- end -->', from));
    const rows = differences.map(({ what, reason }) => `| ${what} | ${reasons[reason]} |`);
    expect(shown).toBe(['| what | why |', '| --- | --- |', ...rows].join('\n'));
  });
});
