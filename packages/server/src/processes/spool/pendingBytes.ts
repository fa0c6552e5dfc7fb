/**
 * Spooled bytes that are not on disk yet, by position. Small chunks are joined, so that a flood of them costs what its bytes
 * cost and is written in few pieces. Pure.
 */

/** Shorter chunks are copied into a slab; longer ones are kept as they are. */
const JOINED_BELOW_BYTES = 8 * 1024;
const SLAB_BYTES = 64 * 1024;

interface Piece {
  readonly position: number;
  /** Grows while the chunks that follow come to lie behind it in its slab. */
  bytes: Uint8Array;
}

export class PendingBytes {
  /** Ascending and adjacent; below the head nothing is held. */
  #pieces: (Piece | undefined)[] = [];
  #head = 0;
  #endPosition = 0;
  #slab = new Uint8Array(0);
  #slabUsed = 0;

  get endPosition(): number {
    return this.#endPosition;
  }

  /** The caller does not change the bytes any more. */
  append(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (bytes.length >= JOINED_BELOW_BYTES) this.#pieces.push({ position: this.#endPosition, bytes });
    else this.#join(bytes);
    this.#endPosition += bytes.length;
  }

  /** One appended chunk, without a copy. */
  chunk(position: number, length: number): Uint8Array {
    const piece = length === 0 ? undefined : this.#pieces[this.#find(position)];
    if (piece === undefined) return new Uint8Array(0);
    return piece.bytes.subarray(position - piece.position, position - piece.position + length);
  }

  /** What lies in `[from, from + maxBytes)`. */
  from(from: number, maxBytes: number): Uint8Array[] {
    const found: Uint8Array[] = [];
    const end = Math.min(from + maxBytes, this.#endPosition);
    let position = from;
    for (let index = this.#find(from); position < end; index += 1) {
      const piece = this.#pieces[index];
      if (piece === undefined) throw new RangeError(`position ${position} is not held`);
      const bytes = piece.bytes.subarray(position - piece.position, end - piece.position);
      found.push(bytes);
      position += bytes.length;
    }
    return found;
  }

  /** Frees what lies wholly below; a chunk that lies across stays whole. Beyond the end, the end moves there. */
  dropBelow(position: number): void {
    for (let piece = this.#pieces[this.#head]; piece !== undefined; piece = this.#pieces[this.#head]) {
      if (piece.position + piece.bytes.length > position) break;
      this.#pieces[this.#head] = undefined;
      this.#head += 1;
    }
    this.#endPosition = Math.max(this.#endPosition, position);
    if (this.#head === this.#pieces.length) {
      // Nothing held keeps no slab either.
      this.#slab = new Uint8Array(0);
      this.#slabUsed = 0;
    }
    if (this.#head * 2 < this.#pieces.length) return;
    this.#pieces.splice(0, this.#head);
    this.#head = 0;
  }

  #join(bytes: Uint8Array): void {
    const last = this.#pieces.at(-1);
    if (this.#slabUsed + bytes.length > this.#slab.length) {
      this.#slab = new Uint8Array(SLAB_BYTES);
      this.#slabUsed = 0;
    }
    const start = this.#slabUsed;
    this.#slab.set(bytes, start);
    this.#slabUsed += bytes.length;
    const follows = last?.bytes.buffer === this.#slab.buffer && last.bytes.byteOffset + last.bytes.length === start;
    if (follows) last.bytes = this.#slab.subarray(last.bytes.byteOffset, this.#slabUsed);
    else this.#pieces.push({ position: this.#endPosition, bytes: this.#slab.subarray(start, this.#slabUsed) });
  }

  /** Index of the piece that holds a position. */
  #find(position: number): number {
    let low = this.#head;
    let high = this.#pieces.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const piece = this.#pieces[middle];
      if (piece !== undefined && piece.position + piece.bytes.length <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
