/** Trees as tar archives. An archive belongs to one connection: a cut ends the transfer, which can be begun again. */
import { encodeBase64, limits } from '@exec-server/protocol';
import type { Attempt, CallOptions } from '../calls.js';
import type { Connection } from '../connection.js';
import { ClientError } from '../errors.js';
import { BLOCK_BYTES } from './blockReader.js';
import { WRITE_AHEAD_BYTES } from './blockWriter.js';
import type { FileCalls } from './fileCalls.js';
import type { BlockReply } from './fileGuards.js';
import type { PackOptions, UnpackOptions } from './fileOptions.js';
import { abortedTransfer, type ByteSource, pulled } from './reading.js';
import { shownPath } from './wirePath.js';
import { type ByteSink, sinkOf, type StreamSink } from './writing.js';

/** What was unpacked. */
export interface Unpacked {
  /** Files, folders and links that were made. */
  readonly entries: number;
  /** Of the files. */
  readonly bytes: number;
}

interface Archive {
  readonly connection: Connection;
  readonly handleId: string;
}

/** `path` is a URI. Nothing is sent before the first read. */
export function packingStream(calls: FileCalls, path: string, options: PackOptions): ReadableStream<Uint8Array> {
  calls.require('fs/pack');
  return pulled(new PackReader(calls, path, options), { signal: options.signal, path });
}

class PackReader implements ByteSource {
  readonly #calls: FileCalls;
  readonly #path: string;
  readonly #how: PackOptions;
  #archive: Archive | undefined;
  /** The next block, asked for when the one before arrived. */
  #block: Promise<Attempt<BlockReply>> | undefined;
  #position = 0;
  #ended = false;

  constructor(calls: FileCalls, path: string, how: PackOptions) {
    this.#calls = calls;
    this.#path = path;
    this.#how = how;
  }

