/**
 * The output of a terminal. Nothing of what was written before the leader's end is lost, however the reader pauses.
 *
 * A terminal ends with its leader, as everywhere: it is then hung up, and what a descendant that ignores SIGHUP would
 * still write is cut off. (Streams of a process on pipes stay open for its descendants.)
 */
import type { OutputSource } from '../child.js';
import type { PtyMaster } from './ptyMaster.js';

type Listener = Parameters<OutputSource['start']>[0];

/** More than the kernel holds of a terminal's output at a moment; what comes beyond it after the end is a survivor's. */
const LEFT_BYTES = 128 * 1024;

export class PtyOutput implements OutputSource {
  readonly name = 'pty';
  readonly #master: PtyMaster;
  #listener: Listener | undefined;
  #paused = false;
  #leaderExited = false;
  #destroyed = false;
  #ended = false;
  #peeked: Uint8Array | undefined;
  #leftBytes = LEFT_BYTES;

  constructor(master: PtyMaster) {
    this.#master = master;
    master.onClosed(() => this.#end());
  }

  start(listener: Listener): void {
    if (this.#listener !== undefined) throw new Error(`${this.name} is already being delivered`);
    this.#listener = listener;
    if (this.#ended) {
      queueMicrotask(() => listener.ended());
      return;
    }
    this.#master.stream.on('data', (bytes: Uint8Array) => this.#deliver(bytes));
    if (this.#paused || this.#leaderExited) this.#master.stream.pause();
    if (this.#leaderExited) queueMicrotask(() => this.#finish());
  }

  pause(): void {
    this.#paused = true;
    if (this.#listener !== undefined) this.#master.stream.pause();
  }

  resume(): void {
    this.#paused = false;
    // Without a listener, flowing would throw the bytes away.
    if (this.#listener === undefined) return;
    // Not at once: a listener does not expect bytes before this call returns.
    if (this.#leaderExited) queueMicrotask(() => this.#finish());
    else this.#master.stream.resume();
  }

  destroy(): void {
    this.#destroyed = true;
    this.#master.close();
  }

  /** First bytes of a child that ended before delivery started; they stay the first to be delivered. */
  peek(): Uint8Array {
    if (this.#peeked === undefined) {
      const bytes = this.#master.read();
      if (typeof bytes === 'string') return new Uint8Array();
      this.#peeked = bytes;
    }
    return this.#peeked;
  }

  /** To be called when the leader was reaped: delivers the rest, now or on `resume`, then `ended`. */
  leaderExited(): void {
    this.#leaderExited = true;
    this.#finish();
  }

  #finish(): void {
    if (this.#listener === undefined || this.#paused || !this.#master.open) return;
    this.#master.stream.pause();
    if (this.#peeked !== undefined) {
      const first = this.#peeked;
      this.#peeked = undefined;
      this.#deliver(first);
    }
    if (!this.#drain()) return;
    // The stream may be told of the hang-up from here on, so this part does not stop for a pause.
    this.#master.releaseSlave();
    this.#readRest();
    this.#master.close();
  }

  /** Reads until nothing is left; false when the listener paused before. */
  #drain(): boolean {
    while (!this.#paused) {
      if (!this.#master.open) return true;
      // What the stream holds comes first; reading it emits it.
      if (this.#master.stream.read() !== null) continue;
      if (!this.#readOnce()) return true;
    }
    return false;
  }

  #readRest(): void {
    while (this.#readOnce());
  }

  #readOnce(): boolean {
    const bytes = this.#master.read();
    if (typeof bytes === 'string' || this.#leftBytes <= 0) return false;
    this.#leftBytes -= bytes.length;
    this.#deliver(bytes);
    return true;
  }

  #deliver(bytes: Uint8Array): void {
    if (!this.#destroyed) this.#listener?.bytes(bytes);
  }

  #end(): void {
    this.#ended = true;
    const listener = this.#listener;
    if (listener !== undefined) queueMicrotask(() => listener.ended());
  }
}
