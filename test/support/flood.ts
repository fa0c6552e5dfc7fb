/** Output whose every byte is known from its offset: 16-byte lines with their own number, as `seq -f %015.0f` writes them. */
import { createHash } from 'node:crypto';

const LINE_BYTES = 16;

const BLOCK_LINES = 10_000;
const BLOCK_BYTES = BLOCK_LINES * LINE_BYTES;
/** Digits of a line number that are the same in a whole block. */
const BLOCK_DIGITS = 11;

export const floodBytes = (lines: number): number => lines * LINE_BYTES;

export const floodArgv = (lines: number): string[] => ['seq', '-f', '%015.0f', '0', String(lines - 1)];

/** The SHA-256 of so many lines. */
export function floodDigest(lines: number): string {
  const hash = createHash('sha256');
  for (let line = 0; line < lines; line += BLOCK_LINES) {
    hash.update(block(line / BLOCK_LINES).subarray(0, floodBytes(Math.min(BLOCK_LINES, lines - line))));
  }
  return hash.digest('hex');
}

/** The bytes of so many lines. */
export function floodText(lines: number): Buffer {
  const blocks: Buffer[] = [];
  for (let line = 0; line < lines; line += BLOCK_LINES) {
    blocks.push(block(line / BLOCK_LINES).subarray(0, floodBytes(Math.min(BLOCK_LINES, lines - line))));
  }
  return Buffer.concat(blocks);
}

const firstBlock = Buffer.from(
  Array.from({ length: BLOCK_LINES }, (_, line) => `${String(line).padStart(LINE_BYTES - 1, '0')}\n`).join(''),
  'latin1',
);
let lastBlock = { index: 0, bytes: firstBlock };

/** The lines from `index * BLOCK_LINES` on. */
function block(index: number): Buffer {
  if (lastBlock.index === index) return lastBlock.bytes;
  const bytes = Buffer.from(firstBlock);
  const digits = Buffer.from(String(index).padStart(BLOCK_DIGITS, '0'), 'latin1');
  for (let at = 0; at < BLOCK_BYTES; at += LINE_BYTES) digits.copy(bytes, at);
  lastBlock = { index, bytes };
  return bytes;
}

/** What one reader has of a flood. Every byte is checked against its offset, which is counted over gaps. */
export class FloodView {
  readonly #hash = createHash('sha256');
  #offset = 0;
  #received = 0;
  #lost = 0;
  #gaps = 0;
  /** What came since a gap of unknown size, until a whole line says where it belongs. */
  #unplaced: Buffer | undefined;

  /** Bytes of the flood behind which the reader is: those it got, and those of which it was told that they are gone. */
  get offset(): number {
    return this.#offset;
  }
  get received(): number {
    return this.#received;
  }
  get lost(): number {
    return this.#lost;
  }
  get gaps(): number {
    return this.#gaps;
  }
  /** SHA-256 of what it got. */
  get digest(): string {
    return this.#hash.copy().digest('hex');
  }

  output(bytes: Uint8Array): void {
    this.#received += bytes.length;
    this.#hash.update(bytes);
    if (this.#unplaced === undefined) this.#check(bytes);
    else this.#place(Buffer.concat([this.#unplaced, bytes]));
  }

  /** `bytes` is undefined where the server no longer knows how many they were. */
  gap(bytes: number | undefined): void {
    this.#gaps += 1;
    if (bytes === undefined || this.#unplaced !== undefined) {
      this.#unplaced = Buffer.alloc(0);
      return;
    }
    this.#offset += bytes;
    this.#lost += bytes;
  }

  #place(bytes: Buffer): void {
    this.#unplaced = bytes;
    if (bytes.length < 2 * LINE_BYTES) return;
    this.#unplaced = undefined;
    const start = bytes.indexOf(10) + 1;
    const line = bytes.toString('latin1', start, start + LINE_BYTES - 1);
    if (!/^\d{15}$/.test(line)) throw new Error(`what follows a gap is no line of the flood: ${JSON.stringify(line)}`);
    const offset = Number(line) * LINE_BYTES - start;
    if (offset < this.#offset) throw new Error(`byte ${offset} of the flood came behind byte ${this.#offset}`);
    this.#lost += offset - this.#offset;
    this.#offset = offset;
    this.#check(bytes);
  }

  #check(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const from = this.#offset % BLOCK_BYTES;
      const expected = block(Math.floor(this.#offset / BLOCK_BYTES)).subarray(from, from + bytes.length - at);
      const piece = bytes.subarray(at, at + expected.length);
      if (expected.compare(piece) !== 0) {
        const wrong = piece.findIndex((byte, index) => byte !== expected[index]);
        const found = Buffer.from(piece.subarray(wrong, wrong + 2 * LINE_BYTES)).toString('latin1');
        throw new Error(`byte ${this.#offset + wrong} of the flood is wrong; from there: ${JSON.stringify(found)}`);
      }
      at += expected.length;
      this.#offset += expected.length;
    }
  }
}
