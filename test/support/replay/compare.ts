/** Where a message differs from the recorded one. Pure. */
import { type Bound, matchKind, matchText } from './placeholders.js';
import type { Json, JsonObject } from './transcript.js';

export interface Mismatch {
  /** Such as `result.entries.0.fileName`. */
  readonly path: string;
  /** Undefined where the server under test has more. */
  readonly expected: Json | undefined;
  /** Undefined where it has less. */
  readonly actual: Json | undefined;
}

export interface Comparison {
  readonly mismatches: readonly Mismatch[];
  /** Placeholders that this message gave a value. */
  readonly binds: Bound;
}

export function compare(expected: JsonObject, actual: JsonObject, bound: Bound): Comparison {
  const binds = new Map<string, string>();
  const mismatches: Mismatch[] = [];
  visit('', expected, actual);
  return { mismatches, binds };

  function visit(path: string, want: Json | undefined, have: Json | undefined): void {
    if (typeof want === 'string' && isEqualText(want, have)) return;
    if (isContainer(want) && isContainer(have) && Array.isArray(want) === Array.isArray(have)) {
      for (const key of new Set([...Object.keys(want), ...Object.keys(have)])) {
        visit(path === '' ? key : `${path}.${key}`, want[key], have[key]);
      }
      return;
    }
    if (want !== have) mismatches.push({ path, expected: want, actual: have });
  }

  function isEqualText(want: string, have: Json | undefined): boolean {
    const isOfKind = matchKind(want, have);
    if (isOfKind !== undefined) return isOfKind;
    const found = typeof have === 'string' ? matchText(want, have, new Map([...bound, ...binds])) : undefined;
    for (const [name, value] of found ?? []) binds.set(name, value);
    return found !== undefined;
  }
}

function isContainer(value: Json | undefined): value is JsonObject {
  // An array is looked at as an object with the positions as members.
  return typeof value === 'object' && value !== null;
}
