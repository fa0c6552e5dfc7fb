/** JSON-RPC messages: text to a tagged result, by the rules and in the words of the reference. Pure. */
import type { RequestId } from './ids.js';
import { FaultFinder, findFault } from './jsonFault.js';
import { type Container, countMembers, isContainer, isObject, surveyJson } from './jsonSurvey.js';
import { LETTER_E, MINUS, POINT, SPACE, isDigit, skipSpace, shorten } from './jsonText.js';

/** `error` of an error answer, as it came. */
export interface RpcError {
  /** See `ErrorCode`. */
  readonly code: number;
  /** For people. */
  readonly message: string;
  /** See `knownReason`. */
  readonly data?: unknown;
}

/** `params` is undefined when the message has none. */
export type Envelope =
  | { readonly kind: 'request'; readonly id: RequestId; readonly method: string; readonly params: unknown }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  | { readonly kind: 'result'; readonly id: RequestId; readonly result: unknown }
  /** The id is null where a foreign server could not read that of the request; the reference sends -1 then. */
  | { readonly kind: 'error'; readonly id: RequestId | null; readonly error: RpcError }
  /** `detail` is the text of the reference's parser. */
  | { readonly kind: 'malformed'; readonly detail: string };

/** Decodes one message. Never throws; time is linear in the length of the text. */
export function decodeEnvelope(text: string): Envelope {
  const survey = surveyJson(text);
  if (survey.suspect) {
    const fault = new FaultFinder(text).find();
    if (fault !== undefined) return malformed(fault);
  }
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return malformed(findFault(text));
  }
  // Of members with equal keys the parser keeps one.
  if (isContainer(message) && countMembers(message) !== survey.members) return malformed(findFault(text));
  return isObject(message) ? classify(message, text, survey.idAt) : malformed('expected a JSON-RPC object');
}

/** The JSON text of an id, as `decodeEnvelope` gave it or as a caller chose it. */
export function encodeRequestId(id: RequestId): string {
  if (typeof id === 'number') return String(id);
  if (id.startsWith(BIG_ID) && digits.test(id.slice(BIG_ID.length))) return id.slice(BIG_ID.length);
  return JSON.stringify(id.startsWith(TEXT_ID) ? id.slice(TEXT_ID.length) : id);
}

/**
 * Integers beyond 2^53 have no exact number and must be echoed digit by digit: such an id is kept as this prefix and its
 * digits. A string of the peer that begins with either prefix is kept behind the other one. Only `encodeRequestId` may
 * write an id to the wire.
 */
const BIG_ID = '\u0000int:';
const TEXT_ID = '\u0000str:';
const digits = /^-?\d{1,19}$/;

const MIN_ID = -(2n ** 63n);
const MAX_ID = 2n ** 63n - 1n;
const LONGEST_ID = String(MIN_ID).length;

/** The id of a message; undefined when it is not one. `idAt` is where its value begins in the text. */
function decodeId(id: unknown, text: string, idAt: number): RequestId | undefined {
  if (typeof id === 'string') return id.startsWith(BIG_ID) || id.startsWith(TEXT_ID) ? TEXT_ID + id : id;
  if (typeof id !== 'number') return undefined;
  // The text decides: 1.0 and 1e3 are no integers, and a large one is rounded.
  const at = skipSpace(text, idAt);
  let end = text.charCodeAt(at) === MINUS ? at + 1 : at;
  while (isDigit(text.charCodeAt(end))) end++;
  if (text.charCodeAt(end) === POINT || (text.charCodeAt(end) | SPACE) === LETTER_E) return undefined;
  if (Number.isSafeInteger(id)) return id === 0 ? 0 : id;
  if (end - at > LONGEST_ID) return undefined;
  const exact = BigInt(text.slice(at, end));
  return exact >= MIN_ID && exact <= MAX_ID ? BIG_ID + text.slice(at, end) : undefined;
}

const BAD_ID = 'data did not match any variant of untagged enum RequestId';

function classify(message: Container, text: string, idAt: number): Envelope {
  const { id: rawId, method, params, trace, result, error } = message;
  const has = (member: string): boolean => Object.hasOwn(message, member);
  if (has('method')) {
    if (!has('id')) {
      return typeof method === 'string'
        ? { kind: 'notification', method, params }
        : malformed(wrongType(method, 'a string'));
    }
    const id = decodeId(rawId, text, idAt);
    if (id === undefined) return malformed(BAD_ID);
    if (typeof method !== 'string') return malformed(wrongType(method, 'a string'));
    if (trace !== undefined && trace !== null && !isObject(trace)) {
      return malformed(wrongType(trace, 'struct W3cTraceContext'));
    }
    return { kind: 'request', id, method, params };
  }
  if (has('result')) {
    if (!has('id')) return malformed('missing field `id`');
    const id = decodeId(rawId, text, idAt);
    return id === undefined ? malformed(BAD_ID) : { kind: 'result', id, result };
  }
  if (!has('error')) return malformed('missing field `error`');
  if (!has('id')) return malformed('missing field `id`');
  const id = rawId === null ? null : decodeId(rawId, text, idAt);
  return id === undefined ? malformed(BAD_ID) : decodeError(id, error);
}

function decodeError(id: RequestId | null, error: unknown): Envelope {
  if (!isObject(error)) return malformed(wrongType(error, 'struct JSONRPCErrorError'));
  const { code, message, data } = error;
  if (code === undefined) return malformed('missing field `code`');
  if (typeof code !== 'number') return malformed(wrongType(code, 'i64'));
  if (!Number.isInteger(code)) return malformed('invalid number');
  if (message === undefined) return malformed('missing field `message`');
  if (typeof message !== 'string') return malformed(wrongType(message, 'a string'));
  return { kind: 'error', id, error: data === undefined ? { code, message } : { code, message, data } };
}

function malformed(detail: string): Envelope {
  return { kind: 'malformed', detail };
}

function wrongType(value: unknown, expected: string): string {
  return `invalid type: ${nameType(value)}, expected ${expected}`;
}

function nameType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'sequence';
  switch (typeof value) {
    case 'string':
      return `string ${JSON.stringify(shorten(value))}`;
    case 'boolean':
      return `boolean \`${value}\``;
    case 'number':
      return 'number';
    default:
      return 'map';
  }
}
