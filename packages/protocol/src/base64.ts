/** Standard base64 with padding, as strict as the wire asks for: one spelling per byte sequence. Pure. */

/**
 * What {@link decodeBase64} gives. Of a text that is not strict base64 `detail` names the first fault, in the words of
 * the reference's decoder.
 */
export type Base64Result =
  | { readonly ok: true; readonly bytes: Uint8Array }
  /** `detail` is the text of the reference's decoder. */
  | { readonly ok: false; readonly detail: string };

export interface Base64Codec {
  readonly encodeBase64: (bytes: Uint8Array) => string;
  /** The bytes share no memory with anything else. */
  readonly decodeBase64: (text: string) => Base64Result;
}

/** What is used of a host's `Buffer`; spelled out, so that these types need none of Node. */
interface HostBuffer {
  from(bytes: ArrayBufferLike, byteOffset: number, length: number): HostBytes;
  from(text: string, encoding: 'base64'): HostBytes;
}
interface HostBytes extends Uint8Array {
  toString(encoding?: 'base64'): string;
}

/** Up to here a table is faster than a call into the host. */
const SHORT_TEXT = 400;

/** The codec on top of a host's `Buffer`, or without one. */
export function createBase64Codec(hostBuffer: HostBuffer | undefined): Base64Codec {
  return {
    encodeBase64(bytes) {
      return hostBuffer === undefined ? encodeByBtoa(bytes) : encodeByBuffer(bytes, hostBuffer);
    },
    decodeBase64(text) {
      const bytes =
        hostBuffer === undefined || text.length <= SHORT_TEXT ? decodeByTable(text) : decodeByBuffer(text, hostBuffer);
      return bytes === undefined ? { ok: false, detail: findFault(text) } : { ok: true, bytes };
    },
  };
}

/** Browsers have no `Buffer`; the types of Node say it is always there. */
const host: { readonly Buffer?: HostBuffer } = globalThis;

export const {
  /** Bytes as standard base64 with padding. Takes memory and time in proportion to them. */
  encodeBase64,
  /**
   * The bytes of a base64 text, in the one spelling `encodeBase64` gives: no line breaks, no URL alphabet, no missing padding, no
   * stray bits. Never throws; the bytes share no memory with anything else.
   */
  decodeBase64,
} = createBase64Codec(host.Buffer);

function encodeByBuffer({ buffer, byteOffset, byteLength }: Uint8Array, hostBuffer: HostBuffer): string {
  return hostBuffer.from(buffer, byteOffset, byteLength).toString('base64');
}

function decodeByBuffer(text: string, hostBuffer: HostBuffer): Uint8Array | undefined {
  const bytes = hostBuffer.from(text, 'base64');
  // The host takes other spellings, too. Bytes have one strict spelling: encoding them again finds every deviation.
  if (bytes.toString('base64') !== text) return undefined;
  // Short results lie in a pool; a view would pin it and show its other content through `bytes.buffer`.
  const isPooled = bytes.byteLength !== bytes.buffer.byteLength;
  return isPooled ? new Uint8Array(bytes) : new Uint8Array(bytes.buffer);
}

/** Bytes per call of `btoa`: a multiple of 3, so that only the last call pads, and few enough to pass as arguments. */
const STEP_BYTES = 3 * 4096;

function encodeByBtoa(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    const binary: unknown = Reflect.apply(String.fromCharCode, undefined, bytes.subarray(at, at + STEP_BYTES));
    text += btoa(String(binary));
  }
  return text;
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** The bit that no value of a symbol has. */
const INVALID = 64;
const values = new Uint8Array(128).fill(INVALID);
for (let value = 0; value < ALPHABET.length; value++) values[ALPHABET.charCodeAt(value)] = value;

function decodeByTable(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const symbols = text.length - padding;
  const valueAt = (at: number): number => (at < symbols ? (values[text.charCodeAt(at)] ?? INVALID) : 0);
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let seen = 0;
  let dropped = 0;
  for (let at = 0, to = 0; at < text.length; at += 4, to += 3) {
    const [a, b, c, d] = [valueAt(at), valueAt(at + 1), valueAt(at + 2), valueAt(at + 3)];
    seen |= a | b | c | d;
    // Writes beyond the end of the bytes are ignored; bits that belong there must be zero.
    bytes[to] = (a << 2) | (b >> 4);
    bytes[to + 1] = (b << 4) | (c >> 2);
    bytes[to + 2] = (c << 6) | d;
    dropped = padding === 2 ? b & 15 : c & 3;
  }
  return (seen & INVALID) !== 0 || (padding > 0 && dropped !== 0) ? undefined : bytes;
}

const PAD = '=';
const OUTSIDE_ALPHABET = /[^A-Za-z0-9+/]/;

/** Names the first fault of a text that is known to have one, in the order in which the reference looks. */
function findFault(text: string): string {
  const tailLength = text.length % 4;
  const last = text.slice(-1);
  if (tailLength === 1 && last !== PAD && OUTSIDE_ALPHABET.test(last)) return invalidSymbol(text, text.length - 1);

  // The last quad, complete or not, is where padding may stand.
  const tailAt = Math.max(text.length - (tailLength === 0 ? 4 : tailLength), 0);
  const outside = text.search(OUTSIDE_ALPHABET);
  if (outside !== -1 && outside < tailAt) return invalidSymbol(text, outside);

  const tail = text.slice(tailAt);
  const symbols = tail.replace(/=+$/, '');
  const fault = symbols.search(OUTSIDE_ALPHABET);
  if (fault !== -1) return invalidSymbol(text, tailAt + fault);
  if (symbols.length < 2) {
    // Padding where a second symbol belongs is a wrong symbol; a lone symbol is a wrong length.
    return symbols.length < tail.length
      ? invalidSymbol(text, tailAt + symbols.length)
      : `Invalid input length: ${tailAt + symbols.length}`;
  }
  if (tail.length !== 4) return 'Invalid padding';
  const lastSymbolAt = tailAt + symbols.length - 1;
  return `Invalid last symbol ${text.charCodeAt(lastSymbolAt)}, offset ${lastSymbolAt}.`;
}

/** Symbol and offset are those of the UTF-8 bytes. */
function invalidSymbol(text: string, at: number): string {
  const encoder = new TextEncoder();
  const [byte = 0] = encoder.encode(String.fromCodePoint(text.codePointAt(at) ?? 0));
  return `Invalid symbol ${byte}, offset ${encoder.encode(text.slice(0, at)).length}.`;
}
