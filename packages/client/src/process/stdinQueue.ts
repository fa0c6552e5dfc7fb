/** The writes of one process: in order, one in flight, each piece named so that the server takes it once. */
import { encodeBase64 } from '@exec-server/protocol';
import type { Calls } from '../calls.js';
import { ClientError, type ClientErrorData, toClientError } from '../errors.js';
import { writeReply } from '../callGuards.js';

/** Bytes that may wait here beside one write of any size, and what a write costs on top of its bytes. */
export const QUEUED_BYTES = 64 * 1024 * 1024;
const WRITE_COST_BYTES = 128;

/** What a queue asks of its surroundings. */
export interface StdinHost {
  nextWriteId(): string;
  /** How many bytes the next `process/write` may carry. */
  pieceBytes(): number;
  /** That many bytes are on their way in a `process/write` from now on, or, below zero, no longer. */
  onTheWay(bytes: number): void;
  /** The queue has something from now on. */
  busy(queue: StdinQueue): void;
  /** The queue is empty again. */
  idle(queue: StdinQueue): void;
}

export interface StdinWrite {
  /** Closes stdin behind the bytes. */
  readonly eof?: boolean;
  /** Position of the first byte in all of stdin; default: behind what was accepted before. */
  readonly offset?: number | undefined;
}

interface Job {
  readonly bytes: Uint8Array;
  readonly eof: boolean;
  readonly offset: number | undefined;
  readonly resolve: () => void;
  readonly reject: (error: ClientError) => void;
}

interface Piece {
  readonly piece: Uint8Array;
  readonly eof: boolean;
  readonly place: number | undefined;
  /** Of the write it is a piece of, before it. */
  readonly acceptedBytes: number;
}

export class StdinQueue {
  readonly #processId: string;
  readonly #calls: Calls;
  readonly #host: StdinHost;
  #jobs: Job[] = [];
  #queuedBytes = 0;
  #running = false;
  /** An end is queued or was accepted: nothing goes behind it. */
  #ended = false;
  /** A write was refused for want of room: what was let in behind it would leave a hole. */
  #full = false;

  constructor(processId: string, calls: Calls, host: StdinHost) {
    this.#processId = processId;
    this.#calls = calls;
    this.#host = host;
  }

  /** Bytes of the writes that are not accepted yet, and the cost of keeping them. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /**
   * Resolves when the server has accepted all of it. The bytes are read until then. Once more is queued than there is room
   * for, which takes a caller who does not wait for his writes, everything is refused until the queue is empty.
   */
  write(bytes: Uint8Array, { eof = false, offset }: StdinWrite = {}): Promise<void> {
    if (this.#ended) return Promise.reject(this.#closed(0, 'it was ended here'));
    const cost = bytes.byteLength + WRITE_COST_BYTES;
    this.#full ||= this.#running && this.#queuedBytes + cost > QUEUED_BYTES;
    if (this.#full) return Promise.reject(this.#refused());
    this.#ended = eof;
    this.#queuedBytes += cost;
    return new Promise((resolve, reject) => {
      this.#jobs.push({ bytes, eof, offset, resolve, reject });
      // Never rejects: each job has the outcome of its own.
      if (!this.#running) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#running = true;
    this.#host.busy(this);
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      const outcome = await this.#runJob(job);
      this.#queuedBytes -= job.bytes.byteLength + WRITE_COST_BYTES;
      if (outcome === undefined) {
        job.resolve();
        continue;
      }
      job.reject(outcome);
      // What was queued behind a failed write would leave a hole.
      this.#queuedBytes = 0;
      // An end is the last of them, and was not accepted: it may be asked for again.
      if (outcome.code !== 'STDIN_CLOSED') this.#ended = false;
      for (const later of this.#jobs.splice(0)) later.reject(outcome.with({ acceptedBytes: 0 }));
    }
    // In the turn of the last look at the queue: a write that comes later starts again.
    this.#running = false;
    this.#full = false;
    this.#host.idle(this);
  }

  async #runJob({ bytes, eof, offset }: Job): Promise<ClientError | undefined> {
    let acceptedBytes = 0;
    try {
      do {
        const piece = bytes.subarray(acceptedBytes, acceptedBytes + this.#host.pieceBytes());
        const isLast = acceptedBytes + piece.byteLength >= bytes.byteLength;
        if (piece.byteLength > 0 || eof) {
          this.#host.onTheWay(piece.byteLength);
          const place = offset === undefined ? undefined : offset + acceptedBytes;
          await this.#send({ piece, eof: eof && isLast, place, acceptedBytes }).finally(() =>
            this.#host.onTheWay(-piece.byteLength),
          );
        }
        acceptedBytes += piece.byteLength;
      } while (acceptedBytes < bytes.byteLength);
      return undefined;
    } catch (error) {
      const failure = toClientError(error, 'SERVER_ERROR', `a write to process ${this.#processId} failed`);
      return failure.with({ acceptedBytes, processId: this.#processId });
    }
  }

  async #send({ piece, eof, place, acceptedBytes }: Piece): Promise<void> {
    const data: ClientErrorData = { processId: this.#processId };
    const extension = eof ? 'closing the stdin of a process' : place === undefined ? undefined : 'writes at an offset';
    const { status } = await this.#calls.call({
      method: 'process/write',
      params: {
        processId: this.#processId,
        chunk: encodeBase64(piece),
        // Either makes a repeat harmless; with a place the server drops what it has, whoever wrote it.
        ...(place === undefined ? { writeId: this.#host.nextWriteId() } : { offset: place }),
        ...(eof ? { eof: true } : {}),
      },
      guard: writeReply,
      ...(extension === undefined ? {} : { extension }),
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

  #refused(): ClientError {
    const message = `${this.#queuedBytes} bytes of writes wait for process ${this.#processId} to read; nothing of this one was taken; await the writes before it, then write again`;
    return new ClientError('STDIN_FULL', message, {
      processId: this.#processId,
      acceptedBytes: 0,
      limitBytes: QUEUED_BYTES,
      retryable: true,
    });
  }

  #closed(acceptedBytes: number, why: string): ClientError {
    const message = `the stdin of process ${this.#processId} is closed: ${why}; ${acceptedBytes} bytes of this write were accepted`;
    return new ClientError('STDIN_CLOSED', message, { processId: this.#processId, acceptedBytes });
  }
}
