/**
 * The bytes of one spool: in memory until they are written, then in unlinked files of a fixed size. Writes go one after the
 * other. The only owner of these descriptors.
 */
import { PendingBytes } from './pendingBytes.js';
import type { SegmentFs } from './segmentFs.js';

const SEGMENT_BYTES = 32 * 1024 * 1024;
/** Most bytes of one write. */
const WRITE_BYTES = 1024 * 1024;

export interface SegmentEvents {
  /** `pendingBytes` fell. */
  readonly written: () => void;
  /** A write failed; said once until everything is written again, or nothing is left to write. */
  readonly failed: (error: unknown) => void;
}

export interface SegmentsOptions extends SegmentEvents {
  readonly fs: Pick<SegmentFs, 'write' | 'read' | 'close'>;
  /** A new empty file for one segment. */
  readonly openFile: () => Promise<number>;
  /** Default SEGMENT_BYTES. */
  readonly segmentBytes?: number;
}

interface Segment {
  readonly fd: Promise<number>;
  /** Operations that need the descriptor. */
  users: number;
  writtenBytes: number;
  dropped: boolean;
}

export class Segments {
  readonly segmentBytes: number;
  readonly #options: SegmentsOptions;
  readonly #pending = new PendingBytes();
  /** By number, ascending. */
  readonly #segments = new Map<number, Segment>();
  readonly #operations = new Set<Promise<void>>();
  #writtenPosition = 0;
  #writing = false;
  #closed = false;
  #failing = false;
  /** While writes fail: how many bytes may be pending; what pended at the failure and what was freed since. */
  #allowedBytes = 0;
  /** A file was closed since the present write began. */
  #roomCame = false;
  /** In dropped files that are still being closed. */
  #freeingBytes = 0;

  constructor(options: SegmentsOptions) {
    this.#options = options;
    this.segmentBytes = options.segmentBytes ?? SEGMENT_BYTES;
  }

  get pendingBytes(): number {
    return this.#pending.endPosition - this.#writtenPosition;
  }

  /** Bytes below this position are on disk. */
  get writtenPosition(): number {
    return this.#writtenPosition;
  }

