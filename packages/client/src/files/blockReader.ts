/** Reads one file block by block, several in flight, and goes on after a cut where it was; owns its handle. */
import type { Attempt, CallOptions } from '../calls.js';
import type { Connection } from '../connection.js';
import { Cuts } from './cuts.js';
import type { FileCalls } from './fileCalls.js';
import { FileError } from './fileErrors.js';
import type { BlockReply } from './fileGuards.js';
import { shownPath } from './wirePath.js';

/** Bytes of one block: small enough that output of processes gets in between. */
export const BLOCK_BYTES = 256 * 1024;
/** Bytes asked for and not taken yet: 20 MB/s at a round trip of 100 ms. */
export const READ_AHEAD_BYTES = 2 * 1024 * 1024;

export interface BlockRange {
  readonly offset: number;
  /** Undefined: to the end. */
  readonly length: number | undefined;
  readonly followSymlinks: boolean | undefined;
  /** The file it has to be, where that is known before; else it is the one that is opened first. */
  readonly identity?: string | undefined;
}

interface OpenFile {
  readonly connection: Connection;
  readonly handleId: string;
}

interface Pending {
  readonly len: number;
  readonly answer: Promise<Attempt<BlockReply>>;
}

export class BlockReader {
  readonly #calls: FileCalls;
  readonly #path: string;
  readonly #range: BlockRange;
  readonly #options: CallOptions;
  readonly #cuts: Cuts;
  #file: OpenFile | undefined;
  #identity: string | undefined;
  #size = 0;
  #pending: Pending[] = [];
  #pendingBytes = 0;
  /** The next byte to be given out, and the next one to be asked for. */
  #position: number;
  #askedTo: number;
  #ended = false;

  /** `path` is a URI. `options` are for each step. */
  constructor(calls: FileCalls, path: string, range: BlockRange, options: CallOptions) {
    this.#calls = calls;
    this.#path = path;
    this.#range = range;
    this.#options = options;
    this.#cuts = new Cuts(path);
    this.#identity = range.identity;
    this.#position = range.offset;
    this.#askedTo = range.offset;
  }

  /** Opens the file if it is not open; gives the size the host reports, which may be less than there is to read. */
  async open(): Promise<number> {
    if (this.#file === undefined) await this.#open();
    return this.#size;
  }

  /** The next bytes; undefined at the end. One call at a time. The handle is closed at the end and after an error. */
  async next(): Promise<Uint8Array | undefined> {
    try {
      return await this.#next();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Lets go of the file; what is asked for is dropped. */
  close(): void {
    this.#ended = true;
    void this.#release();
  }

  async #next(): Promise<Uint8Array | undefined> {
    for (;;) {
      if (this.#over()) return await this.#finish();
      const file = this.#file ?? (await this.#open());
      if (this.#over()) continue;
      this.#ask(file);
      const block = this.#pending.shift();
      if (block === undefined) continue;
      const attempt = await block.answer;
      if (this.#over()) continue;
      this.#pendingBytes -= block.len;
      if (attempt.kind === 'cut') {
        this.#file = undefined;
        this.#restart();
        this.#cuts.count(attempt.error);
        continue;
      }
      const { bytes, eof, size } = attempt.value;
      if (bytes.length > block.len || (bytes.length === 0 && !eof)) {
        throw file.connection.violate('a block of a file has not the length that was asked for');
      }
      this.#size = size ?? this.#size;
      this.#position += bytes.length;
      this.#cuts.progress();
      if (eof) this.#ended = true;
      else if (bytes.length < block.len) this.#restart();
      if (bytes.length > 0) return bytes;
    }
  }

  /** Asks ahead, but beyond the size the host reported only for one block at a time. */
  #ask(file: OpenFile): void {
    const end = this.#range.length === undefined ? Number.MAX_SAFE_INTEGER : this.#range.offset + this.#range.length;
    while (this.#askedTo < end && (this.#pending.length === 0 || this.#askedTo < this.#size)) {
      if (this.#pendingBytes >= READ_AHEAD_BYTES) return;
      const len = Math.min(BLOCK_BYTES, end - this.#askedTo);
      const params = { handleId: file.handleId, offset: this.#askedTo, len };
      const answer = this.#calls.readBlock(file.connection, params, this.#options, shownPath(this.#path));
      // Looked at in its turn, or never, where an earlier one ends the reading.
      answer.catch(() => undefined);
      this.#pending.push({ len, answer });
      this.#pendingBytes += len;
      this.#askedTo += len;
    }
  }

  /** What is under way was asked for at places that are no longer the next ones. */
  #restart(): void {
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#askedTo = this.#position;
  }

  /** Nothing more is to be given out; `close` brings that about at any time. */
  #over(): boolean {
    const { offset, length } = this.#range;
    return this.#ended || (length !== undefined && this.#position >= offset + length);
  }

  async #open(): Promise<OpenFile> {
    const { followSymlinks } = this.#range;
    const links = followSymlinks === undefined ? {} : { followSymlinks };
    if (followSymlinks === false) this.#calls.require('reading a file in blocks with followSymlinks: false');
    for (;;) {
      // A foreign server tells nothing about an open file; what it says about the path is the nearest.
      const told = this.#calls.extended
        ? undefined
        : await this.#calls.getMetadata({ path: this.#path }, this.#options);
      const connection = await this.#calls.connection('fs/open', this.#options);
      const handleId = this.#calls.newId();
      const params = { handleId, path: this.#path, ...(told === undefined ? { detail: true, ...links } : {}) };
      const attempt = await this.#calls.open(connection, params, this.#options);
      if (attempt.kind === 'cut') {
        this.#cuts.count(attempt.error);
        continue;
      }
      this.#file = { connection, handleId };
      const identity = told === undefined ? attempt.value.identity : `${told.size} ${told.modifiedAtMs}`;
      const isFresh = this.#range.identity === undefined && this.#position === this.#range.offset;
      if (isFresh) this.#identity = identity;
      if (identity !== this.#identity) throw this.#changed();
      this.#size = told?.size ?? attempt.value.size ?? 0;
      return { connection, handleId };
    }
  }

  async #finish(): Promise<undefined> {
    this.#ended = true;
    await this.#release();
    return undefined;
  }

  async #release(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    this.#restart();
    if (file !== undefined) await this.#calls.release(file.connection, file.handleId);
  }

  #changed(): FileError {
    const path = shownPath(this.#path);
    const taken = this.#position - this.#range.offset;
    const message = `another file took the place of ${path} while it was read, or it changed; ${taken} bytes of the old one were delivered; read it again`;
    return new FileError('FILE_CHANGED', message, { path, retryable: true, deliveredBytes: taken });
  }
}
