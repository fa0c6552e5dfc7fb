/** Archives as a test wants them, wrong ones too. */
import { Buffer } from 'node:buffer';

export interface UstarEntry {
  readonly name: string | Buffer;
  /** `0` a file, `1` a hard link, `2` a symbolic link, `5` a folder, `6` a FIFO. Default `0`. */
  readonly type?: string;
  readonly body?: string;
  readonly link?: string;
  readonly mode?: number;
}

export const END_MARK = Buffer.alloc(1024);

export function ustar(entries: readonly UstarEntry[]): Buffer {
  return Buffer.concat([...entries.map(entryBytes), END_MARK]);
}

function entryBytes({ name, type = '0', body = '', link = '', mode = 0o644 }: UstarEntry): Buffer {
  const header = Buffer.alloc(512);
  const octal = (value: number, at: number, digits: number): void => {
    header.write(value.toString(8).padStart(digits, '0'), at, 'latin1');
  };
  Buffer.from(name).copy(header, 0);
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(Buffer.byteLength(body), 124, 11);
  octal(1_700_000_000, 136, 11);
  header.write(' '.repeat(8), 148, 'latin1');
  header.write(type, 156, 'latin1');
  header.write(link, 157);
  header.write('ustar\x0000', 257, 'latin1');
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  header[154] = 0;
  const content = Buffer.from(body);
  return Buffer.concat([header, content, Buffer.alloc(-content.length & 511)]);
}
