/** Seeded randomness, so that a failing run can be repeated. Pure. */

/** What a generator may be seeded with. */
export type Seed = number | string;

/**
 * A small deterministic generator (mulberry32). Good enough to choose cut points and test inputs, not for secrets.
 *
 * @example
 * ```ts
 * const random = seededRandom(42);
 * random.integer(6); // the same number in every run
 * const cuts = random.fork('cuts'); // not disturbed by what `random` hands out
 * ```
 */
export interface SeededRandom {
  /** What it was made from; a fork carries the path of its labels. */
  readonly seed: Seed;
  /** The next number in [0, 1). */
  next(): number;
  /** The next whole number in [0, maxExclusive). Throws a `RangeError` unless `maxExclusive` is a whole number from 1 to 2^32. */
  integer(maxExclusive: number): number;
  /** One item; throws a `RangeError` for an empty list. */
  pick<T>(list: readonly T[]): T;
  /** A generator that depends on this one's seed and the label alone, never on how many numbers were drawn before. */
  fork(label: string): SeededRandom;
}

/** Makes a generator; equal seeds give equal sequences. `1` and `'1'` are different seeds. */
export function seededRandom(seed: Seed): SeededRandom {
  return new Mulberry32(seed);
}

/** The seed in words, for the message of a failing test: says how to repeat the run. */
export function describeSeed(seed: Seed): string {
  const literal = JSON.stringify(seed);
  return `seed ${literal} (repeat with { seed: ${literal} })`;
}

class Mulberry32 implements SeededRandom {
  readonly seed: Seed;
  #state: number;

  constructor(seed: Seed) {
    this.seed = seed;
    this.#state = hash(typeof seed === 'number' ? `#${seed}` : seed);
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  integer(maxExclusive: number): number {
    if (!Number.isInteger(maxExclusive) || maxExclusive < 1 || maxExclusive > 2 ** 32) {
      throw new RangeError(`maxExclusive must be a whole number from 1 to 2^32, not ${maxExclusive}`);
    }
    return Math.floor(this.next() * maxExclusive);
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new RangeError('cannot pick from an empty list');
    const chosen = this.integer(list.length);
    for (const [index, item] of list.entries()) if (index === chosen) return item;
    throw new RangeError('the list became shorter while an item was picked');
  }

  fork(label: string): SeededRandom {
    return new Mulberry32(`${typeof this.seed === 'number' ? `#${this.seed}` : this.seed}/${label}`);
  }
}

/** FNV-1a over UTF-16 units, with a final mix so that near labels start far apart. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) | 0;
}
