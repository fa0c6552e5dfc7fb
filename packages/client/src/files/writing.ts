/** Whole files and streams into files. */
import { checkCount } from '../checkCount.js';
import { encodeBase64 } from '@exec-server/protocol';
import type { CallOptions } from '../calls.js';
import { ClientError } from '../errors.js';
import { BlockWriter } from './blockWriter.js';
import type { FileCalls } from './fileCalls.js';
import type { WrittenReply } from './fileGuards.js';
import { type WriteFileOptions, type WriteOptions, type WriteStreamOptions } from './fileOptions.js';
import { onAbort } from '../signals.js';
import { abortedTransfer } from './reading.js';

/** Up to here a file is written by one call; also the piece of a large `append`. */
const ONE_CALL_BYTES = 1024 * 1024;
/** The same on foreign servers, whose messages have at most 16 MiB: base64 grows it by a third. */
const FOREIGN_CALL_BYTES = 11 * 1024 * 1024;

/** `path` is a URI. */
export async function writeWhole(
  calls: FileCalls,
  path: string,
  content: string | Uint8Array,
  options: WriteFileOptions,
): Promise<WrittenReply> {
  checkWrite(calls, options);
  if (options.append === true) calls.require('append');
  const bytes = bytesOf(content);
  return await calls.within('fs/writeFile', path, options, async (step) => {
    if (options.append === true) return await append(calls, path, bytes, options, step);
    const isSmall = bytes.length <= (calls.extended ? ONE_CALL_BYTES : FOREIGN_CALL_BYTES);
    return isSmall
      ? await calls.writeFile({ path, dataBase64: encodeBase64(bytes), ...wireOptions(calls, options) }, step)
      : await writeBlocks(calls, path, bytes, options, step);
  });
}

async function append(
  calls: FileCalls,
  path: string,
  bytes: Uint8Array,
  { overwrite, ...options }: WriteFileOptions,
  step: CallOptions,
): Promise<WrittenReply> {
  let reply: WrittenReply = {};
  for (let at = 0; at === 0 || at < bytes.length; at += ONE_CALL_BYTES) {
    const dataBase64 = encodeBase64(bytes.subarray(at, at + ONE_CALL_BYTES));
    // Behind the first piece the file is its own.
    const how = wireOptions(calls, at === 0 ? { overwrite, ...options } : options);
    reply = await calls.writeFile({ path, dataBase64, append: true, ...how }, step);
  }
  return reply;
}

async function writeBlocks(
  calls: FileCalls,
  path: string,
  bytes: Uint8Array,
  how: WriteOptions,
  step: CallOptions,
): Promise<WrittenReply> {
  const writer = new BlockWriter(calls, path, how, step);
  try {
    await writer.write(bytes);
    return await writer.commit();
  } catch (error) {
    void writer.drop();
    throw error;
  }
}

/** `path` is a URI. Nothing is sent before the first write. */
export function writingStream(
  calls: FileCalls,
  path: string,
  options: WriteStreamOptions,
): WritableStream<string | Uint8Array> {
  checkWrite(calls, options);
  const sink = sinkOf(path, options, (step) => {
    const writer = new BlockWriter(calls, path, options, step);
    return { write: (bytes) => writer.write(bytes), end: () => writer.commit(), drop: () => writer.drop() };
  });
  return new WritableStream(sink);
}

/** What a stream puts its bytes into. */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<void>;
  /** The bytes are complete. */
  end(): Promise<unknown>;
  /** They will not be. Never rejects; may be called in any state, and more than once. */
  drop(): Promise<void>;
}

/** What a `WritableStream` is made of. */
export type StreamSink = NonNullable<ConstructorParameters<typeof WritableStream<string | Uint8Array>>[0]>;

export function sinkOf(
  path: string,
  { signal, timeoutMs }: CallOptions,
  make: (step: CallOptions) => ByteSink,
): StreamSink {
  const steps = new AbortController();
  const sink = make({ signal: steps.signal, timeoutMs });
  let forget = (): void => {};
  /** After a failure of a step the stream is over, and nobody calls `abort` any more. */
  const step = async (action: () => Promise<unknown>): Promise<void> => {
    try {
      await action();
    } catch (error) {
      forget();
      void sink.drop();
      throw error;
    }
  };
  return {
    start: (controller) => {
      // A write that is under way would hold back `abort`.
      onAbort(signalOf(controller), (reason) => steps.abort(reason));
      forget = onAbort(signal, (reason) => {
        controller.error(abortedTransfer(path, reason));
        steps.abort(reason);
        void sink.drop();
      });
    },
    write: (chunk) => step(() => sink.write(bytesOf(chunk))),
    close: () =>
      step(async () => {
        await sink.end();
        forget();
      }),
    abort: async () => {
      forget();
      await sink.drop();
    },
  };
}

/** Aborts when the stream does; the types of Node do not know it. */
function signalOf(controller: object): AbortSignal | undefined {
  return 'signal' in controller && controller.signal instanceof AbortSignal ? controller.signal : undefined;
}

function bytesOf(content: string | Uint8Array): Uint8Array {
  if (typeof content === 'string') return new TextEncoder().encode(content);
  if (content instanceof Uint8Array) return content;
  const message = `content cannot be used: it is a ${typeof content}; pass a string or a Uint8Array`;
  throw new ClientError('INVALID_ARGUMENT', message, { argument: 'content' });
}

function checkWrite(calls: FileCalls, { overwrite, mode, fsync }: WriteOptions): void {
  checkCount('mode', mode);
  if (overwrite === false) calls.require('overwrite: false');
  if (mode !== undefined) calls.require('mode');
  if (fsync === true) calls.require('fsync');
}

/** A foreign server writes in place by itself and knows `followSymlinks` alone. */
function wireOptions(
  { extended }: FileCalls,
  { followSymlinks, overwrite, mode, fsync, inPlace }: WriteOptions,
): Omit<Parameters<FileCalls['writeFile']>[0], 'path' | 'dataBase64' | 'append'> {
  return {
    ...(followSymlinks === undefined ? {} : { followSymlinks }),
    ...(overwrite === false ? { exclusive: true } : {}),
    ...(mode === undefined ? {} : { permissions: mode }),
    ...(fsync === true ? { fsync } : {}),
    ...(inPlace === true && extended ? { inPlace } : {}),
  };
}
