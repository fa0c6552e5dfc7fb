import { createHash } from 'node:crypto';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { floodArgv, floodBytes, floodDigest, FloodView } from './flood.js';

const LINES = 25_000;

async function written(): Promise<Buffer> {
  const [program = '', ...args] = floodArgv(LINES);
  const { stdout } = await execa(program, args, { encoding: 'buffer', stripFinalNewline: false });
  return Buffer.from(stdout);
}

describe('a flood', () => {
  it('is what seq writes', async () => {
    const bytes = await written();
    expect(bytes).toHaveLength(floodBytes(LINES));
    expect(floodDigest(LINES)).toBe(createHash('sha256').update(bytes).digest('hex'));
  });
});

describe('the view of a flood', () => {
  it('takes right bytes in any pieces, and counts over gaps', async () => {
    const bytes = await written();
    const view = new FloodView();
    view.output(bytes.subarray(0, 7));
    view.output(bytes.subarray(7, 200_003));
    view.gap(99_999);
    view.output(bytes.subarray(300_002));
    expect(view).toMatchObject({ offset: bytes.length, lost: 99_999, received: bytes.length - 99_999, gaps: 1 });
  });

  it('finds its place behind a gap of unknown size', async () => {
    const bytes = await written();
    const view = new FloodView();
    view.output(bytes.subarray(0, 100));
    view.gap(undefined);
    view.output(bytes.subarray(300_005, 300_010));
    view.output(bytes.subarray(300_010));
    expect(view).toMatchObject({ offset: bytes.length, lost: 299_905, received: bytes.length - 299_905 });
  });

  it.each([
    ['a byte is wrong', (bytes: Buffer) => Buffer.concat([bytes.subarray(0, 50_000), Buffer.from('x')])],
    ['a byte is missing', (bytes: Buffer) => Buffer.concat([bytes.subarray(0, 50_000), bytes.subarray(50_001)])],
    ['a line came twice', (bytes: Buffer) => Buffer.concat([bytes.subarray(0, 160_000), bytes.subarray(159_984)])],
  ])('refuses it when %s', async (_, spoil) => {
    const spoilt = spoil(await written());
    expect(() => new FloodView().output(spoilt)).toThrow('of the flood is wrong');
  });

  it('refuses a gap of the wrong size, and what came before', async () => {
    const bytes = await written();
    const wrong = new FloodView();
    wrong.gap(1_599);
    expect(() => wrong.output(bytes.subarray(1_600))).toThrow('of the flood is wrong');
    const back = new FloodView();
    back.output(bytes.subarray(0, 3_200));
    back.gap(undefined);
    expect(() => back.output(bytes.subarray(1_600))).toThrow('came behind byte 3200');
  });
});
