/**
 * Bounds what the windows of many processes hold in memory together: past the limit the one that holds most gives way. Nested:
 * a session's budget lies in its server's. Pure.
 */

/** The retained window of one process. */
export interface Window {
  /** What it takes in memory. */
  readonly weightBytes: number;
  /** Lets go of its oldest events until it takes no more than this, as far as it may. */
  shrinkTo(weightBytes: number): void;
}

/** Windows that may give nothing, in one search for room; with more of them the budget is exceeded for now. */
const MOST_STUCK = 16;

export class WindowBudget {
  readonly limitBytes: number;
  readonly outer: WindowBudget | undefined;
  readonly #shares = new Set<WindowShare>();
  #usedBytes = 0;

  constructor(limitBytes: number, outer?: WindowBudget) {
    this.limitBytes = limitBytes;
    this.outer = outer;
  }

  /** What all windows in it hold, those of budgets within included. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Takes part in this budget and in all around it. */
  share(window: Window): WindowShare {
    return new WindowShare(window, this);
  }

  /** @internal For shares. */
  count(share: WindowShare, bytes: number): void {
    this.#usedBytes += bytes;
    if (share.countedBytes > 0) this.#shares.add(share);
    else this.#shares.delete(share);
  }

  /** @internal For shares. */
  relieve(): void {
    const stuck = new Set<WindowShare>();
    while (this.#usedBytes > this.limitBytes && stuck.size < MOST_STUCK) {
      const largest = this.#largest(stuck);
      if (largest === undefined) return;
      if (!largest.halve()) stuck.add(largest);
    }
  }

  /** It gives half, so that the search for it is paid for by what it frees. */
  #largest(without: ReadonlySet<WindowShare>): WindowShare | undefined {
    let largest: WindowShare | undefined;
    for (const share of this.#shares) {
      if (share.countedBytes > (largest?.countedBytes ?? 0) && !without.has(share)) largest = share;
    }
    return largest;
  }
}

/** One window's part in its budgets. */
export class WindowShare {
  readonly #window: Window;
  readonly #budget: WindowBudget;
  #countedBytes = 0;
  #ended = false;

  constructor(window: Window, budget: WindowBudget) {
    this.#window = window;
    this.#budget = budget;
  }

  get countedBytes(): number {
    return this.#countedBytes;
  }

  /** The window has grown or shrunk. Other windows may shrink for it, and it may itself. */
  changed(): void {
    if (this.#ended) return;
    this.#recount(this.#window.weightBytes);
    for (let budget: WindowBudget | undefined = this.#budget; budget !== undefined; budget = budget.outer) {
      budget.relieve();
    }
  }

  /** The window takes no part any more, whatever it holds. */
  end(): void {
    this.#ended = true;
    this.#recount(0);
  }

  /** @internal Lets go of half of it; false when it has nothing to give. */
  halve(): boolean {
    const before = this.#countedBytes;
    this.#window.shrinkTo(Math.floor(before / 2));
    this.#recount(this.#window.weightBytes);
    return this.#countedBytes < before;
  }

  #recount(bytes: number): void {
    const delta = bytes - this.#countedBytes;
    if (delta === 0) return;
    this.#countedBytes = bytes;
    for (let budget: WindowBudget | undefined = this.#budget; budget !== undefined; budget = budget.outer) {
      budget.count(this, delta);
    }
  }
}
