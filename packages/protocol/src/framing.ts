/** Newline-delimited messages: bytes to lines, each byte scanned once, and lines to text. Pure. */
import { MAX_MESSAGE_BYTES } from './limits.js';

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/** What a piece of input completes: a line, or the end of it all because one is too long. */
export type LineResult =
  /** One line without its end; a view of the chunk when the line lies within it, so a chunk must not be reused. */
  | { readonly kind: 'line'; readonly line: Uint8Array }
  /** A line is longer than the limit; it is the last result, since where the next message begins is unknown. */
  | { readonly kind: 'tooLong'; readonly limitBytes: number };

const NOTHING = new Uint8Array(0);

/**
 * Cuts a byte stream into lines ended by LF. A CR before it is dropped, blank lines are skipped. Holds at most one
 * unfinished line, in at most twice its bytes.
 */
export class LineDecoder {
  readonly #limitBytes: number;
  /** Room for the unfinished line; grows by doubling, so that dripped bytes cost neither an object nor a copy each. */
  #room = NOTHING;
  #pendingBytes = 0;
  #done = false;

  /** `limitBytes` is the length of the longest line, without LF but with the CR before it. */
  constructor(limitBytes: number = MAX_MESSAGE_BYTES) {
    this.#limitBytes = limitBytes;
  }

  /** The lines that `chunk` completes, in order. After `tooLong` or `end` there are none. */
  push(chunk: Uint8Array): readonly LineResult[] {
    if (this.#done) return [];
    const results: LineResult[] = [];
    let from = 0;
    for (let to = chunk.indexOf(LF); to !== -1; to = chunk.indexOf(LF, from)) {
      if (this.#exceeds(to - from)) return [...results, this.#fail()];
      addLine(results, this.#take(chunk.subarray(from, to)));
      from = to + 1;
    }
    if (this.#exceeds(chunk.length - from)) return [...results, this.#fail()];
    if (from < chunk.length) this.#hold(chunk.subarray(from));
    return results;
  }

  /** The last line, when the input ends without LF. */
  end(): readonly LineResult[] {
    if (this.#done) return [];
    this.#done = true;
    const results: LineResult[] = [];
    addLine(results, this.#take(NOTHING));
    return results;
  }

  #exceeds(moreBytes: number): boolean {
    return this.#pendingBytes + moreBytes > this.#limitBytes;
  }

  #fail(): LineResult {
    this.#done = true;
    this.#take(NOTHING);
    return { kind: 'tooLong', limitBytes: this.#limitBytes };
  }

  /** Ends the pending line with `rest`. Its memory goes with it. */
  #take(rest: Uint8Array): Uint8Array {
    if (this.#pendingBytes === 0) return rest;
    this.#hold(rest);
    const line = this.#room.subarray(0, this.#pendingBytes);
    this.#room = NOTHING;
    this.#pendingBytes = 0;
    return line;
  }

  #hold(piece: Uint8Array): void {
    const needed = this.#pendingBytes + piece.length;
    if (needed > this.#room.length) {
      const grown = new Uint8Array(Math.max(needed, Math.min(2 * this.#room.length, this.#limitBytes)));
      grown.set(this.#room.subarray(0, this.#pendingBytes));
      this.#room = grown;
    }
    this.#room.set(piece, this.#pendingBytes);
    this.#pendingBytes = needed;
  }
}

function addLine(results: LineResult[], bytes: Uint8Array): void {
  const line = bytes.at(-1) === CR ? bytes.subarray(0, -1) : bytes;
  if (!isBlank(line)) results.push({ kind: 'line', line });
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === SPACE || (byte >= TAB && byte <= CR));
}

/** A byte order mark is kept, so that the message is refused as JSON and not silently repaired. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of UTF-8 bytes; undefined when they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
