/** Writes one file block by block, several in flight, and goes on after a cut behind what arrived; owns its handle and stage. */
import { encodeBase64, limits } from '@exec-server/protocol';
import { type Attempt, type CallOptions, outcomeUnknown } from '../calls.js';
import type { Connection } from '../connection.js';
import { BLOCK_BYTES } from './blockReader.js';
import { Cuts } from './cuts.js';
import type { FileCalls } from './fileCalls.js';
import { FileError } from './fileErrors.js';
import type { OpenReply, WrittenReply } from './fileGuards.js';
import type { WriteOptions } from './fileOptions.js';
import { shownPath } from './wirePath.js';
import { randomId } from '../randomId.js';

/** Bytes sent and not answered yet. */
export const WRITE_AHEAD_BYTES = 2 * 1024 * 1024;

interface OpenFile {
  readonly connection: Connection;
  readonly handleId: string;
}

interface Block {
  readonly offset: number;
  readonly bytes: Uint8Array;
  answer: Promise<Attempt<unknown>>;
}

/**
 * How it goes on after a cut: a stage is opened again and says how much it has; a file that is written in place is opened again
 * and kept; a foreign server can do neither.
 */
type Way = 'stage' | 'inPlace' | 'foreign';

export class BlockWriter {
  readonly #calls: FileCalls;
  readonly #path: string;
  readonly #how: WriteOptions;
  readonly #options: CallOptions;
  readonly #way: Way;
  readonly #stage = randomId();
  readonly #cuts: Cuts;
  #file: OpenFile | undefined;
  #wasOpen = false;
  /** What does not make a block yet: its first `#filled` bytes. */
  #block: Uint8Array = new Uint8Array(BLOCK_BYTES);
  #filled = 0;
  /** Sent and not answered, in order. */
  #sent: Block[] = [];
  #sentBytes = 0;
  /** Where the next block begins. */
  #end = 0;

  /** `path` is a URI. `options` are for each step. */
  constructor(calls: FileCalls, path: string, how: WriteOptions, options: CallOptions) {
    this.#calls = calls;
    this.#path = path;
    this.#how = how;
    this.#options = options;
    this.#cuts = new Cuts(path);
    this.#way = calls.extended ? (how.inPlace === true ? 'inPlace' : 'stage') : 'foreign';
  }

