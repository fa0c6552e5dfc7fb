/** What `JSON.parse` does not report: limits, repeated keys, where the id stands. Pure. */
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  LETTER_D,
  LETTER_I,
  LETTER_U,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  SEVEN,
  SPACE,
  isSpace,
} from './jsonText.js';
import { MAX_JSON_DEPTH, MAX_JSON_VALUES } from './limits.js';

export interface Survey {
  /** A limit is passed, a string does not end, or there are escaped surrogates, which may lack their other half. */
  readonly suspect: boolean;
  /** Members of all objects, equal keys counted each. */
  readonly members: number;
  /** Where the value of the outermost `id` begins; -1 when there is none. */
  readonly idAt: number;
}

/**
 * Counts what `JSON.parse` does not report, and stops at a limit so that it is not called with more. Exact for valid JSON;
 * otherwise `JSON.parse` refuses the text anyway. Strings are skipped whole, a long one costs two native searches.
 */
export function surveyJson(text: string): Survey {
  const { length } = text;
  let suspect = false;
  let members = 0;
  let idAt = -1;
  let depth = 0;
  /** Values but the outermost: commas, and one more for each container that is not empty. */
  let inner = 0;
  let stringAt = 0;
  let stringEnd = 0;
  let backslash = indexOrLength(text, '\\', 0);
  for (let at = 0; at < length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        stringAt = at;
        stringEnd = text.indexOf('"', at + 1);
        while (backslash < stringEnd) {
          if (isSurrogateEscape(text, backslash)) suspect = true;
          const next = backslash + 2;
          if (stringEnd < next) stringEnd = text.indexOf('"', next);
          backslash = indexOrLength(text, '\\', next);
        }
        if (stringEnd === -1) return { suspect: true, members, idAt };
        at = stringEnd;
        break;
      case COLON:
        members++;
        if (depth === 1 && isIdKey(text, stringAt + 1, stringEnd)) idAt = at + 1;
        break;
      case COMMA:
        if (++inner >= MAX_JSON_VALUES) return { suspect: true, members, idAt };
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (++depth > MAX_JSON_DEPTH) return { suspect: true, members, idAt };
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth--;
        if (!isOpening(text, at - 1) && ++inner >= MAX_JSON_VALUES) return { suspect: true, members, idAt };
        break;
      default:
    }
  }
  return { suspect, members, idAt };
}

function indexOrLength(text: string, search: string, from: number): number {
  const index = text.indexOf(search, from);
  return index === -1 ? text.length : index;
}

function isSurrogateEscape(text: string, backslash: number): boolean {
  if (text.charCodeAt(backslash + 1) !== LETTER_U) return false;
  // From \uD800 on; SPACE is the bit that makes a letter lower case.
  return (text.charCodeAt(backslash + 2) | SPACE) === LETTER_D && text.charCodeAt(backslash + 3) > SEVEN;
}

const escapedId = /^(?:i|\\u0069)(?:d|\\u0064)$/;

/** Whether a key, given by what stands between its quotes, is `id`, plain or escaped. */
function isIdKey(text: string, from: number, to: number): boolean {
  const length = to - from;
  if (length === 2) return text.charCodeAt(from) === LETTER_I && text.charCodeAt(from + 1) === LETTER_D;
  return (length === 7 || length === 12) && escapedId.test(text.slice(from, to));
}

/** Whether the last character up to `at` that is not space opens a container. */
function isOpening(text: string, at: number): boolean {
  let index = at;
  while (isSpace(text.charCodeAt(index))) index--;
  const char = text.charCodeAt(index);
  return char === OPEN_ARRAY || char === OPEN_OBJECT;
}

export type Container = Readonly<Record<string, unknown>>;

export function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

export function isObject(value: unknown): value is Container {
  return isContainer(value) && !Array.isArray(value);
}

/** Members of all objects in a parsed container, whose depth the survey has bounded. No array per object: hot path. */
export function countMembers(container: Container): number {
  let members = 0;
  if (Array.isArray(container)) {
    const items: readonly unknown[] = container;
    for (const item of items) if (isContainer(item)) members += countMembers(item);
    return members;
  }
  for (const key in container) {
    // What somebody put on `Object.prototype` shows up here, too.
    if (!Object.hasOwn(container, key)) continue;
    members++;
    const value = container[key];
    if (isContainer(value)) members += countMembers(value);
  }
  return members;
}
