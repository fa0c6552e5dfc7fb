import { describe, expect, it } from 'vitest';
import { listing, modeText } from './listing.js';

const at = Date.UTC(2026, 1, 3, 4, 5, 6);
const entries = [
  { name: 'b', path: '/b', kind: 'file', size: 12_345, mode: 0o640, modifiedAtMs: at },
  { name: '.hidden', path: '/.hidden', kind: 'directory', size: 4096, mode: 0o755, modifiedAtMs: at },
  { name: 'a\n', path: '/a', kind: 'symlink', size: 1, mode: 0o777, modifiedAtMs: at, linkTarget: 'b\t' },
];

describe('listing', () => {
  it('has one name a line, in order, without those that begin with a dot', () => {
    expect(listing(entries, { long: false, all: false })).toBe('a\\n\nb\n');
    expect(listing(entries, { long: false, all: true })).toBe('.hidden\na\\n\nb\n');
  });

  it('says in columns what is known', () => {
    expect(listing(entries, { long: true, all: false })).toBe(
      'lrwxrwxrwx      1  2026-02-03 04:05  a\\n -> b\\t\n-rw-r-----  12345  2026-02-03 04:05  b\n',
    );
    expect(listing([{ name: 'x', path: '/x', kind: 'other' }], { long: true, all: false })).toBe(
      '??????????  ?  ?                 x\n',
    );
  });

  it('shows set-id and sticky bits as ls does', () => {
    expect(modeText('file', 0o4755)).toBe('-rwsr-xr-x');
    expect(modeText('file', 0o4644)).toBe('-rwSr--r--');
    expect(modeText('directory', 0o1777)).toBe('drwxrwxrwt');
    expect(modeText('directory', 0o2770)).toBe('drwxrws---');
  });
});
