import { describe, expect, it } from 'vitest';
import { bytesText, progressText, summary, TransferLine } from './transferProgress.js';

const MIB = 1024 * 1024;
const progress = { files: 3, bytes: 10 * MIB, totalFiles: 10, totalBytes: 40 * MIB, path: 'a/b\n' };

class Out {
  readonly written: string[] = [];
  readonly isTTY: boolean;
  readonly columns = 60;
  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }
  write(text: string | Uint8Array): boolean {
    this.written.push(String(text));
    return true;
  }
}

describe('the progress of a transfer', () => {
  it('is told with share, counts, rate and place', () => {
    const text = '######.................. 25% 10.0 MiB of 40.0 MiB, 3 of 10 files, 5.0 MiB/s  a/b\\n';
    expect(progressText(progress, 2_000)).toBe(text);
    expect(progressText({ files: 0, bytes: 0, path: '' }, 0)).toBe('0 B, 0 files, 0 B/s');
  });

  it('is one line on a terminal that is no wider than it and goes away', () => {
    const out = new Out(true);
    let now = 0;
    const line = new TransferLine(out, false, () => now);
    now = 2_000;
    line.update(progress);
    line.update(progress);
    line.clear();
    line.clear();
    expect(out.written).toEqual([`\r\u001b[K${progressText(progress, 2_000).slice(0, 59)}`, '\r\u001b[K']);
  });

  it('is a plain line now and then elsewhere, and nothing where it is to be quiet', () => {
    const [plain, quiet] = [new Out(false), new Out(false)];
    let now = 0;
    const lines = [new TransferLine(plain, false, () => now), new TransferLine(quiet, true, () => now)];
    for (now = 1_000; now <= 25_000; now += 1_000) for (const line of lines) line.update(progress);
    for (const line of lines) line.finish({ files: 1, directories: 0, links: 2, bytes: 5 });
    expect(plain.written).toHaveLength(3);
    for (const text of plain.written) {
      expect(text).toMatch(/^exec-server: .*\n$/);
      expect(text).not.toContain('\r');
    }
    expect(quiet.written).toEqual([]);
  });

  it('ends with what was done', () => {
    expect(summary({ files: 1, directories: 2, links: 0, bytes: 2048 }, 500)).toBe(
      '1 file, 2 folders; 2.0 KiB in 0.5 s (4.0 KiB/s)',
    );
    expect([bytesText(0), bytesText(1023), bytesText(1536), bytesText(3 * 2 ** 40)]).toEqual([
      '0 B',
      '1023 B',
      '1.5 KiB',
      '3.0 TiB',
    ]);
  });
});
