/** The first bytes of one stream, and how many there were. Pure. */

/** Kept in one piece: a program that writes single bytes costs no more than they are. */
export class FirstBytes {
  readonly #maxBytes: number;
  #kept = new Uint8Array(0);
  #length = 0;
  total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get truncated(): boolean {
    return this.total > this.#length;
  }

  add(bytes: Uint8Array): void {
    this.total += bytes.byteLength;
    const taken = bytes.subarray(0, this.#maxBytes - this.#length);
    const length = this.#length + taken.byteLength;
    if (length > this.#kept.byteLength) {
      const grown = new Uint8Array(Math.min(Math.max(length, 2 * this.#kept.byteLength), this.#maxBytes));
      grown.set(this.#kept.subarray(0, this.#length));
      this.#kept = grown;
    }
    this.#kept.set(taken, this.#length);
    this.#length = length;
  }

  bytes(): Uint8Array {
    return this.#kept.slice(0, this.#length);
  }
}
