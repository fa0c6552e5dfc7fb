/** Who holds handles of a connection, and who waits for room for one: a server opens a limited number at a time. Pure. */

interface Holders {
  readonly open: Set<string>;
  readonly opening: Set<string>;
  readonly waiting: Set<() => void>;
}

/** `K`: what handles belong to. */
export class HandleLine<K extends object> {
  readonly #holders = new WeakMap<K, Holders>();

  /** Resolves when those that came before have been let go on; at once where nobody waits. */
  turn(on: K): { readonly granted: Promise<void>; forget(): void } {
    return this.#of(on).waiting.size === 0 ? { granted: Promise.resolve(), forget: () => {} } : this.room(on);
  }

  /** Resolves when a handle was closed, or no longer can be; those who wait go on one by one, in order. */
  room(on: K): { readonly granted: Promise<void>; forget(): void } {
    const { waiting } = this.#of(on);
    let go = (): void => {};
    const granted = new Promise<void>((resolve) => (go = resolve));
    waiting.add(go);
    return {
      granted,
      forget: () => {
        // Whoever was let go on and does not go lets the next one go.
        if (!waiting.delete(go)) this.#next(on);
      },
    };
  }

  opening(on: K, handleId: string): void {
    this.#of(on).opening.add(handleId);
  }

  opened(on: K, handleId: string): void {
    const { open, opening } = this.#of(on);
    opening.delete(handleId);
    open.add(handleId);
  }

  /** Whether it is worth waiting: a handle that is open, or may come to be, can be closed. */
  refused(on: K, handleId: string): boolean {
    const { open, opening, waiting } = this.#of(on);
    opening.delete(handleId);
    if (open.size + opening.size > 0) return true;
    for (const go of waiting) go();
    waiting.clear();
    return false;
  }

  closed(on: K, handleId: string): void {
    const { open, opening } = this.#of(on);
    opening.delete(handleId);
    if (open.delete(handleId)) this.#next(on);
  }

  #next(on: K): void {
    const { waiting } = this.#of(on);
    const [go] = waiting;
    if (go === undefined) return;
    waiting.delete(go);
    go();
  }

  #of(on: K): Holders {
    let holders = this.#holders.get(on);
    if (holders === undefined) {
      holders = { open: new Set(), opening: new Set(), waiting: new Set() };
      this.#holders.set(on, holders);
    }
    return holders;
  }
}
