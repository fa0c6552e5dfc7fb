/** The writes of one process: in order, one in flight, each piece named so that the server takes it once. */
import { encodeBase64 } from '@exec-server/protocol';
import type { Calls } from '../calls.js';
import { ClientError, type ClientErrorData, toClientError } from '../errors.js';
import { writeReply } from '../callGuards.js';

/** Bytes of one `process/write`; small enough to share a connection with output, large enough to be rare. */
export const PIECE_BYTES = 256 * 1024;

interface Job {
  readonly bytes: Uint8Array;
  readonly eof: boolean;
  readonly resolve: () => void;
  readonly reject: (error: ClientError) => void;
}

export class StdinQueue {
  readonly #processId: string;
  readonly #calls: Calls;
  readonly #nextWriteId: () => string;
  #jobs: Job[] = [];
  #running = false;
  #ended = false;

  constructor(processId: string, calls: Calls, nextWriteId: () => string) {
    this.#processId = processId;
    this.#calls = calls;
    this.#nextWriteId = nextWriteId;
  }

  /** Resolves when the server has accepted all of it. The bytes are read until then. */
  write(bytes: Uint8Array, eof = false): Promise<void> {
    if (this.#ended) return Promise.reject(this.#closed(0, 'it was ended here'));
    this.#ended = eof;
    return new Promise((resolve, reject) => {
      this.#jobs.push({ bytes, eof, resolve, reject });
      // Never rejects: each job has the outcome of its own.
      if (!this.#running) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#running = true;
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      const outcome = await this.#runJob(job);
      if (outcome === undefined) {
        job.resolve();
        continue;
      }
      job.reject(outcome);
      // What was queued behind a failed write would leave a hole.
      for (const later of this.#jobs.splice(0)) later.reject(outcome.with({ acceptedBytes: 0 }));
    }
    // In the turn of the last look at the queue: a write that comes later starts again.
    this.#running = false;
  }

  async #runJob({ bytes, eof }: Job): Promise<ClientError | undefined> {
    let acceptedBytes = 0;
    try {
      do {
        const piece = bytes.subarray(acceptedBytes, acceptedBytes + PIECE_BYTES);
        const isLast = acceptedBytes + piece.byteLength >= bytes.byteLength;
        if (piece.byteLength > 0 || eof) await this.#send(piece, eof && isLast, acceptedBytes);
        acceptedBytes += piece.byteLength;
      } while (acceptedBytes < bytes.byteLength);
      return undefined;
    } catch (error) {
      const failure = toClientError(error, 'SERVER_ERROR', `a write to process ${this.#processId} failed`);
      return failure.with({ acceptedBytes, processId: this.#processId });
    }
  }

  async #send(piece: Uint8Array, eof: boolean, acceptedBytes: number): Promise<void> {
    const data: ClientErrorData = { processId: this.#processId };
    const { status } = await this.#calls.call({
      method: 'process/write',
      params: {
        processId: this.#processId,
        chunk: encodeBase64(piece),
        writeId: this.#nextWriteId(),
        ...(eof ? { eof: true } : {}),
      },
      guard: writeReply,
      ...(eof ? { extension: 'closing the stdin of a process' } : {}),
      data,
    });
    switch (status) {
      case 'accepted':
        return;
      case 'stdinClosed':
        throw this.#closed(acceptedBytes, 'it was not kept open, was ended, or the process closed it');
      case 'unknownProcess':
        throw new ClientError('SERVER_ERROR', `the server does not have process ${this.#processId}`, {
          ...data,
          reason: status,
        });
      case 'starting':
        throw new ClientError('SERVER_ERROR', `process ${this.#processId} has not started yet; write again`, {
          ...data,
          reason: status,
          retryable: true,
        });
      default:
        status satisfies never;
    }
  }

  #closed(acceptedBytes: number, why: string): ClientError {
    const message = `the stdin of process ${this.#processId} is closed: ${why}; ${acceptedBytes} bytes of this write were accepted`;
    return new ClientError('STDIN_CLOSED', message, { processId: this.#processId, acceptedBytes });
  }
}
