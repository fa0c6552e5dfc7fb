/** Calls of one connection that wait for something outside it: long polls and writes without room. They end with it. */

/** A handler's way to say: the answer comes later, and this call keeps no place in the queue meanwhile. */
export class Parked<T> {
  /** May end in another wait, as of a read behind a start. */
  readonly answer: Promise<T | Parked<T>>;
  constructor(answer: Promise<T | Parked<T>>) {
    this.answer = answer;
  }
}

export class Parking {
  readonly #release = new Set<() => void>();
  #ended = false;

  /** Whether the connection takes no part any more: nothing may be waited for, nothing new be accepted. */
  get ended(): boolean {
    return this.#ended;
  }

  get size(): number {
    return this.#release.size;
  }

  /**
   * Parks a call until `answer` settles. `release` makes it settle at once; it is called when the connection ends, and right
   * away when it has ended already.
   */
  park<T>(answer: Promise<T | Parked<T>>, release: () => void): Parked<T> {
    if (this.#ended) {
      release();
      return new Parked(answer);
    }
    this.#release.add(release);
    const settled = answer.finally(() => this.#release.delete(release));
    return new Parked(settled);
  }

  /** Ends every wait; what is parked later ends at once. */
  end(): void {
    this.#ended = true;
    for (const release of this.#release) release();
  }
}
