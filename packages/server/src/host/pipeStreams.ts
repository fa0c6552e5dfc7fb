/** The server's ends of a child's streams, over any Node stream: pipes as `net.Socket`, or Node's own stdio sockets. */
import type { Readable, Writable } from 'node:stream';
import type { OutputSource, StdinSink } from './child.js';

type Listener = Parameters<OutputSource['start']>[0];

/** One output of a child. Bytes come as they are read, up to 64 KiB, each in a buffer of its own. */
export class PipeSource implements OutputSource {
  readonly name: 'stdout' | 'stderr';
  readonly #stream: Readable;
  #listener: Listener | undefined;
  #paused = false;
  #ended = false;
  #destroyed = false;

  constructor(name: 'stdout' | 'stderr', stream: Readable) {
    this.name = name;
    this.#stream = stream;
    stream.once('end', () => this.#end());
    stream.once('close', () => this.#end());
    stream.on('error', () => this.#end());
  }

  start(listener: Listener): void {
    if (this.#listener !== undefined) throw new Error(`${this.name} is already being delivered`);
    this.#listener = listener;
    if (this.#ended) {
      queueMicrotask(() => listener.ended());
      return;
    }
    this.#stream.on('data', (bytes: Uint8Array) => {
      if (!this.#destroyed) listener.bytes(bytes);
    });
    if (this.#paused) this.#stream.pause();
  }

  pause(): void {
    this.#paused = true;
    if (this.#listener !== undefined) this.#stream.pause();
  }

  resume(): void {
    this.#paused = false;
    // Without a listener, flowing would throw the bytes away.
    if (this.#listener !== undefined) this.#stream.resume();
  }

  destroy(): void {
    this.#destroyed = true;
    this.#stream.destroy();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#listener?.ended();
  }
}

interface QueuedWrite {
  readonly bytes: Uint8Array;
  readonly taken: (error?: Error) => void;
  next: QueuedWrite | undefined;
}

/**
 * The stdin of a child. One write is with the stream at a time, so that `taken` follows each write and not a batch of
 * them. A child that closes its end is noticed by the write that meets it, waiting ones included.
 */
export class PipeSink implements StdinSink {
  readonly #stream: Writable;
  /** A linked list: there may be very many tiny writes, and a written one must not be held. */
  #first: QueuedWrite | undefined;
  #last: QueuedWrite | undefined;
  #queuedBytes = 0;
  #writing = false;
  #ending = false;
  #state: 'open' | 'ended' | 'broken' = 'open';
  #onBroken: (() => void)[] = [];

  constructor(stream: Writable) {
    this.#stream = stream;
    stream.on('error', (error) => this.#break(error));
    stream.once('close', () => this.#break(new Error('stdin was closed')));
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  write(bytes: Uint8Array, taken: (error?: Error) => void): void {
    if (this.#state !== 'open' || this.#ending) {
      queueMicrotask(() => taken(new Error('stdin is closed')));
      return;
    }
    const write: QueuedWrite = { bytes, taken, next: undefined };
    if (this.#last === undefined) this.#first = write;
    else this.#last.next = write;
    this.#last = write;
    this.#queuedBytes += bytes.byteLength;
    this.#next();
  }

  end(): void {
    this.#ending = true;
    this.#next();
  }

  onBroken(listener: () => void): void {
    if (this.#state === 'broken') queueMicrotask(listener);
    else this.#onBroken.push(listener);
  }

  destroy(): void {
    this.#break(new Error('stdin was closed'));
    this.#stream.destroy();
  }

  #next(): void {
    if (this.#writing || this.#state !== 'open') return;
    const write = this.#first;
    if (write === undefined) {
      if (this.#ending) this.#finish();
      return;
    }
    this.#writing = true;
    this.#stream.write(write.bytes, (error) => {
      this.#writing = false;
      if (this.#state !== 'open') return;
      if (error !== null && error !== undefined) {
        this.#break(error);
        return;
      }
      this.#first = write.next;
      if (write.next === undefined) this.#last = undefined;
      this.#queuedBytes -= write.bytes.byteLength;
      write.taken();
      this.#next();
    });
  }

  /** Closing is the EOF: what was written is in the pipe. `Writable.end` would shut down a socket, which a pipe is not. */
  #finish(): void {
    this.#state = 'ended';
    this.#stream.destroy();
  }

  #break(error: Error): void {
    if (this.#state !== 'open') return;
    this.#state = 'broken';
    let lost = this.#first;
    this.#first = undefined;
    this.#last = undefined;
    this.#queuedBytes = 0;
    for (; lost !== undefined; lost = lost.next) lost.taken(error);
    for (const listener of this.#onBroken.splice(0)) listener();
    this.#stream.destroy();
  }
}