  /** Opens the file if it is not open, so that a refusal comes before the first bytes. */
  async open(): Promise<void> {
    if (this.#wasOpen) return;
    const refusesLinks = this.#how.followSymlinks === false;
    if (this.#way === 'foreign' && refusesLinks) this.#calls.require('writing in blocks with followSymlinks: false');
    await this.#reopen();
  }

  /** Resolves when the bytes, which are copied, have room on their way. One call at a time. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.open();
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + BLOCK_BYTES - this.#filled);
      this.#block.set(piece, this.#filled);
      this.#filled += piece.length;
      at += piece.length;
      if (this.#filled === BLOCK_BYTES) await this.#flush();
    }
  }

  /** Everything is written, and with a stage the file appears. */
  async commit(): Promise<WrittenReply> {
    await this.open();
    await this.#flush();
    for (;;) {
      while (this.#sent.length > 0) await this.#settleOldest();
      const file = this.#file;
      if (file === undefined) {
        const committed = await this.#reopen();
        if (committed !== undefined) return committed;
        continue;
      }
      const { fsync } = this.#how;
      const params = {
        handleId: file.handleId,
        ...(this.#way === 'stage' ? { commit: true } : {}),
        ...(fsync === true && this.#way !== 'foreign' ? { fsync } : {}),
      };
      const attempt = await this.#calls.close(file.connection, params, this.#options, shownPath(this.#path));
      this.#file = undefined;
      if (attempt.kind === 'answered') return { ...this.#inPlace(), ...attempt.value };
      this.#cuts.count(attempt.error);
      // Every block was answered, and the close adds nothing to them.
      if (this.#way === 'foreign' || (this.#way === 'inPlace' && fsync !== true)) return this.#inPlace();
    }
  }

  /** Drops the stage; what was written in place stays. Never rejects; may be called again, after what was under way has failed. */
  async drop(): Promise<void> {
    const file = this.#file;
    const hasStage = this.#way === 'stage' && this.#wasOpen;
    this.#file = undefined;
    this.#wasOpen = false;
    this.#sent = [];
    if (file !== undefined && (await this.#calls.release(file.connection, file.handleId))) return;
    if (!hasStage) return;
    try {
      await this.#dropLostStage();
    } catch {
      // The session has it, and ends with it.
    }
  }

  async #dropLostStage(): Promise<void> {
    const options = { timeoutMs: limits.RECOVERY_MS };
    const connection = await this.#calls.connection('fs/open', options);
    const handleId = this.#calls.newId();
    await this.#calls.open(connection, { ...this.#openParams(handleId), exclusive: false }, options);
    await this.#calls.release(connection, handleId);
  }

  async #flush(): Promise<void> {
    const bytes = this.#block.subarray(0, this.#filled);
    if (bytes.length === 0) return;
    while (this.#sentBytes + bytes.length > WRITE_AHEAD_BYTES) await this.#settleOldest();
    while (this.#file === undefined) await this.#reopen();
    this.#block = new Uint8Array(BLOCK_BYTES);
    this.#filled = 0;
    const block = { offset: this.#end, bytes, answer: this.#send(this.#file, this.#end, bytes) };
    this.#sent.push(block);
    this.#sentBytes += bytes.length;
    this.#end += bytes.length;
  }

  /** Waits for the answer to the oldest block; after a cut that is on the next connection. */
  async #settleOldest(): Promise<void> {
    const [block] = this.#sent;
    if (block === undefined) return;
    const attempt = await block.answer;
    if (attempt.kind === 'answered') {
      if (this.#sent[0] === block) this.#forgetOldest(block);
      return;
    }
    this.#file = undefined;
    this.#cuts.count(attempt.error);
    if (this.#way === 'foreign') throw outcomeUnknown({ method: 'fs/writeBlock', data: this.#data() }, attempt.error);
    await this.#reopen();
  }

  #forgetOldest(block: Block): void {
    this.#cuts.progress();
    this.#sent.shift();
    this.#sentBytes -= block.bytes.length;
  }

  #send(file: OpenFile, offset: number, bytes: Uint8Array): Promise<Attempt<unknown>> {
    const params = { handleId: file.handleId, offset, chunk: encodeBase64(bytes) };
    const answer = this.#calls.writeBlock(file.connection, params, this.#options, shownPath(this.#path));
    // Looked at in its turn, or never, where an earlier one ends the writing.
    answer.catch(() => undefined);
    return answer;
  }

  /** Opens, or opens again and sends what did not arrive; gives what a commit answered whose answer was lost. */
  async #reopen(): Promise<WrittenReply | undefined> {
    for (;;) {
      const connection = await this.#calls.connection('fs/open', this.#options);
      const handleId = this.#calls.newId();
      const attempt = await this.#calls.open(connection, this.#openParams(handleId), this.#options);
      if (attempt.kind === 'cut') {
        this.#cuts.count(attempt.error);
        if (this.#way === 'stage' || !this.#effectUnknown()) continue;
        throw outcomeUnknown({ method: 'fs/open', data: this.#data() }, attempt.error);
      }
      const { committed } = attempt.value;
      if (committed !== undefined) return this.#wasCommitted(committed);
      this.#file = { connection, handleId };
      if (this.#wasOpen) this.#sendAgain(this.#file, attempt.value);
      this.#wasOpen = true;
      return undefined;
    }
  }

  /** A file that must not exist is there after the first attempt: a repeat would refuse it for being its own. */
  #effectUnknown(): boolean {
    return this.#how.overwrite === false && !this.#wasOpen;
  }

  #wasCommitted(committed: WrittenReply): WrittenReply {
    if (this.#sent.length === 0 && this.#filled === 0 && this.#wasOpen) return committed;
    throw new FileError(
      'UNKNOWN_HANDLE',
      `the stage of ${shownPath(this.#path)} was ended by somebody else`,
      this.#data(),
    );
  }

  #sendAgain(file: OpenFile, { stagedBytes }: OpenReply): void {
    const arrived = this.#way === 'stage' ? (stagedBytes ?? 0) : (this.#sent[0]?.offset ?? this.#end);
    if (arrived < (this.#sent[0]?.offset ?? this.#end)) {
      const message = `the stage of ${shownPath(this.#path)} has lost what was written; write the file again`;
      throw new FileError('UNKNOWN_HANDLE', message, { ...this.#data(), retryable: true });
    }
    for (const block of [...this.#sent]) {
      if (block.offset + block.bytes.length <= arrived) this.#forgetOldest(block);
      else block.answer = this.#send(file, block.offset, block.bytes);
    }
  }

  #openParams(handleId: string): Parameters<FileCalls['open']>[1] {
    const base = { handleId, path: this.#path, mode: 'replace' as const };
    if (this.#way === 'foreign') return base;
    const { followSymlinks, overwrite, mode } = this.#how;
    const exclusive = overwrite === false ? { exclusive: true } : {};
    const common = {
      ...base,
      ...(followSymlinks === undefined ? {} : { followSymlinks }),
      ...(mode === undefined ? {} : { permissions: mode }),
    };
    if (this.#way === 'stage') return { ...common, stage: this.#stage, ...exclusive };
    return { ...common, ...(this.#wasOpen ? { keep: true } : exclusive) };
  }

  /** A server says it for a write of its own alone. */
  #inPlace(): WrittenReply {
    return this.#way === 'inPlace' ? { inPlace: 'asked' } : {};
  }

  #data(): { readonly path: string } {
    return { path: shownPath(this.#path) };
  }
}