  /** What can be appended; bounded only while writes fail. */
  get roomBytes(): number {
    if (this.#closed) return 0;
    return this.#failing ? Math.max(0, this.#allowedBytes - this.pendingBytes) : Number.POSITIVE_INFINITY;
  }

  get failing(): boolean {
    return this.#failing;
  }

  /** At the end of what is there. */
  append(bytes: Uint8Array): void {
    this.#pending.append(bytes);
    if (!this.#failing) this.#write();
  }

  /** One chunk that ends above `writtenPosition`, without a copy. */
  chunkInMemory(position: number, length: number): Uint8Array {
    return this.#pending.chunk(position, length);
  }

  /** A range below `writtenPosition`. It is read whole even when it is dropped meanwhile. Rejects as the host does. */
  async readDisk(position: number, length: number): Promise<Uint8Array> {
    // Not from a pool, and not filled with zeros first.
    const bytes = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
    const parts: Promise<void>[] = [];
    for (let done = 0; done < length; ) {
      const number = Math.floor((position + done) / this.segmentBytes);
      const inFile = position + done - number * this.segmentBytes;
      const part = bytes.subarray(done, done + this.segmentBytes - inFile);
      const segment = this.#segments.get(number);
      if (segment === undefined) throw new RangeError(`position ${position + done} is not held`);
      parts.push(this.#use(segment, (fd) => this.#fill(fd, part, inFile)));
      done += part.length;
    }
    await Promise.all(parts);
    return bytes;
  }

  /** Closes the files that lie wholly below; a position beyond the end moves the end there. */
  dropBelow(position: number): void {
    const pendingBefore = this.pendingBytes;
    for (const [number, segment] of this.#segments) {
      if ((number + 1) * this.segmentBytes > position) break;
      this.#drop(number, segment);
    }
    this.#writtenPosition = Math.max(this.#writtenPosition, position);
    this.#pending.dropBelow(position);
    if (this.pendingBytes === 0) this.#failing = false;
    else if (this.#failing && this.pendingBytes < pendingBefore) this.#write();
  }

  /** What is pending is given up. Settles when all operations have, with every descriptor closed. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const [number, segment] of this.#segments) this.#drop(number, segment);
    this.#writtenPosition = this.#pending.endPosition;
    this.#pending.dropBelow(this.#writtenPosition);
    while (this.#operations.size > 0) await Promise.all(this.#operations);
  }

  #write(): void {
    if (this.#writing || this.#closed || this.pendingBytes === 0) return;
    this.#writing = true;
    void this.#track(this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    while (!this.#closed && this.pendingBytes > 0) {
      try {
        await this.#writeSome();
      } catch (error) {
        if (this.#roomCame) continue;
        this.#writing = false;
        this.#failed(error);
        return;
      }
      if (this.pendingBytes === 0) this.#failing = false;
      if (!this.#closed) this.#options.written();
    }
    this.#writing = false;
  }

  async #writeSome(): Promise<void> {
    this.#roomCame = false;
    const from = this.#writtenPosition;
    const number = Math.floor(from / this.segmentBytes);
    const inFile = from - number * this.segmentBytes;
    const bytes = this.#pending.from(from, Math.min(WRITE_BYTES, this.segmentBytes - inFile));
    const segment = this.#segment(number);
    await this.#use(segment, async (fd) => {
      const count = await this.#options.fs.write(fd, bytes, inFile);
      if (count === 0) throw new Error('the write took no bytes');
      segment.writtenBytes += count;
      // A file that was dropped meanwhile frees these, too.
      if (segment.dropped) this.#freeingBytes += count;
      this.#writtenPosition = Math.max(this.#writtenPosition, from + count);
      this.#pending.dropBelow(this.#writtenPosition);
    });
  }

  #failed(error: unknown): void {
    // Everything it was about may have been dropped meanwhile.
    if (this.#closed || this.pendingBytes === 0) return;
    this.#allowedBytes = this.pendingBytes + this.#freeingBytes;
    if (this.#failing) return;
    this.#failing = true;
    this.#options.failed(error);
  }

  #segment(number: number): Segment {
    const known = this.#segments.get(number);
    if (known !== undefined) return known;
    const segment: Segment = { fd: this.#options.openFile(), users: 0, writtenBytes: 0, dropped: false };
    this.#segments.set(number, segment);
    // The next write tries to open it again.
    segment.fd.catch(() => {
      if (this.#segments.get(number) === segment) this.#segments.delete(number);
    });
    return segment;
  }

  async #fill(fd: number, bytes: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const count = await this.#options.fs.read(fd, bytes.subarray(done), position + done);
      if (count === 0) throw new Error('the spool file is shorter than what was written to it');
      done += count;
    }
  }

  #drop(number: number, segment: Segment): void {
    this.#segments.delete(number);
    segment.dropped = true;
    this.#freeingBytes += segment.writtenBytes;
    if (this.#failing) this.#allowedBytes += segment.writtenBytes;
    this.#closeIfUnused(segment);
  }

  #use(segment: Segment, action: (fd: number) => Promise<void>): Promise<void> {
    segment.users += 1;
    const using = segment.fd.then(action).finally(() => {
      segment.users -= 1;
      this.#closeIfUnused(segment);
    });
    return this.#track(using);
  }

  #closeIfUnused(segment: Segment): void {
    if (segment.dropped && segment.users === 0) void this.#track(this.#closeFile(segment));
  }

  async #closeFile(segment: Segment): Promise<void> {
    try {
      await this.#options.fs.close(await segment.fd);
    } catch {
      // It was never opened, or close(2) failed, which frees the descriptor all the same.
    }
    this.#freeingBytes -= segment.writtenBytes;
    this.#roomCame = true;
    if (this.#failing) this.#write();
  }

  /** What `close` waits for. A failure is for the one who began the operation. */
  #track(operation: Promise<void>): Promise<void> {
    const settled = operation
      .catch(() => undefined)
      .finally(() => {
        this.#operations.delete(settled);
      });
    this.#operations.add(settled);
    return operation;
  }
}
