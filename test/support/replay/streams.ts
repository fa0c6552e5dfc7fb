/**
 * Bytes that come in pieces, of which another server makes other pieces: compared by stream, not by message. The numbers of
 * such messages are compared by their order. Pure.
 */
import { byteCount } from './placeholders.js';
import { type JsonObject, textOf } from './transcript.js';

interface Piece {
  readonly stream: string;
  /** Base64, or `<BYTES n>`. */
  readonly content: string;
}

/** The stream a message is a piece of, and its content; undefined for other messages. */
export function pieceOf({ method, params }: JsonObject): Piece | undefined {
  const members = params as JsonObject | undefined;
  if (members === undefined) return undefined;
  if (method === 'process/output') {
    return {
      stream: `${textOf(members['processId'])} ${textOf(members['stream'])}`,
      content: textOf(members['chunk']),
    };
  }
  if (method === 'http/request/bodyDelta' && members['done'] === false) {
    return { stream: `response ${textOf(members['requestId'])}`, content: textOf(members['deltaBase64']) };
  }
  return undefined;
}

/** A notification without its number, which depends on how many pieces there were before it. */
export function withoutSeq(message: JsonObject): JsonObject {
  const { method, params } = message;
  if (typeof method !== 'string' || !/^(process|http)\//.test(method)) return message;
  // What has a method and is no request of ours has params that are an object.
  const { seq: _, ...others } = params as JsonObject;
  return { ...message, params: others };
}

/**
 * The answer to a read with its output in one piece a stream, and without the numbers that depend on the pieces; undefined for
 * other messages, and where a piece is known by its length alone.
 */
export function inOnePiece(message: JsonObject): JsonObject | undefined {
  const content = contentOf(message);
  if (content === undefined) return undefined;
  const result = message['result'] as JsonObject;
  const { nextSeq: _, exitedSeq: _exited, closedSeq: _closed, ...others } = result;
  const joined = [...content].map(([stream, bytes]) => ({ stream, chunk: bytes.toString('base64') }));
  return { ...message, result: { ...others, chunks: joined } };
}

/** How a read differs from the recorded one by its moment alone: it found what came later there, or not yet what came before. */
export interface Shift {
  /** Found beyond the recorded one. */
  readonly early: Buffer;
  /** Not there yet. */
  readonly late: Buffer;
}

/** By stream; undefined where it found other bytes, or the same. */
export function shiftOf(expected: JsonObject, actual: JsonObject): ReadonlyMap<string, Shift> | undefined {
  const [recorded, found] = [contentOf(expected), contentOf(actual)];
  if (recorded === undefined || found === undefined) return undefined;
  const shifts = new Map<string, Shift>();
  for (const stream of new Set([...recorded.keys(), ...found.keys()])) {
    const [one, other] = [recorded.get(stream) ?? Buffer.alloc(0), found.get(stream) ?? Buffer.alloc(0)];
    const common = Math.min(one.length, other.length);
    if (!other.subarray(0, common).equals(one.subarray(0, common))) return undefined;
    if (one.length !== other.length) shifts.set(stream, { early: other.subarray(common), late: one.subarray(common) });
  }
  return shifts.size === 0 ? undefined : shifts;
}

/** An answer to a read without its output and the numbers that depend on it. */
export function withoutContent(message: JsonObject): JsonObject {
  const { chunks: _, nextSeq: _next, ...others } = (message['result'] ?? {}) as JsonObject;
  return { ...message, result: others };
}

/** The output an answer to a read holds, by stream; undefined where it is known by its length alone, or is none. */
function contentOf({ result }: JsonObject): Map<string, Buffer> | undefined {
  const chunks = (result as JsonObject | null | undefined)?.['chunks'];
  if (!Array.isArray(chunks)) return undefined;
  const bytes = new Map<string, Buffer[]>();
  for (const chunk of chunks as readonly JsonObject[]) {
    const content = textOf(chunk['chunk']);
    if (byteCount(content) !== undefined) return undefined;
    add(bytes, textOf(chunk['stream']), Buffer.from(content, 'base64'));
  }
  return new Map([...bytes].map(([stream, parts]) => [stream, Buffer.concat(parts)]));
}

export class Streams {
  /** Applied to what came before it is compared. */
  readonly #strip: (output: Buffer) => Buffer;
  readonly #expected = new Map<string, (Buffer | number)[]>();
  readonly #actual = new Map<string, Buffer[]>();
  readonly #lastSeq = new Map<string, number>();
  /** What a read found beyond the recorded one, and where in the stream that is. */
  readonly #found = new Map<string, { readonly at: number; readonly bytes: Buffer }>();

  constructor(strip: (output: Buffer) => Buffer = (output) => output) {
    this.#strip = strip;
  }

  /**
   * A read had another moment than the recorded one. What it found early was pushed behind it in the recording: the one or the
   * other is as good. What was not there yet has to be pushed.
   */
  shift(stream: string, { early, late }: Shift): void {
    if (early.length > 0) this.#found.set(stream, { at: this.#expectedLength(stream), bytes: early });
    if (late.length > 0) add(this.#expected, stream, late);
  }

  expect({ stream, content }: Piece): void {
    add(this.#expected, stream, byteCount(content) ?? Buffer.from(content, 'base64'));
  }

  receive({ stream, content }: Piece): void {
    add(this.#actual, stream, Buffer.from(content, 'base64'));
  }

  /** What is wrong with the number of a message: it does not grow, or leaves a hole in a response. */
  seqFault({ method, params }: JsonObject): string | undefined {
    const { seq, processId, requestId, done } = (params ?? {}) as JsonObject;
    if (typeof seq !== 'number' || method === undefined) return undefined;
    const source = processId === undefined ? `response ${textOf(requestId)}` : `process ${textOf(processId)}`;
    const last = this.#lastSeq.get(source) ?? 0;
    if (done === true) this.#lastSeq.delete(source);
    else this.#lastSeq.set(source, seq);
    const isNext = processId === undefined ? seq === last + 1 : seq > last;
    return isNext ? undefined : `seq ${seq} of ${source} came behind ${last}`;
  }

  /** Whether everything expected of this stream is there. Throws when other bytes are. */
  has(stream: string): boolean {
    const faults: string[] = [];
    for (const actual of this.#readings(stream)) {
      const fault = this.#fault(stream, actual);
      if (fault === undefined && actual.length >= this.#expectedLength(stream)) return true;
      if (fault !== undefined) faults.push(fault);
    }
    if (faults.length === this.#readings(stream).length) throw new Error(`${stream}: ${faults[0]}`);
    return false;
  }

  /** Streams that lack bytes of those expected. */
  missing(): string[] {
    return [...this.#expected.keys()].filter((stream) => {
      const most = Math.max(...this.#readings(stream).map(({ length }) => length));
      return most < this.#expectedLength(stream);
    });
  }

  /** Streams with bytes beyond those expected, and these bytes. */
  leftOver(): { readonly stream: string; readonly rest: string }[] {
    return [...this.#actual.keys()].flatMap((stream) => {
      const wanted = this.#expectedLength(stream);
      const readings = this.#readings(stream).filter((actual) => this.#fault(stream, actual) === undefined);
      const rests = readings.map((actual) => actual.subarray(wanted).toString('latin1'));
      const [rest = ''] = rests.sort((one, other) => one.length - other.length);
      return rest === '' ? [] : [{ stream, rest }];
    });
  }

  /** What came, and the same with what a read found in its place. */
  #readings(stream: string): readonly Buffer[] {
    const pushed = this.#strip(Buffer.concat(this.#actual.get(stream) ?? []));
    const found = this.#found.get(stream);
    if (found === undefined) return [pushed];
    const { at, bytes } = found;
    return [pushed, Buffer.concat([pushed.subarray(0, at), bytes, pushed.subarray(at)])];
  }

  #expectedLength(stream: string): number {
    const parts = this.#expected.get(stream) ?? [];
    return parts.reduce<number>((sum, part) => sum + (typeof part === 'number' ? part : part.length), 0);
  }

  /** Where these bytes are others than those expected. */
  #fault(stream: string, actual: Buffer): string | undefined {
    let at = 0;
    for (const part of this.#expected.get(stream) ?? []) {
      const length = typeof part === 'number' ? part : part.length;
      const here = actual.subarray(at, at + length);
      if (typeof part !== 'number' && !here.equals(part.subarray(0, here.length))) {
        return `${JSON.stringify(here.toString('latin1'))} where ${JSON.stringify(part.toString('latin1'))} was recorded`;
      }
      at += length;
    }
    return undefined;
  }
}

function add<T>(lists: Map<string, T[]>, name: string, item: T): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [item]);
  else list.push(item);
}
