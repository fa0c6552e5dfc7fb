/** The two ends of a text of any length, within a bound; what lies between them is counted. Pure. */

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface Ends {
  /** What there was, or its two ends around a line that says how many bytes are left out. */
  readonly text: string;
  /** Bytes of UTF-8. */
  readonly omittedBytes: number;
}

/** Holds its bound in memory and no more, however much comes and in whatever pieces. */
export class BothEnds {
  readonly #head: Uint8Array;
  #headBytes = 0;
  readonly #tailSize: number;
  /** A ring: the last bytes of what came behind the head. Made when there are any. */
  #tail = new Uint8Array(0);
  #behindHead = 0;

  /** `maxBytes`: of UTF-8, the line in the middle not counted. */
  constructor(maxBytes: number) {
    const half = Math.ceil(maxBytes / 2);
    this.#head = new Uint8Array(half);
    this.#tailSize = maxBytes - half;
  }

  get isEmpty(): boolean {
    return this.#headBytes + this.#behindHead === 0;
  }

  add(text: string): void {
    const bytes = encoder.encode(text);
    const first = bytes.subarray(0, this.#head.byteLength - this.#headBytes);
    this.#head.set(first, this.#headBytes);
    this.#headBytes += first.byteLength;
    if (first.byteLength < bytes.byteLength) this.#addBehind(bytes.subarray(first.byteLength));
  }

  /** What came since the last time. */
  take(): Ends {
    const head = this.#head.subarray(0, this.#headBytes);
    const tail = this.#tailInOrder();
    const dropped = this.#behindHead - tail.byteLength;
    this.#headBytes = 0;
    this.#behindHead = 0;
    if (dropped === 0) {
      const whole = new Uint8Array(head.byteLength + tail.byteLength);
      whole.set(head);
      whole.set(tail, head.byteLength);
      return { text: decoder.decode(whole), omittedBytes: 0 };
    }
    // No character is shown in part: both ends give way.
    const headEnd = endOfCharacters(head);
    const tailStart = tail.findIndex((byte) => !isInside(byte));
    const behind = tailStart === -1 ? tail.subarray(tail.byteLength) : tail.subarray(tailStart);
    const omittedBytes = dropped + (head.byteLength - headEnd) + (tail.byteLength - behind.byteLength);
    const note = `\n[${omittedBytes} bytes left out]\n`;
    return { text: decoder.decode(head.subarray(0, headEnd)) + note + decoder.decode(behind), omittedBytes };
  }

  #addBehind(bytes: Uint8Array): void {
    const size = this.#tailSize;
    if (this.#tail.byteLength < size) this.#tail = new Uint8Array(size);
    // Of a piece that is larger than the ring only its end stays.
    const last = bytes.subarray(Math.max(bytes.byteLength - size, 0));
    const at = size === 0 ? 0 : (this.#behindHead + bytes.byteLength - last.byteLength) % size;
    const untilWrap = last.subarray(0, size - at);
    this.#tail.set(untilWrap, at);
    this.#tail.set(last.subarray(untilWrap.byteLength));
    this.#behindHead += bytes.byteLength;
  }

  #tailInOrder(): Uint8Array {
    const size = this.#tailSize;
    if (this.#behindHead <= size) return this.#tail.slice(0, this.#behindHead);
    const oldest = this.#behindHead % Math.max(size, 1);
    const ordered = new Uint8Array(size);
    ordered.set(this.#tail.subarray(oldest));
    ordered.set(this.#tail.subarray(0, oldest), size - oldest);
    return ordered;
  }
}

/** Whether a byte of UTF-8 goes on with a character. */
const isInside = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Where the whole characters of bytes that begin with one end. */
function endOfCharacters(bytes: Uint8Array): number {
  const end = bytes.byteLength;
  const last = bytes.findLastIndex((byte) => !isInside(byte));
  if (last === -1) return 0;
  const lead = bytes[last] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return last + length <= end ? end : last;
}
