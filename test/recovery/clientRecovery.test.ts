/** Writes over cuts: every byte of stdin is taken once, whatever happens to the connection. */
import { createHash, randomInt } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { joinByProxy } from '../support/proxied.js';

const BYTES = 10 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
const CUTS = 20;

/** Known bytes without a period that pieces could hide in. */
function known(): Buffer {
  const bytes = Buffer.alloc(BYTES);
  for (let at = 0; at < BYTES; at += 4) bytes.writeUInt32LE((at * 2_654_435_761) % 2 ** 32, at);
  return bytes;
}

describe('10 MiB written to a process over 20 cuts at random bytes, most of them inside a frame', () => {
  it.each(['by name', 'at offsets'] as const)('arrive once and in order when writes are told apart %s', async (how) => {
    const seed = randomInt(2 ** 31);
    const joined = await joinByProxy({
      proxy: { seed, rules: [{ when: { direction: 'up', aboutEveryBytes: 400_000 }, do: 'cut', times: CUTS }] },
    });
    const handle = await joined.client.start({ argv: ['sha256sum'], stdin: 'pipe' });
    const input = known();
    for (let at = 0; at < BYTES; at += PIECE_BYTES) {
      await handle.write(input.subarray(at, at + PIECE_BYTES), how === 'by name' ? {} : { offset: at });
    }
    expect(await handle.stdinOffset()).toBe(BYTES);
    await handle.end('', how === 'by name' ? {} : { offset: BYTES });
    let output = '';
    for await (const piece of handle.text()) output += piece;
    expect(output.split(' ')[0], `seed ${seed}`).toBe(createHash('sha256').update(input).digest('hex'));
    expect(joined.proxy.counters.cuts, `seed ${seed}`).toBe(CUTS);
    await joined.expectClean();
  });
});

describe('a write that is made twice', () => {
  it('is taken once at its offset, what reaches beyond is taken, and one with a hole changes nothing', async () => {
    const joined = await joinByProxy();
    const handle = await joined.client.start({ argv: ['cat'], stdin: 'pipe' });
    await handle.write('abc', { offset: 0 });
    await handle.write('abc', { offset: 0 });
    await handle.write('bcde', { offset: 1 });
    await expect(handle.write('late', { offset: 10 })).rejects.toMatchObject({
      code: 'SERVER_ERROR',
      data: { reason: 'writeHole', acceptedBytes: 0, serverData: { acceptedOffset: 5 } },
    });
    expect(await handle.stdinOffset()).toBe(5);
    await handle.end('ef', { offset: 4 });
    await handle.closed();
    let output = '';
    for await (const piece of handle.text()) output += piece;
    expect(output).toBe('abcdef');
    await joined.expectClean();
  });
});
