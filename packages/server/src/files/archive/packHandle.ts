/**
 * An archive that is read block by block. Nothing is made before it is asked for, and what is held is a block and a piece of a
 * file, whatever their size.
 */
import { Buffer } from 'node:buffer';
import { type ResultOf, WireError, withPayload } from '@exec-server/protocol';
import { createTarPacker, type TarPackController } from 'modern-tar';
import { pathText } from '../../paths.js';
import { fileError } from '../errno.js';
import type { CloseHow, OpenHandle } from '../fileHandles.js';
import type { PackedEntry } from './packEntries.js';

const PIECE_BYTES = 256 * 1024;

export class PackHandle implements OpenHandle {
  readonly #entries: AsyncGenerator<PackedEntry>;
  readonly #controller: TarPackController;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #demand = new Demand();
  #making: Promise<void> | undefined;
  /** Made and not read yet. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isMade = false;
  #offset = 0;
  #last: { readonly offset: number; readonly len: number; readonly result: ResultOf<'fs/readBlock'> } | undefined;
  #failure: Error | undefined;

  constructor(entries: AsyncGenerator<PackedEntry>) {
    const { readable, controller } = createTarPacker();
    this.#entries = entries;
    this.#controller = controller;
    this.#reader = readable.getReader();
  }

  /** From the place where the last block ended; or that block again. */
  readonly read = async (offset: number, len: number): Promise<ResultOf<'fs/readBlock'>> => {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#last?.offset === offset && this.#last.len === len) return withPayload({ ...this.#last.result }, 'chunk');
    if (offset !== this.#offset) {
      throw new WireError('invalidArgument', `an archive is read in order: the next block is at ${this.#offset}`, {
        field: 'offset',
      });
    }
    try {
      await this.#fill(len);
    } catch (error) {
      const failure = fileError(error);
      this.#failure = failure instanceof Error ? failure : new Error(String(failure));
      throw this.#failure;
    }
    const bytes = this.#take(len);
    const eof = this.#isMade && this.#heldBytes === 0;
    const result = { chunk: bytes.toString('base64'), eof };
    this.#last = { offset, len, result };
    this.#offset += bytes.length;
    return withPayload({ ...result }, 'chunk');
  };

  readonly close = async ({ commit }: CloseHow): Promise<ResultOf<'fs/close'>> => {
    await this.drop();
    if (commit === true)
      throw new WireError('invalidArgument', 'an archive that is read has no commit', { field: 'commit' });
    return {};
  };

  readonly drop = async (): Promise<void> => {
    this.#failure ??= new WireError('unknownHandle', 'the archive was closed');
    this.#demand.stop(this.#failure);
    this.#held = [];
    await this.#making;
  };

  /** One byte more than asked for, as far as there is one, so that the last block is known to be it. */
  async #fill(len: number): Promise<void> {
    this.#making ??= this.#make();
    this.#demand.open();
    try {
      while (this.#heldBytes <= len && !this.#isMade) {
        const { done, value } = await this.#reader.read();
        if (done) {
          this.#isMade = true;
          return;
        }
        this.#held.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
        this.#heldBytes += value.byteLength;
      }
    } finally {
      this.#demand.close();
    }
  }

  #take(len: number): Buffer {
    const all = Buffer.concat(this.#held);
    const taken = all.subarray(0, len);
    const rest = all.subarray(taken.length);
    this.#held = rest.length === 0 ? [] : [rest];
    this.#heldBytes = rest.length;
    return taken;
  }

  /** Never rejects: whoever reads has the failure. */
  async #make(): Promise<void> {
    try {
      for await (const entry of this.#entries) {
        await this.#demand.wait();
        const writer = this.#controller.add(entry.header).getWriter();
        for await (const piece of this.#pieces(entry)) await writer.write(piece);
        await writer.close();
      }
      await this.#demand.wait();
      this.#controller.finalize();
    } catch (error) {
      this.#controller.error(error);
    }
  }

  /** As many bytes as its header says; what was added since is left out. */
  async *#pieces({ file, header, path }: PackedEntry): AsyncGenerator<Uint8Array> {
    for (let left = header.size; left > 0; ) {
      await this.#demand.wait();
      const piece = Buffer.allocUnsafeSlow(Math.min(left, PIECE_BYTES));
      const { bytesRead = 0 } = (await file?.read(piece, 0, piece.length)) ?? {};
      if (bytesRead === 0) {
        throw new WireError('fileChanged', 'the file became shorter while it was being packed', {
          path: pathText(path),
        });
      }
      left -= bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  }
}

/** Whether bytes are wanted now. */
class Demand {
  #isOpen = false;
  #stopped: Error | undefined;
  #wake: () => void = () => {};

  open(): void {
    this.#isOpen = true;
    this.#wake();
  }

  close(): void {
    this.#isOpen = false;
  }

  /** Nothing is wanted any more: every wait rejects with this. */
  stop(reason: Error): void {
    this.#stopped = reason;
    this.#wake();
  }

  async wait(): Promise<void> {
    while (!this.#isOpen && this.#stopped === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#stopped !== undefined) throw this.#stopped;
  }
}
