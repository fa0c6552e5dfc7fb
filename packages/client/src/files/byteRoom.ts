/** Bounds the bytes of calls that are on their way to the server and not answered; the rest waits in order. Pure. */

interface Waiting {
  readonly bytes: number;
  readonly go: () => void;
}

export class ByteRoom {
  readonly #limitBytes: number;
  #taken = 0;
  #waiting: Waiting[] = [];

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Resolves when there is room; one that is larger than all the room goes alone. Each is followed by one `release`. */
  acquire(bytes: number): { readonly granted: Promise<void>; forget(): void } {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#taken += bytes;
      return { granted: Promise.resolve(), forget: () => this.release(bytes) };
    }
    let entry: Waiting | undefined;
    const granted = new Promise<void>((resolve) => {
      entry = { bytes, go: resolve };
      this.#waiting.push(entry);
    });
    return {
      granted,
      forget: () => {
        const before = this.#waiting.length;
        this.#waiting = this.#waiting.filter((waiting) => waiting !== entry);
        if (this.#waiting.length === before) this.release(bytes);
        else this.#letIn();
      },
    };
  }

  release(bytes: number): void {
    this.#taken -= bytes;
    this.#letIn();
  }

  #fits(bytes: number): boolean {
    return this.#taken === 0 || this.#taken + bytes <= this.#limitBytes;
  }

  #letIn(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#taken += next.bytes;
      next.go();
    }
  }
}
