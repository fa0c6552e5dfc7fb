/**
 * What a process was given on stdin: remembers write ids and the accepted position, keeps writes in order, and holds back
 * what the child does not take. The only caller of the child's StdinSink.
 */
import { limits, WireError } from '@exec-server/protocol';
import type { StdinSink } from '../host/child.js';

export interface StdinWrite {
  readonly bytes: Uint8Array;
  readonly writeId: string | undefined;
  readonly offset: number | undefined;
  readonly eof: boolean;
}

export interface StdinAnswer {
  readonly status: 'accepted' | 'stdinClosed';
  /** Bytes of stdin accepted so far. */
  readonly acceptedOffset: number;
}

/** A write that waits for room: `cancel` takes it back as if it had never come. */
export interface WaitingWrite {
  readonly answer: Promise<StdinAnswer>;
  cancel(): void;
}

interface Waiting {
  readonly write: StdinWrite;
  readonly settle: (answer: StdinAnswer) => void;
  readonly fail: (error: WireError) => void;
}

export class StdinQueue {
  readonly #sink: StdinSink | undefined;
  #open: boolean;
  /** Whether the end of stdin was accepted. */
  #ended = false;
  #acceptedBytes = 0;
  #waiting: Waiting[] = [];
  /** In the order of acceptance; the oldest is forgotten first. */
  readonly #writeIds = new Set<string>();

  constructor(sink: StdinSink | undefined) {
    this.#sink = sink;
    this.#open = sink !== undefined;
    sink?.onBroken(() => this.closed());
  }

  get acceptedBytes(): number {
    return this.#acceptedBytes;
  }

  /** Bytes accepted and not yet taken by the child. */
  get queuedBytes(): number {
    return this.#sink?.queuedBytes ?? 0;
  }

  /** Answers at once, or hands back a write that waits for room. Throws WireError for a hole or too many waiting writes. */
  write(write: StdinWrite): StdinAnswer | WaitingWrite {
    if (this.#waiting.length === 0) {
      const answer = this.#take(write);
      if (answer !== undefined) return answer;
    } else if (write.writeId !== undefined && this.#writeIds.has(write.writeId)) {
      return this.#answer('accepted');
    }
    this.#refuseWhenFull(write.bytes.length);
    let waiting: Waiting | undefined;
    const answer = new Promise<StdinAnswer>((settle, fail) => {
      waiting = { write, settle, fail };
      this.#waiting.push(waiting);
    });
    return {
      answer,
      cancel: () => {
        const index = waiting === undefined ? -1 : this.#waiting.indexOf(waiting);
        if (index < 0) return;
        this.#waiting.splice(index, 1);
        waiting?.settle(this.#answer('stdinClosed'));
      },
    };
  }

  /** Stdin is gone: waiting writes are answered, the descriptor is freed. */
  closed(): void {
    this.#open = false;
    this.#sink?.destroy();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { settle } of waiting) settle(this.#answer('stdinClosed'));
  }

  #refuseWhenFull(bytes: number): void {
    const waitingBytes = this.#waiting.reduce((sum, { write }) => sum + write.bytes.length, bytes);
    const tooMany = this.#waiting.length >= limits.STDIN_WAITING_WRITES;
    const tooLarge = this.#waiting.length > 0 && waitingBytes > limits.STDIN_WAITING_BYTES;
    if (!tooMany && !tooLarge) return;
    const message = `${this.#waiting.length} writes of this process already wait; it does not read its stdin`;
    throw new WireError('stdinQueueFull', message, {
      limit: limits.STDIN_WAITING_WRITES,
      limitBytes: limits.STDIN_WAITING_BYTES,
    });
  }

  #answer(status: StdinAnswer['status']): StdinAnswer {
    return { status, acceptedOffset: this.#acceptedBytes };
  }

  /** Undefined: no room. */
  #take(write: StdinWrite): StdinAnswer | undefined {
    const { writeId, offset, eof } = write;
    // The repeat check comes first: a write that was accepted stays accepted after stdin closed.
    if (writeId !== undefined && this.#writeIds.has(writeId)) return this.#answer('accepted');
    if (offset !== undefined && offset > this.#acceptedBytes) {
      throw new WireError(
        'writeHole',
        `offset ${offset} lies beyond the ${this.#acceptedBytes} bytes accepted so far`,
        {
          field: 'offset',
          acceptedOffset: this.#acceptedBytes,
        },
      );
    }
    const skip = offset === undefined ? 0 : Math.min(this.#acceptedBytes - offset, write.bytes.length);
    const bytes = skip === 0 ? write.bytes : write.bytes.subarray(skip);
    const sink = this.#sink;
    if (!this.#open || sink === undefined) {
      // An end that the program anticipated by closing its side was never accepted.
      const repeated = offset !== undefined && bytes.length === 0 && (eof ? this.#ended : write.bytes.length > 0);
      return this.#answer(repeated ? 'accepted' : 'stdinClosed');
    }
    if (sink.queuedBytes > 0 && sink.queuedBytes + bytes.length > limits.STDIN_QUEUE_BYTES) return undefined;
    if (writeId !== undefined) this.#remember(writeId);
    this.#acceptedBytes += bytes.length;
    if (bytes.length > 0) sink.write(bytes, (error) => (error === undefined ? this.#room() : this.closed()));
    if (eof) {
      this.#ended = true;
      this.#open = false;
      sink.end();
    }
    return this.#answer('accepted');
  }

  #remember(writeId: string): void {
    this.#writeIds.add(writeId);
    if (this.#writeIds.size <= limits.REMEMBERED_WRITE_IDS) return;
    for (const oldest of this.#writeIds) {
      this.#writeIds.delete(oldest);
      return;
    }
  }

  #room(): void {
    for (;;) {
      const first = this.#waiting[0];
      if (first === undefined) return;
      try {
        const answer = this.#take(first.write);
        if (answer === undefined) return;
        this.#waiting.shift();
        first.settle(answer);
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        this.#waiting.shift();
        first.fail(error);
      }
    }
  }
}