  async next(): Promise<Uint8Array | undefined> {
    if (this.#ended) return undefined;
    try {
      const archive = (this.#archive ??= await this.#open());
      const { bytes, eof } = answered(await (this.#block ?? this.#ask(archive)), this.#path);
      if (this.#isOver()) {
        this.close();
        return undefined;
      }
      this.#position += bytes.length;
      if (eof) {
        this.#ended = true;
        this.#archive = undefined;
        await this.#calls.release(archive.connection, archive.handleId);
      } else {
        if (bytes.length === 0) throw archive.connection.violate('a block of an archive is empty and not its end');
        this.#block = this.#ask(archive);
      }
      return bytes;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    this.#ended = true;
    const archive = this.#archive;
    this.#archive = undefined;
    if (archive !== undefined) void this.#calls.release(archive.connection, archive.handleId);
  }

  /** `close` brings that about at any time. */
  #isOver(): boolean {
    return this.#ended;
  }

  async #open(): Promise<Archive> {
    const { names, includeParent, followSymlinks, ...options } = this.#how;
    const connection = await this.#calls.connection('fs/pack', options);
    const handleId = this.#calls.newId();
    const params = {
      handleId,
      path: this.#path,
      ...(names === undefined ? {} : { names: [...names] }),
      ...(includeParent === undefined ? {} : { includeParent }),
      ...(followSymlinks === undefined ? {} : { followSymlinks }),
    };
    answered(await this.#calls.pack(connection, params, options), this.#path);
    return { connection, handleId };
  }

  #ask({ connection, handleId }: Archive): Promise<Attempt<BlockReply>> {
    const params = { handleId, offset: this.#position, len: limits.MAX_FILE_BLOCK_BYTES };
    const block = this.#calls.readBlock(connection, params, this.#how, shownPath(this.#path));
    // Looked at when the reader comes for it, or never.
    block.catch(() => undefined);
    return block;
  }
}

/** Takes a tar archive; what arrives is unpacked as it comes, and closing the stream is its end. */
export class UnpackStream extends WritableStream<string | Uint8Array> {
  /** What was unpacked, once the stream is closed; rejects when it fails or is aborted. */
  readonly result: Promise<Unpacked>;

  /** @internal Use `unpack`. */
  constructor(sink: StreamSink, result: Promise<Unpacked>) {
    super(sink);
    this.result = result;
  }
}

/** `path` is a URI. Nothing is sent before the first write. */
export function unpackingStream(calls: FileCalls, path: string, options: UnpackOptions): UnpackStream {
  calls.require('fs/unpack');
  let resolve: (unpacked: Unpacked) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const result = new Promise<Unpacked>((whenDone, whenFailed) => {
    resolve = whenDone;
    reject = whenFailed;
  });
  // Whoever writes is told of the failure by the stream.
  result.catch(() => undefined);
  const noted = async <T>(step: Promise<T>): Promise<T> => {
    try {
      return await step;
    } catch (error) {
      reject(error);
      throw error;
    }
  };
  const sink = sinkOf(path, options, (step) => {
    const writer = new UnpackWriter(calls, path, options, step);
    return {
      write: (bytes) => noted(writer.write(bytes)),
      end: async () => resolve(await noted(writer.end())),
      drop: async () => {
        reject(abortedTransfer(path, undefined));
        await writer.drop();
      },
    };
  });
  return new UnpackStream(sink, result);
}

class UnpackWriter implements ByteSink {
  readonly #calls: FileCalls;
  readonly #path: string;
  readonly #overwrite: boolean | undefined;
  readonly #options: CallOptions;
  #archive: Archive | undefined;
  /** Sent and not answered, in order. */
  #sent: { readonly bytes: number; readonly answer: Promise<Attempt<unknown>> }[] = [];
  #sentBytes = 0;
  #position = 0;
  /** What does not make a block yet: its first `#filled` bytes. */
  readonly #block = new Uint8Array(BLOCK_BYTES);
  #filled = 0;

  constructor(calls: FileCalls, path: string, { overwrite }: UnpackOptions, options: CallOptions) {
    this.#calls = calls;
    this.#path = path;
    this.#overwrite = overwrite;
    this.#options = options;
  }

  async write(bytes: Uint8Array): Promise<void> {
    const archive = (this.#archive ??= await this.#open());
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + BLOCK_BYTES - this.#filled);
      this.#block.set(piece, this.#filled);
      this.#filled += piece.length;
      at += piece.length;
      if (this.#filled === BLOCK_BYTES) await this.#flush(archive);
    }
  }

  async #flush({ connection, handleId }: Archive): Promise<void> {
    const bytes = this.#filled;
    if (bytes === 0) return;
    while (this.#sentBytes + bytes > WRITE_AHEAD_BYTES) await this.#settleOldest();
    const chunk = encodeBase64(this.#block.subarray(0, bytes));
    this.#filled = 0;
    const params = { handleId, offset: this.#position, chunk };
    const answer = this.#calls.writeBlock(connection, params, this.#options, shownPath(this.#path));
    // Looked at in its turn, or never, where an earlier one ends the writing.
    answer.catch(() => undefined);
    this.#sent.push({ bytes, answer });
    this.#sentBytes += bytes;
    this.#position += bytes;
  }

  async end(): Promise<Unpacked> {
    const archive = (this.#archive ??= await this.#open());
    const { connection, handleId } = archive;
    await this.#flush(archive);
    while (this.#sent.length > 0) await this.#settleOldest();
    const params = { handleId, commit: true };
    const { entries = 0, bytes = 0 } = answered(
      await this.#calls.close(connection, params, this.#options, shownPath(this.#path)),
      this.#path,
    );
    this.#archive = undefined;
    return { entries, bytes };
  }

  async drop(): Promise<void> {
    const archive = this.#archive;
    this.#archive = undefined;
    if (archive !== undefined) await this.#calls.release(archive.connection, archive.handleId);
  }

  async #settleOldest(): Promise<void> {
    const block = this.#sent.shift();
    if (block === undefined) return;
    answered(await block.answer, this.#path);
    this.#sentBytes -= block.bytes;
  }

  async #open(): Promise<Archive> {
    const connection = await this.#calls.connection('fs/unpack', this.#options);
    const handleId = this.#calls.newId();
    const overwrite = this.#overwrite === undefined ? {} : { overwrite: this.#overwrite };
    answered(
      await this.#calls.unpack(connection, { handleId, path: this.#path, ...overwrite }, this.#options),
      this.#path,
    );
    return { connection, handleId };
  }
}

/** The answer; throws for a cut, after which the archive is gone. */
function answered<T>(attempt: Attempt<T>, path: string): T {
  if (attempt.kind === 'answered') return attempt.value;
  const shown = shownPath(path);
  const message = `the connection was lost while the archive of ${shown} was carried; an archive cannot be taken up again; begin again`;
  throw new ClientError('TRANSFER_LOST', message, { path: shown, retryable: true }, attempt.error);
}
