/** Spool files in memory, on a disk of a given size, with faults; each operation settles in a later turn of the loop. */
import { setImmediate as nextTurn } from 'node:timers/promises';

interface File {
  bytes: Uint8Array;
  closing: boolean;
}

export class MemorySegmentFs {
  /** Bytes over all open files; a write takes what fits, and fails with ENOSPC when nothing does. */
  capacityBytes = Number.POSITIVE_INFINITY;
  /** Most bytes one write or read moves. */
  stepBytes = Number.POSITIVE_INFINITY;
  /** Turns of the loop a write and a close take. */
  turns = { write: 1, close: 1 };
  /** The code an operation fails with; asked before each one. `count` counts operations of its kind from 1. */
  fault: (kind: 'open' | 'write' | 'read', count: number) => string | undefined = () => undefined;
  /** Sizes of the writes that came. */
  readonly writes: number[] = [];
  readonly #files = new Map<number, File>();
  readonly #named = new Set<string>();
  readonly #counts = { open: 0, write: 0, read: 0 };
  #fds = 0;
  #folders = 0;
  /** Operations that came with a descriptor that was not open any more. */
  badDescriptors = 0;

  get openFiles(): number {
    return this.#files.size;
  }
  get names(): readonly string[] {
    return [...this.#named];
  }
  get usedBytes(): number {
    return [...this.#files.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  makeFolder(prefix: string): string {
    this.#folders += 1;
    return `${prefix}${this.#folders}`;
  }

  async removeFolder(): Promise<void> {
    await nextTurn();
  }

  async open(path: string): Promise<number> {
    await this.#turn('open');
    if (this.#named.has(path)) throw failure('EEXIST');
    this.#fds += 1;
    this.#named.add(path);
    this.#files.set(this.#fds, { bytes: new Uint8Array(0), closing: false });
    return this.#fds;
  }

  async unlink(path: string): Promise<void> {
    await nextTurn();
    this.#named.delete(path);
  }

  async write(fd: number, buffers: readonly Uint8Array[], position: number): Promise<number> {
    const joined = Buffer.concat(buffers);
    const file = this.#file(fd);
    // What is freed while it runs does not help this write.
    const free = this.capacityBytes - this.usedBytes + file.bytes.length - position;
    await this.#turn('write', this.turns.write);
    this.#file(fd);
    const count = Math.max(0, Math.min(joined.length, free, this.stepBytes));
    if (count === 0) throw failure('ENOSPC');
    this.writes.push(count);
    const bytes = new Uint8Array(Math.max(file.bytes.length, position + count));
    bytes.set(file.bytes);
    bytes.set(joined.subarray(0, count), position);
    file.bytes = bytes;
    return count;
  }

  async read(fd: number, buffer: Uint8Array, position: number): Promise<number> {
    await this.#turn('read');
    const found = this.#file(fd).bytes.subarray(position, position + Math.min(buffer.length, this.stepBytes));
    buffer.set(found);
    return found.length;
  }

  async close(fd: number): Promise<void> {
    this.#file(fd).closing = true;
    for (let turn = 0; turn < this.turns.close; turn += 1) await nextTurn();
    this.#files.delete(fd);
  }

  async #turn(kind: 'open' | 'write' | 'read', turns = 1): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    this.#counts[kind] += 1;
    const code = this.fault(kind, this.#counts[kind]);
    if (code !== undefined) throw failure(code);
  }

  #file(fd: number): File {
    const file = this.#files.get(fd);
    if (file === undefined || file.closing) {
      this.badDescriptors += 1;
      throw failure('EBADF');
    }
    return file;
  }
}

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code });
}
