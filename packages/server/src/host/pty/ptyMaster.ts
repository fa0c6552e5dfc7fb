/** The server's end of one terminal: the only code that touches the descriptor, and never after it was closed. */
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { errnoCode } from '../startErrors.js';
import { masterClosed, masterOpened } from './masters.js';
import type { ForkedTerminal, PtyNative } from './native.js';

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** More than the kernel holds of one terminal. */
const READ_BYTES = 64 * 1024;
const scratch = new Uint8Array(READ_BYTES);

export class PtyMaster {
  readonly #fd: number;
  readonly #native: PtyNative;
  /**
   * Held open from the tick of the fork on: as long as someone has the slave open, the master reports no hang-up, after
   * which libuv would take the next short read for the last one and drop what is behind it.
   */
  #slave: number | undefined;
  readonly stream: ReadStream;
  #closed = false;
  #onClosed: (() => void)[] = [];

  /** Takes the master over; when it throws, the master is closed. */
  constructor(native: PtyNative, { fd, pty }: ForkedTerminal) {
    this.#native = native;
    this.#fd = fd;
    masterOpened(fd, this);
    try {
      // Not our controlling terminal. Node opens close-on-exec.
      this.#slave = openSync(pty, constants.O_RDWR | constants.O_NOCTTY);
      this.stream = new ReadStream(fd);
    } catch (error) {
      this.releaseSlave();
      closeSync(fd);
      masterClosed(fd, this);
      throw error;
    }
    // EIO is the end of a terminal. Destroying closes the descriptor at once, the event comes later.
    this.stream.on('error', () => this.close());
    this.stream.once('close', () => this.close());
  }

  get open(): boolean {
    return !this.#closed && !this.stream.destroyed;
  }

  /** Called once, when the descriptor is closed; late registration still gets it. */
  onClosed(listener: () => void): void {
    if (this.#closed) queueMicrotask(listener);
    else this.#onClosed.push(listener);
  }

  /** What is there, in a buffer of its own; past the stream, whose buffered bytes come before. Never waits. */
  read(): Uint8Array | 'empty' | 'ended' {
    if (!this.open) return 'ended';
    try {
      const bytes = readSync(this.#fd, scratch);
      return bytes === 0 ? 'ended' : scratch.slice(0, bytes);
    } catch (error) {
      return errnoCode(error) === 'EAGAIN' ? 'empty' : 'ended';
    }
  }

  /** How many of `bytes` the terminal took, 0 when it is full. Never waits. Throws when the terminal is gone. */
  write(bytes: Uint8Array): number {
    if (!this.open) throw new Error('the terminal is closed');
    try {
      return writeSync(this.#fd, bytes);
    } catch (error) {
      if (errnoCode(error) === 'EAGAIN') return 0;
      throw error;
    }
  }

  resize({ cols, rows }: TerminalSize): void {
    if (!this.open) throw new Error('the terminal is closed');
    this.#native.resize(this.#fd, cols, rows, 0, 0);
  }

  /** From now on a read tells the end from an empty terminal, and the stream must not be relied on. */
  releaseSlave(): void {
    if (this.#slave === undefined) return;
    closeSync(this.#slave);
    this.#slave = undefined;
  }

  /** Hangs the terminal up: who still has it open gets SIGHUP and errors. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.stream.destroy();
    masterClosed(this.#fd, this);
    this.releaseSlave();
    for (const listener of this.#onClosed.splice(0)) listener();
  }
}
