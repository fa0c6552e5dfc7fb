/**
 * Finds message boundaries in one direction of a WebSocket connection (RFC 6455 §5.2), without changing a byte. Reads frame
 * headers only; payloads are unmasked for the text of small messages. Pure.
 */
import { decodeText, HeldBytes, INSPECT_BYTES, type MessageScanner, type Scanned } from './scanner.js';

const HEAD_END = [0x0d, 0x0a, 0x0d, 0x0a];
/** An HTTP head beyond this is no upgrade. */
const MAX_HEAD_BYTES = 64 * 1024;
const CONTINUATION = 0;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PONG = 10;

interface Frame {
  readonly opcode: number;
  readonly final: boolean;
  readonly compressed: boolean;
  readonly payloadBytes: number;
  readonly mask: Uint8Array | undefined;
}

/** Starts with the HTTP head; what turns out to be no WebSocket passes as bytes without messages. */
export class WebSocketScanner implements MessageScanner {
  inspect = false;
  #mode: 'head' | 'frames' | 'opaque' = 'head';
  readonly #statusLine: number[] = [];
  #headBytes = 0;
  #headMatched = 0;
  readonly #header = new Uint8Array(14);
  #headerHave = 0;
  #frame: Frame | undefined;
  #payloadLeft = 0;
  /** Inside a message whose final frame has not ended. */
  #inMessage = false;
  /** Whether the bytes of the current message wait for its end. */
  #holding = false;
  readonly #held = new HeldBytes();
  readonly #text = new HeldBytes();

  push(chunk: Uint8Array): Scanned[] {
    const out: Scanned[] = [];
    let from = 0;
    let at = 0;
    const pass = (): void => {
      if (at > from) out.push({ bytes: chunk.subarray(from, at), endsMessage: false, text: undefined });
      from = at;
    };
    while (at < chunk.length) {
      if (this.#mode === 'opaque') {
        at = chunk.length;
      } else if (this.#mode === 'head') {
        this.#head(chunk[at] ?? 0);
        at += 1;
      } else if (this.#frame === undefined) {
        if (this.#headerHave === 0 && !this.#inMessage && this.inspect) {
          pass();
          this.#holding = true;
        }
        this.#header[this.#headerHave] = chunk[at] ?? 0;
        this.#headerHave += 1;
        at += 1;
        this.#beginFrame(out);
      } else {
        const count = Math.min(this.#payloadLeft, chunk.length - at);
        this.#payload(this.#frame, chunk.subarray(at, at + count));
        at += count;
        this.#payloadLeft -= count;
      }
      if (this.#frame !== undefined && this.#payloadLeft === 0 && this.#endFrame(this.#frame)) {
        const tail = chunk.subarray(from, at);
        from = at;
        out.push(this.#endMessage(tail));
      }
    }
    if (this.#holding) this.#held.push(chunk.subarray(from, at));
    else pass();
    return out;
  }

  end(): Scanned[] {
    this.#holding = false;
    return this.#held.length === 0 ? [] : [{ bytes: this.#held.take(), endsMessage: false, text: undefined }];
  }

  #head(byte: number): void {
    if (this.#statusLine.length < 12) this.#statusLine.push(byte);
    this.#headBytes += 1;
    if (byte === HEAD_END[this.#headMatched]) this.#headMatched += 1;
    else this.#headMatched = byte === HEAD_END[0] ? 1 : 0;
    if (this.#headMatched === HEAD_END.length) {
      const start = String.fromCharCode(...this.#statusLine);
      this.#mode = start.startsWith('HTTP/') && !start.endsWith(' 101') ? 'opaque' : 'frames';
    } else if (this.#headBytes > MAX_HEAD_BYTES) {
      this.#mode = 'opaque';
    }
  }

  /** Once the header is whole: says what follows, and whether the message is still one to hold back. */
  #beginFrame(out: Scanned[]): void {
    const frame = parseHeader(this.#header, this.#headerHave);
    if (frame === 'incomplete') return;
    this.#headerHave = 0;
    if (frame === 'invalid') {
      this.#mode = 'opaque';
      this.#letGo(out);
      return;
    }
    this.#frame = frame;
    this.#payloadLeft = frame.payloadBytes;
    if (!this.#holding) return;
    const isControl = frame.opcode >= CLOSE;
    const unreadable = frame.opcode === BINARY || (frame.opcode === TEXT && frame.compressed);
    const tooLong = !isControl && this.#text.length + frame.payloadBytes > INSPECT_BYTES;
    // A control frame between the frames of a held message waits with it: the order of bytes never changes.
    if (unreadable || tooLong || (isControl && !this.#inMessage)) this.#letGo(out);
  }

  #letGo(out: Scanned[]): void {
    if (this.#held.length > 0) out.push(...this.end());
    this.#holding = false;
    this.#text.take();
  }

  #payload(frame: Frame, bytes: Uint8Array): void {
    if (!this.#holding || frame.opcode >= CLOSE) return;
    const offset = frame.payloadBytes - this.#payloadLeft;
    this.#text.push(frame.mask === undefined ? bytes : unmask(bytes, frame.mask, offset));
  }

  /** Whether the frame that ends here ends a message. */
  #endFrame(frame: Frame): boolean {
    this.#frame = undefined;
    if (frame.opcode >= CLOSE) return false;
    this.#inMessage = !frame.final;
    return frame.final;
  }

  #endMessage(tail: Uint8Array): Scanned {
    if (!this.#holding) return { bytes: tail, endsMessage: true, text: undefined };
    this.#holding = false;
    this.#held.push(tail);
    return { bytes: this.#held.take(), endsMessage: true, text: decodeText(this.#text.take()) };
  }
}

function parseHeader(header: Uint8Array, have: number): Frame | 'incomplete' | 'invalid' {
  const [first = 0, second = 0] = header;
  const opcode = first & 0x0f;
  const isKnown = (opcode >= CONTINUATION && opcode <= BINARY) || (opcode >= CLOSE && opcode <= PONG);
  if (have >= 1 && (!isKnown || (first & 0x30) !== 0)) return 'invalid';
  if (have < 2) return 'incomplete';
  const shortLength = second & 0x7f;
  const lengthBytes = shortLength === 126 ? 2 : shortLength === 127 ? 8 : 0;
  const maskAt = 2 + lengthBytes;
  const isMasked = (second & 0x80) !== 0;
  if (have < maskAt + (isMasked ? 4 : 0)) return 'incomplete';
  let payloadBytes = lengthBytes === 0 ? shortLength : 0;
  for (let index = 2; index < maskAt; index += 1) payloadBytes = payloadBytes * 256 + (header[index] ?? 0);
  if (!Number.isSafeInteger(payloadBytes)) return 'invalid';
  return {
    opcode,
    final: (first & 0x80) !== 0,
    compressed: (first & 0x40) !== 0,
    payloadBytes,
    mask: isMasked ? header.slice(maskAt, maskAt + 4) : undefined,
  };
}

function unmask(bytes: Uint8Array, mask: Uint8Array, offset: number): Uint8Array {
  return bytes.map((byte, index) => byte ^ (mask[(offset + index) % 4] ?? 0));
}
