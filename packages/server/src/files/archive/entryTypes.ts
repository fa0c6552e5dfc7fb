/**
 * The type of each entry of an archive, in their order, read along with the decoder: that one takes types it does not know for
 * files, and what follows is not the content of one.
 */
import { Buffer } from 'node:buffer';

const BLOCK_BYTES = 512;
/** Types whose size is not the length of a content that follows. */
const WITHOUT_CONTENT = new Set(['1', '2', '3', '4', '5', '6']);
/** What stands in front of an entry and is none: attributes of one, attributes of all, long names. */
const IN_FRONT = new Set(['x', 'g', 'L', 'K']);
/** Attributes that are longer are not looked at; the decoder refuses them. */
const MAX_ATTRIBUTES_BYTES = 8 * 1024 * 1024;
/** Files, links, devices, folders, FIFOs, and files that lie in one piece. */
const KNOWN = new Set(['0', '\0', '1', '2', '3', '4', '5', '6', '7']);

/** Whether the decoder and this server mean the same by it. */
export function isKnownType(type: string): boolean {
  return KNOWN.has(type);
}

export class EntryTypes {
  readonly #types: string[] = [];
  #kept: Buffer[] = [];
  #keptBytes = 0;
  /** Bytes of content to pass over. */
  #skip = 0;
  /** The attributes that are being collected: their type, and their length without the padding. */
  #attributes: { readonly type: string; readonly size: number } | undefined;
  /** A size in the attributes of the next entry, and in those of all. */
  #nextSize: number | undefined;
  #globalSize: number | undefined;
  #isOver = false;

  /** The next bytes of the archive, before the decoder has them. */
  feed(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length && !this.#isOver; ) {
      if (this.#skip > 0) {
        const passed = Math.min(this.#skip, bytes.length - at);
        this.#skip -= passed;
        at += passed;
        continue;
      }
      const wanted = this.#attributes === undefined ? BLOCK_BYTES : padded(this.#attributes.size);
      const taken = bytes.subarray(at, at + wanted - this.#keptBytes);
      at += taken.length;
      this.#kept.push(Buffer.from(taken));
      this.#keptBytes += taken.length;
      if (this.#keptBytes === wanted) this.#use(Buffer.concat(this.#kept));
    }
  }

  /** Of the next entry the decoder gives. */
  next(): string | undefined {
    return this.#types.shift();
  }

  #use(kept: Buffer): void {
    this.#kept = [];
    this.#keptBytes = 0;
    const attributes = this.#attributes;
    this.#attributes = undefined;
    if (attributes !== undefined) this.#useAttributes(attributes.type, kept.subarray(0, attributes.size));
    else if (kept.every((byte) => byte === 0)) this.#isOver = true;
    else this.#useHeader(kept);
  }

  #useHeader(header: Buffer): void {
    const type = header.toString('latin1', 156, 157);
    const size = sizeOf(header);
    if (IN_FRONT.has(type)) {
      const isRead = (type === 'x' || type === 'g') && size > 0 && size <= MAX_ATTRIBUTES_BYTES;
      if (isRead) this.#attributes = { type, size };
      else this.#skip = padded(size);
      return;
    }
    this.#types.push(type);
    this.#skip = WITHOUT_CONTENT.has(type) ? 0 : padded(this.#nextSize ?? this.#globalSize ?? size);
    this.#nextSize = undefined;
  }

  #useAttributes(type: string, bytes: Buffer): void {
    const size = sizeAmong(bytes);
    if (type === 'x') this.#nextSize = size;
    else this.#globalSize = size ?? this.#globalSize;
  }
}

function padded(size: number): number {
  return Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
}

/** Octal digits, or, with the highest bit set, a number of eleven bytes. */
function sizeOf(header: Buffer): number {
  const field = header.subarray(124, 136);
  if (((field[0] ?? 0) & 0x80) === 0) return Number.parseInt(field.toString('latin1').trim(), 8) || 0;
  return field.subarray(1).reduce((size, byte) => size * 256 + byte, 0);
}

/** Records are `length key=value` and a line feed; `length` counts all of it. */
function sizeAmong(bytes: Buffer): number | undefined {
  let size: number | undefined;
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(' ', at, 'latin1');
    const length = space < 0 ? 0 : Number.parseInt(bytes.toString('latin1', at, space), 10);
    if (!(length > 0)) return size;
    const value = /^size=(\d+)$/.exec(bytes.toString('latin1', space + 1, at + length - 1))?.[1];
    if (value !== undefined) size = Number(value);
    at += length;
  }
  return size;
}
