/** What the placeholders of a transcript stand for, and whether a string is what a pattern with placeholders says. Pure. */
import type { Json } from './transcript.js';

const NAME = /<([A-Z]+\d*)>/g;

/** Name → value; names that are not here yet are bound by the first string that has them. */
export type Bound = ReadonlyMap<string, string>;

/** Puts values in the place of the names that have one. */
export function fill(text: string, bound: Bound): string {
  return text.replaceAll(NAME, (placeholder, name: string) => bound.get(name) ?? placeholder);
}

/** What a string binds when it is what the pattern says; undefined when it is not. */
export function matchText(pattern: string, text: string, bound: Bound): Bound | undefined {
  const names: string[] = [];
  const source = fill(pattern, bound)
    .split(NAME)
    .map((part, index) => {
      if (index % 2 === 0) return escape(part);
      if (part === 'ANY') return '[^]*';
      names.push(part);
      return '([^]+)';
    })
    .join('');
  const match = new RegExp(`^${source}$`).exec(text);
  return match === null ? undefined : new Map(names.map((name, index) => [name, match[index + 1] ?? '']));
}

/** Whether a value is of the kind a placeholder for kinds asks for; undefined when the pattern is no such placeholder. */
export function matchKind(pattern: string, value: Json | undefined): boolean | undefined {
  if (pattern === '<ANY>') return value !== undefined;
  if (pattern === '<INT>') return Number.isSafeInteger(value);
  if (pattern === '<MS>') return Number.isSafeInteger(value) && Number(value) >= 0;
  const count = byteCount(pattern);
  if (count === undefined) return undefined;
  return typeof value === 'string' && Buffer.from(value, 'base64').length === count;
}

/** The length that `<BYTES n>` asks for. */
export function byteCount(pattern: string): number | undefined {
  const digits = /^<BYTES (\d+)>$/.exec(pattern)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function escape(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}
