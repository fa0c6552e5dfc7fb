import { Buffer } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { type UstarEntry, ustar } from '../../../../../test/support/ustar.js';
import { EntryTypes } from './entryTypes.js';

function typesIn(archive: Uint8Array, blockBytes = archive.length): string[] {
  const types = new EntryTypes();
  for (let at = 0; at < archive.length; at += blockBytes) types.feed(archive.subarray(at, at + blockBytes));
  const all: string[] = [];
  for (let type = types.next(); type !== undefined; type = types.next()) all.push(type);
  return all;
}

/** One record of attributes, with its own length in front. */
function record(text: string): string {
  const rest = ` ${text}\n`;
  const digits = String(rest.length + 2).length;
  return `${rest.length + digits}${rest}`;
}

const entries: UstarEntry[] = [
  { name: 'file', body: 'x'.repeat(1300) },
  { name: 'folder', type: '5' },
  { name: '././@LongLink', type: 'L', body: 'n'.repeat(600) },
  { name: 'old', type: '\0', body: '1' },
  { name: 'attributes', type: 'x', body: record('mtime=1.5') },
  { name: 'link', type: '2', link: 'file' },
  { name: 'sparse', type: 'S', body: 'xx' },
  { name: 'volume', type: 'V' },
];

describe('the types of the entries of an archive', () => {
  it.each([1, 100, 511, 512, 513, 5000])('are found in blocks of %i bytes', (blockBytes) => {
    expect(typesIn(ustar(entries), blockBytes)).toEqual(['0', '5', '\0', '2', 'S', 'V']);
  });

  it('are found behind a content whose size stands in the attributes, of one entry or of all', () => {
    const content = 'S'.repeat(512 * 3);
    const whole = ustar([{ name: 'big', body: content }]);
    // The header says nothing of the size, as for one that does not fit.
    whole.fill('0', 124, 135);
    const entry = whole.subarray(0, 512 + content.length);
    const behind = ustar([{ name: 'link', type: '1' }]);
    for (const type of ['x', 'g']) {
      const front = ustar([{ name: 'a', type, body: record(`size=${content.length}`) }]).subarray(0, 1024);
      expect(typesIn(Buffer.concat([front, entry, behind]))).toEqual(['0', '1']);
    }
  });

  it('are found behind a size of more than eleven digits', () => {
    const whole = ustar([{ name: 'big', body: 'S'.repeat(700) }]).subarray(0, 1536);
    whole.fill(0, 124, 136);
    whole[124] = 0x80;
    whole.writeUInt16BE(700, 134);
    expect(typesIn(Buffer.concat([whole, ustar([{ name: 'link', type: '1' }])]))).toEqual(['0', '1']);
  });

  it('end with the end mark', () => {
    expect(typesIn(Buffer.concat([ustar([{ name: 'a' }]), ustar([{ name: 'b' }])]))).toEqual(['0']);
  });
});
