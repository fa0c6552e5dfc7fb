/** The smallest of many names, in bounded memory. Pure. */

export interface Named {
  /** One character a byte, so that texts compare as bytes do. */
  readonly name: string;
}

/** Keeps the `most` smallest of what it is offered; holds at most twice as many. */
export class Smallest<T extends Named> {
  readonly #most: number;
  #kept: T[] = [];
  /** With `most` kept, nothing from here on can be among them. */
  #bound: string | undefined;
  #dropped = false;

  /** `most`: at least 1. */
  constructor(most: number) {
    this.#most = most;
  }

  offer(item: T): void {
    if (this.#bound !== undefined && item.name >= this.#bound) {
      this.#dropped = true;
      return;
    }
    this.#kept.push(item);
    if (this.#kept.length >= 2 * this.#most) this.#shrink();
  }

  /** In order; `more` says whether others were offered. */
  take(): { readonly items: readonly T[]; readonly more: boolean } {
    this.#shrink();
    return { items: this.#kept, more: this.#dropped };
  }

  #shrink(): void {
    this.#kept.sort(byName);
    if (this.#kept.length > this.#most) {
      this.#dropped = true;
      this.#kept.length = this.#most;
    }
    if (this.#kept.length === this.#most) this.#bound = this.#kept.at(-1)?.name;
  }
}

export function byName(one: Named, other: Named): number {
  return one.name < other.name ? -1 : one.name > other.name ? 1 : 0;
}
