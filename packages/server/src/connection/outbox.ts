/**
 * Order of what leaves one connection: answers at once, pushed output only while the transport's queue is short, the
 * processes in turn. Pure.
 */

export interface FrameSource {
  /** The next message, made when there is room for it; undefined when there is none now. */
  next(): string | Uint8Array | undefined;
}

export interface OutboxSink {
  send(frame: string | Uint8Array): void;
  /** Bytes sent and not yet taken by the carrier. */
  queuedBytes(): number;
  /** What there was room for has been sent. */
  flushed?(): void;
}

export class Outbox {
  readonly #sink: OutboxSink;
  readonly #highWaterBytes: number;
  /** Sources that may have something, in turn. */
  readonly #ready = new Set<FrameSource>();
  #flushing = false;

  constructor(sink: OutboxSink, highWaterBytes: number) {
    this.#sink = sink;
    this.#highWaterBytes = highWaterBytes;
  }

  /** Whether the transport takes more pushed output now. */
  get open(): boolean {
    return this.#sink.queuedBytes() < this.#highWaterBytes;
  }

  /** The source may have something to send. */
  ready(source: FrameSource): void {
    this.#ready.add(source);
    this.flush();
  }

  remove(source: FrameSource): void {
    this.#ready.delete(source);
  }

  /** Sends what there is room for; called again when the transport has drained. */
  flush(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    try {
      while (this.#ready.size > 0 && this.open) this.#turn();
    } finally {
      this.#flushing = false;
    }
    this.#sink.flushed?.();
  }

  /** One message of each ready source. */
  #turn(): void {
    for (const source of [...this.#ready]) {
      if (!this.open) return;
      this.#ready.delete(source);
      const frame = source.next();
      if (frame === undefined) continue;
      // Back to the end of the line.
      this.#ready.add(source);
      this.#sink.send(frame);
    }
  }
}
