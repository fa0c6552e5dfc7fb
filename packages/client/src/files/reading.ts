/** Whole files and streams of files. */
import { checkCount } from '../checkCount.js';
import { limits } from '@exec-server/protocol';
import type { CallOptions } from '../calls.js';
import { ClientError } from '../errors.js';
import { BlockReader } from './blockReader.js';
import type { FileCalls } from './fileCalls.js';
import { FileError, isFileError } from './fileErrors.js';
import { DEFAULT_MAX_BYTES, type ReadFileOptions, type ReadStreamOptions } from './fileOptions.js';
import { onAbort } from '../signals.js';
import { shownPath } from './wirePath.js';

/** What is asked for at first: most files are answered at once. */
const FIRST_BYTES = 512 * 1024;
/** How often a whole file is read again that became another one meanwhile. */
const ATTEMPTS = 3;

interface Wanted {
  readonly path: string;
  readonly offset: number;
  readonly length: number | undefined;
  readonly maxBytes: number;
  readonly followSymlinks: boolean | undefined;
}

/** `path` is a URI. */
export async function readWhole(calls: FileCalls, path: string, options: ReadFileOptions): Promise<Uint8Array> {
  const { offset = 0, length, maxBytes = DEFAULT_MAX_BYTES, anyKind = false, followSymlinks } = options;
  checkCount('offset', offset);
  checkCount('length', length);
  checkCount('maxBytes', maxBytes);
  if (anyKind) calls.require('anyKind');
  const wanted: Wanted = { path, offset, length, maxBytes, followSymlinks };
  return await calls.within('fs/readFile', path, options, async (step) => {
    if (anyKind && (await calls.getMetadata({ path, detail: true }, step)).kind !== 'file') {
      return await readAtOnce(calls, wanted, step);
    }
    for (let attempt = 1; ; attempt++) {
      try {
        return calls.extended ? await readExtended(calls, wanted, step) : await readBlocks(calls, wanted, step);
      } catch (error) {
        // Nothing was given out yet, so that it can be read from the start.
        if (!isFileError(error) || error.code !== 'FILE_CHANGED' || attempt === ATTEMPTS) throw error;
      }
    }
  });
}

/** A device or FIFO: one read. */
async function readAtOnce(calls: FileCalls, wanted: Wanted, step: CallOptions): Promise<Uint8Array> {
  const { path, offset, length = Number.MAX_SAFE_INTEGER, maxBytes } = wanted;
  const most = Math.min(length, maxBytes, limits.MAX_READ_FILE_BYTES);
  const params = { path, anyKind: true, maxBytes: Math.max(most, 1), ...(offset === 0 ? {} : { offset }) };
  return (await calls.readFile({ ...params, ...linksOf(wanted) }, step)).bytes.subarray(0, most);
}

async function readExtended(calls: FileCalls, wanted: Wanted, step: CallOptions): Promise<Uint8Array> {
  const { path, offset, length = Number.MAX_SAFE_INTEGER } = wanted;
  const first = Math.max(1, Math.min(length, FIRST_BYTES));
  const head = await calls.readFile({ path, offset, maxBytes: first, ...linksOf(wanted) }, step);
  const bytes = head.bytes.subarray(0, length);
  checkSize(wanted, bytes.length);
  if (head.eof === true || bytes.length === length) return bytes;
  checkSize(wanted, Math.min(length, (head.size ?? 0) - offset));
  return await readBlocks(calls, wanted, step, { bytes, identity: head.identity });
}

/** The rest behind `head`, or all of it, with `head` in front. */
async function readBlocks(
  calls: FileCalls,
  wanted: Wanted,
  step: CallOptions,
  head?: { readonly bytes: Uint8Array; readonly identity: string | undefined },
): Promise<Uint8Array> {
  const { path, offset, length, followSymlinks } = wanted;
  const before = head?.bytes.length ?? 0;
  const range = {
    offset: offset + before,
    length: length === undefined ? undefined : length - before,
    followSymlinks,
    identity: head?.identity,
  };
  const reader = new BlockReader(calls, path, range, step);
  try {
    const size = Math.min(length ?? Number.MAX_SAFE_INTEGER, Math.max(0, (await reader.open()) - offset));
    checkSize(wanted, size);
    const gathered = new Gathered(Math.max(size, before));
    if (head !== undefined) gathered.add(head.bytes);
    for (let block = await reader.next(); block !== undefined; block = await reader.next()) {
      checkSize(wanted, gathered.length + block.length);
      gathered.add(block);
    }
    return gathered.bytes();
  } finally {
    reader.close();
  }
}

function checkSize({ path, maxBytes, length }: Wanted, size: number): void {
  if (size <= maxBytes) return;
  const shown = shownPath(path);
  const what = length === undefined ? `${shown} has` : `the range of ${shown} has`;
  const message = `${what} at least ${size} bytes, more than the ${maxBytes} that may be taken into memory; use readStream, a shorter range, or a larger maxBytes`;
  throw new FileError('FILE_TOO_LARGE', message, { path: shown, size, limitBytes: maxBytes, retryable: false });
}

const linksOf = ({ followSymlinks }: Wanted): { readonly followSymlinks?: boolean } =>
  followSymlinks === undefined ? {} : { followSymlinks };

/** Bytes in one piece, of about the length that is expected. */
class Gathered {
  #buffer: Uint8Array;
  length = 0;

  constructor(expectedBytes: number) {
    this.#buffer = new Uint8Array(expectedBytes);
  }

  add(bytes: Uint8Array): void {
    const needed = this.length + bytes.length;
    if (needed > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(needed, 2 * this.#buffer.length));
      larger.set(this.#buffer.subarray(0, this.length));
      this.#buffer = larger;
    }
    this.#buffer.set(bytes, this.length);
    this.length = needed;
  }

  bytes(): Uint8Array {
    return this.length === this.#buffer.length ? this.#buffer : this.#buffer.slice(0, this.length);
  }
}

/** `path` is a URI. Nothing is sent before the first read. */
export function readingStream(calls: FileCalls, path: string, options: ReadStreamOptions): ReadableStream<Uint8Array> {
  const { offset = 0, length, followSymlinks, signal } = options;
  checkCount('offset', offset);
  checkCount('length', length);
  const reader = new BlockReader(calls, path, { offset, length, followSymlinks }, options);
  return pulled(reader, { signal, path });
}

/** What a stream takes its bytes from. */
export interface ByteSource {
  /** Undefined at the end; what rejected is over. */
  next(): Promise<Uint8Array | undefined>;
  close(): void;
}

export function pulled(
  source: ByteSource,
  { signal, path }: { readonly signal: AbortSignal | undefined; readonly path: string },
): ReadableStream<Uint8Array> {
  let forget = (): void => {};
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        forget = onAbort(signal, (reason) => {
          controller.error(abortedTransfer(path, reason));
          source.close();
        });
      },
      pull: async (controller) => {
        try {
          const bytes = await source.next();
          if (signal?.aborted === true) return;
          if (bytes !== undefined) {
            controller.enqueue(bytes);
            return;
          }
          forget();
          controller.close();
        } catch (error) {
          forget();
          throw error;
        }
      },
      cancel: () => {
        forget();
        source.close();
      },
    },
    { highWaterMark: 0 },
  );
}

export function abortedTransfer(path: string, reason: unknown): ClientError {
  return new ClientError('ABORTED', `the transfer of ${shownPath(path)} was aborted by the caller`, {}, reason);
}
