/** The contract between a byte flow and what finds message boundaries in it, and the line-based one. Pure. */

/** A run of bytes as they came; the runs joined are the input. */
export interface Scanned {
  readonly bytes: Uint8Array;
  /** Whether these bytes complete a message. */
  readonly endsMessage: boolean;
  /** The text of the message, and then `bytes` is the whole of it; absent where it was not inspected or is no small text. */
  readonly text: string | undefined;
}

export interface MessageScanner {
  /** Whether small messages are held back until they are whole, so that their text can be judged; looked at when one begins. */
  inspect: boolean;
  push(chunk: Uint8Array): Scanned[];
  /** The input has ended: what is still held back. */
  end(): Scanned[];
}

/** Longest message that is held back for its text; longer ones pass unseen, so that a proxy holds little. */
export const INSPECT_BYTES = 64 * 1024;

const LF = 0x0a;

/** Messages that are lines, as over stdio. */
export class LineScanner implements MessageScanner {
  inspect = false;
  #held = new HeldBytes();
  #holding = false;
  #inLine = false;

  push(chunk: Uint8Array): Scanned[] {
    const out: Scanned[] = [];
    let from = 0;
    while (from < chunk.length) {
      if (!this.#inLine) this.#holding = this.inspect;
      const end = chunk.indexOf(LF, from);
      const to = end === -1 ? chunk.length : end + 1;
      const piece = chunk.subarray(from, to);
      from = to;
      this.#inLine = end === -1;
      if (this.#holding && this.#held.length + piece.length > INSPECT_BYTES) {
        this.#holding = false;
        out.push(...this.end());
      }
      if (!this.#holding) {
        out.push({ bytes: piece, endsMessage: end !== -1, text: undefined });
      } else {
        this.#held.push(piece);
        if (end !== -1) {
          const bytes = this.#held.take();
          out.push({ bytes, endsMessage: true, text: decodeText(bytes.subarray(0, -1)) });
        }
      }
    }
    return out;
  }

  end(): Scanned[] {
    return this.#held.length === 0 ? [] : [{ bytes: this.#held.take(), endsMessage: false, text: undefined }];
  }
}

/** Pieces that are joined when they are taken. */
export class HeldBytes {
  #pieces: Uint8Array[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#length += piece.length;
  }

  take(): Uint8Array {
    const joined = new Uint8Array(this.#length);
    let at = 0;
    for (const piece of this.#pieces) {
      joined.set(piece, at);
      at += piece.length;
    }
    this.#pieces = [];
    this.#length = 0;
    return joined;
  }
}

/** Lenient: a text that is not UTF-8 still goes to the predicate, the bytes pass unchanged either way. */
export function decodeText(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}
