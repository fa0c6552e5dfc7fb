/** Answers as JSON text, without going through payloads: base64 has nothing to escape. */

/** The member of a result that is a payload. */
const members = new WeakMap<object, string>();

/**
 * A payload from here on is laid into the answer as it is. `JSON.stringify` looks at each character, and a stream that is given
 * a string makes UTF-8 of it: with both, blocks of 1 MiB took two thirds more time.
 */
const PAYLOAD_FROM = 16 * 1024;

/** Says that this member of a result is base64, or other ASCII without a character that JSON escapes. Gives the result. */
export function withPayload<T extends object>(result: T, member: keyof T & string): T {
  members.set(result, member);
  return result;
}

const encoder = new TextEncoder();

/** Browsers have no `Buffer`; the types of Node say it is always there. */
const { Buffer: HostBuffer }: { readonly Buffer?: typeof globalThis.Buffer } = globalThis;

/** Every byte is written afterwards. Not from a shared pool, which an answer on its way would pin. */
const allocate = (bytes: number): Uint8Array => HostBuffer?.allocUnsafeSlow(bytes) ?? new Uint8Array(bytes);

/** A host that writes Latin-1 need not look for characters of several bytes. */
function writeAscii(bytes: Uint8Array, text: string, at: number): void {
  if (HostBuffer !== undefined && bytes instanceof HostBuffer) bytes.write(text, at, 'latin1');
  else encoder.encodeInto(text, bytes.subarray(at));
}

/** One that is to be sent, or the length of a result that is too long for it. */
export type AnswerText =
  | { readonly fits: true; readonly text: string | Uint8Array }
  | { readonly fits: false; readonly length: number | undefined };

/** `id` as it stands in JSON. A result of more than `mostLength` characters does not fit; its length is unknown beyond what a string can be. */
export function answerText(id: string, result: unknown, mostLength: number): AnswerText {
  const member = typeof result === 'object' && result !== null ? members.get(result) : undefined;
  const payload = member === undefined ? undefined : (result as Readonly<Record<string, unknown>>)[member];
  if (member !== undefined && typeof payload === 'string' && payload.length >= PAYLOAD_FROM) {
    return payloadAnswer(id, result as object, member, payload, mostLength);
  }
  const json = encoded(result);
  if (json === undefined || json.length > mostLength) return { fits: false, length: json?.length };
  return { fits: true, text: `{"id":${id},"result":${json}}` };
}

function payloadAnswer(id: string, result: object, member: string, payload: string, mostLength: number): AnswerText {
  const { [member]: _, ...rest } = result as Readonly<Record<string, unknown>>;
  const json = JSON.stringify(rest);
  const length = json.length + member.length + payload.length + (json === '{}' ? 5 : 6);
  if (length > mostLength) return { fits: false, length };
  const head = encoder.encode(`{"id":${id},"result":{${JSON.stringify(member)}:"`);
  const tail = encoder.encode(json === '{}' ? '"}}' : `",${json.slice(1)}}`);
  const text = allocate(head.length + payload.length + tail.length);
  text.set(head);
  writeAscii(text, payload, head.length);
  text.set(tail, head.length + payload.length);
  return { fits: true, text };
}

/** Undefined when the text would be longer than a string can be. */
function encoded(result: unknown): string | undefined {
  try {
    return JSON.stringify(result);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
