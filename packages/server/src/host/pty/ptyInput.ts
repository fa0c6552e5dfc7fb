/**
 * What is typed at a terminal. Each write to the descriptor is one call that takes what there is room for and returns:
 * no write is ever on its way when the terminal closes, so that none can reach what gets the number next.
 */
import type { StdinSink } from '../child.js';
import type { PtyMaster } from './ptyMaster.js';

/** The EOF character of a terminal in its usual mode. */
const EOF_BYTE = 0x04;
/** Bytes after which a line is complete, so that one EOF character is an end of input. */
const LINE_ENDS: ReadonlySet<number | undefined> = new Set([undefined, 0x0a, 0x0d, EOF_BYTE]);

/** A child that does not read is looked at again after a delay that doubles up to the longest: 30 times a second. */
const SHORTEST_WAIT_MS = 2;
const LONGEST_WAIT_MS = 32;
/** A full terminal is tried again this often without a delay: a child that reads makes room in microseconds. */
const QUICK_TRIES = 4;
/** After this many writes the event loop gets its turn. */
const CALLS_PER_TURN = 64;

interface QueuedWrite {
  readonly bytes: Uint8Array;
  readonly taken: (error?: Error) => void;
  offset: number;
  next: QueuedWrite | undefined;
}

export class PtyInput implements StdinSink {
  readonly #master: PtyMaster;
  #first: QueuedWrite | undefined;
  #last: QueuedWrite | undefined;
  #queuedBytes = 0;
  #lastByte: number | undefined;
  /** Whether a turn runs or is about to. */
  #busy = false;
  #timer: NodeJS.Timeout | undefined;
  #fullTries = 0;
  #state: 'open' | 'ending' | 'ended' | 'broken' = 'open';
  #onBroken: (() => void)[] = [];

  constructor(master: PtyMaster) {
    this.#master = master;
    master.onClosed(() => this.destroy());
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  write(bytes: Uint8Array, taken: (error?: Error) => void): void {
    if (this.#state === 'open') this.#enqueue(bytes, taken);
    else queueMicrotask(() => taken(closedError()));
  }

  /**
   * Types the EOF character, twice when the line before it is not complete: the first then only hands that line over.
   * So one program that reads lines sees the end of its input. The terminal stays open: the next program may read on,
   * and one that switched the terminal to raw mode sees the bytes 04.
   */
  end(): void {
    if (this.#state !== 'open') return;
    const complete = LINE_ENDS.has(this.#lastByte);
    this.#enqueue(Uint8Array.from(complete ? [EOF_BYTE] : [EOF_BYTE, EOF_BYTE]), () => undefined);
    this.#state = 'ending';
  }

  onBroken(listener: () => void): void {
    if (this.#state === 'broken') queueMicrotask(listener);
    else this.#onBroken.push(listener);
  }

  /** Drops what is queued. The descriptor is the terminal's. */
  destroy(): void {
    this.#break(closedError());
  }

  #enqueue(bytes: Uint8Array, taken: (error?: Error) => void): void {
    const write: QueuedWrite = { bytes, taken, offset: 0, next: undefined };
    if (this.#last === undefined) this.#first = write;
    else this.#last.next = write;
    this.#last = write;
    this.#queuedBytes += bytes.length;
    this.#lastByte = bytes.at(-1) ?? this.#lastByte;
    if (this.#busy) return;
    this.#busy = true;
    // Not at once: `taken` must not be called before this call returns.
    queueMicrotask(() => this.#turn());
  }

  #turn(): void {
    for (let calls = 0; calls < CALLS_PER_TURN; calls += 1) {
      const write = this.#first;
      if (write === undefined) {
        this.#busy = false;
        if (this.#state === 'ending') this.#state = 'ended';
        return;
      }
      const taken = this.#put(write);
      if (taken === undefined) return;
      if (taken > 0) this.#fullTries = 0;
      if (write.offset === write.bytes.length) {
        this.#first = write.next;
        if (write.next === undefined) this.#last = undefined;
        write.taken();
      } else if (taken === 0) {
        this.#waitForRoom();
        return;
      }
    }
    setImmediate(() => this.#turn());
  }

  /** Bytes taken; undefined when the terminal is gone. */
  #put(write: QueuedWrite): number | undefined {
    if (write.bytes.length === 0) return 0;
    try {
      const taken = this.#master.write(write.bytes.subarray(write.offset));
      write.offset += taken;
      this.#queuedBytes -= taken;
      return taken;
    } catch (error) {
      this.#break(error instanceof Error ? error : new Error(String(error)));
      return undefined;
    }
  }

  #waitForRoom(): void {
    this.#fullTries += 1;
    if (this.#fullTries <= QUICK_TRIES) {
      setImmediate(() => this.#turn());
      return;
    }
    const delay = SHORTEST_WAIT_MS * 2 ** (this.#fullTries - QUICK_TRIES - 1);
    this.#timer = setTimeout(() => this.#turn(), Math.min(LONGEST_WAIT_MS, delay));
  }

  #break(error: Error): void {
    if (this.#state === 'broken' || this.#state === 'ended') return;
    this.#state = 'broken';
    clearTimeout(this.#timer);
    let lost = this.#first;
    this.#first = undefined;
    this.#last = undefined;
    this.#queuedBytes = 0;
    for (; lost !== undefined; lost = lost.next) lost.taken(error);
    for (const listener of this.#onBroken.splice(0)) listener();
  }
}

function closedError(): Error {
  return new Error('the terminal takes no more input');
}
