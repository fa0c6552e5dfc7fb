/** Bounds how many requests are unanswered at a time; the rest waits in order. */

export class Permits {
  #taken = 0;
  #waiting: { readonly go: () => void }[] = [];

  /** Resolves when there are fewer than `limit` requests; each is followed by one `release`. */
  acquire(limit: number): { readonly granted: Promise<void>; forget(): void } {
    if (this.#taken < limit) {
      this.#taken += 1;
      return { granted: Promise.resolve(), forget: () => this.release() };
    }
    let entry: { readonly go: () => void } | undefined;
    const granted = new Promise<void>((resolve) => {
      entry = { go: resolve };
      this.#waiting.push(entry);
    });
    return {
      granted,
      forget: () => {
        const before = this.#waiting.length;
        this.#waiting = this.#waiting.filter((waiting) => waiting !== entry);
        if (this.#waiting.length === before) this.release();
      },
    };
  }

  release(): void {
    const next = this.#waiting.shift();
    // A permit handed on stays taken.
    if (next === undefined) this.#taken -= 1;
    else next.go();
  }
}
