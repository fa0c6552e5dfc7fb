/** Nested byte budgets: a process's lies in its session's, which lies in the server's. Pure. */
export class SpoolBudget {
  readonly limitBytes: number;
  readonly #outer: SpoolBudget | undefined;
  #usedBytes = 0;

  constructor(limitBytes: number, outer?: SpoolBudget) {
    this.limitBytes = limitBytes;
    this.#outer = outer;
  }

  /** Taken and not given back, here and in all budgets within. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** What can be taken, after the budgets around this one. */
  get freeBytes(): number {
    return Math.min(this.limitBytes - this.#usedBytes, this.#outer?.freeBytes ?? Number.POSITIVE_INFINITY);
  }

  /** Takes all of it, here and in every budget around, or nothing. */
  take(bytes: number): boolean {
    if (bytes > this.freeBytes) return false;
    this.#add(bytes);
    return true;
  }

  give(bytes: number): void {
    if (bytes > this.#usedBytes) throw new RangeError(`${bytes} bytes given back, ${this.#usedBytes} were taken`);
    this.#add(-bytes);
  }

  #add(bytes: number): void {
    this.#usedBytes += bytes;
    if (this.#outer !== undefined) this.#outer.#add(bytes);
  }
}
