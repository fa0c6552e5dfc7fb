/**
 * An archive that is written block by block and unpacked as it comes: a block is answered when the decoder has taken it, which it
 * does only a little ahead of the disk.
 */
import { type ResultOf, WireError } from '@exec-server/protocol';
import { createTarDecoder, type ParsedTarEntry } from 'modern-tar';
import { fileError } from '../errno.js';
import type { CloseHow, OpenHandle } from '../fileHandles.js';
import { badEntry } from './entryNames.js';
import { EntryTypes, isKnownType } from './entryTypes.js';
import type { UnpackedFolder } from './unpackedFolder.js';

/** What the decoder says of an archive that ends before its end mark. */
const TRUNCATED = 'Tar archive is truncated.';

export class UnpackHandle implements OpenHandle {
  readonly #folder: UnpackedFolder;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #entries: ReadableStreamDefaultReader<ParsedTarEntry>;
  /** Settles when nothing more is unpacked; never rejects. */
  readonly #unpacking: Promise<void>;
  readonly #types = new EntryTypes();
  #offset = 0;
  #lastOffset = 0;
  #failure: Error | undefined;

  constructor(folder: UnpackedFolder) {
    const { readable, writable } = createTarDecoder({ strict: true });
    this.#folder = folder;
    this.#writer = writable.getWriter();
    this.#entries = readable.getReader();
    this.#unpacking = this.#unpack();
  }

  /** At the place where the last block ended; the last block again is not taken twice. */
  readonly write = async (offset: number, bytes: Uint8Array): Promise<void> => {
    if (this.#failure !== undefined) throw this.#failure;
    if (offset === this.#lastOffset && offset + bytes.length === this.#offset && bytes.length > 0) return;
    if (offset !== this.#offset) {
      throw new WireError('invalidArgument', `an archive is written in order: the next block is at ${this.#offset}`, {
        field: 'offset',
      });
    }
    this.#lastOffset = offset;
    this.#offset += bytes.length;
    this.#types.feed(bytes);
    await this.#feed(() => this.#writer.write(bytes));
  };

  readonly close = async ({ commit }: CloseHow): Promise<ResultOf<'fs/close'>> => {
    if (commit !== true) {
      await this.drop();
      return {};
    }
    try {
      if (this.#failure === undefined) await this.#feed(() => this.#writer.close());
    } finally {
      await this.#unpacking;
    }
    if (this.#failure !== undefined) throw this.#failure;
    await this.#folder.finish();
    return this.#folder.counts;
  };

  readonly drop = async (): Promise<void> => {
    this.#failure ??= new WireError('unknownHandle', 'the archive was closed');
    // A stream that has failed already says so again.
    await this.#writer.abort(this.#failure).catch(() => undefined);
    await this.#unpacking;
  };

  async #feed(give: () => Promise<void>): Promise<void> {
    try {
      await give();
    } catch (error) {
      this.#failure ??= archiveError(error);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #unpack(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#entries.read();
        if (done) return;
        const { header, body } = value;
        if (!isKnownType(this.#types.next() ?? '')) throw badEntry(header.name, 'is of a kind that is not supported');
        if (!Number.isSafeInteger(header.size) || header.size < 0) throw badEntry(header.name, 'has no size');
        await this.#folder.add(header, body);
      }
    } catch (error) {
      this.#failure ??= archiveError(error);
      // It may have failed before, with the same.
      await this.#entries.cancel(this.#failure).catch(() => undefined);
    }
  }
}

/** Of the disk, of an entry, or of the decoder. */
function archiveError(error: unknown): Error {
  const known = fileError(error);
  if (known instanceof WireError) return known;
  const text = error instanceof Error ? error.message : String(error);
  if (text === TRUNCATED) return new WireError('archiveIncomplete', 'the archive ended before its end mark');
  return new WireError('badArchive', text);
}
