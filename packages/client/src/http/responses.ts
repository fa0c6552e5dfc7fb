/** The http responses a client is receiving: whom a delta belongs to, and how much waits for readers in all. */
import { decodeBase64, limits } from '@exec-server/protocol';
import { ClientError } from '../errors.js';
import type { NoticeTaker } from '../notices.js';
import { isObject, isSeq, isText } from '../shapes.js';
import { type BodyDelta, ResponseRecord } from './responseRecord.js';
import { randomId } from '../randomId.js';

/** The notification that carries bodies. */
export const BODY_DELTA = 'http/request/bodyDelta';

/** One response from before its request goes out until its body has ended. */
export interface ExpectedResponse {
  readonly requestId: string;
  readonly record: ResponseRecord;
  /** The request goes out, on the connection there is now. */
  sent(): void;
  /** Its answer has come. */
  answered(): void;
  /** Calls `action` when the body has ended, or at once. */
  onEnd(action: () => void): void;
}

interface Expected {
  readonly record: ResponseRecord;
  /** How many connections had been lost when the request went out. */
  sentAt: number | undefined;
  answered: boolean;
  onEnd: (() => void) | undefined;
}

export class HttpResponses implements NoticeTaker {
  readonly #expected = new Map<string, Expected>();
  /** Those with something that waits, the ones that nobody holds any more included. */
  readonly #waiting = new Set<ResponseRecord>();
  #queuedBytes = 0;
  #losses = 0;

  /** Bytes that wait for readers. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** To be called before the request goes out: deltas may come before its answer is seen. */
  expect(): ExpectedResponse {
    const requestId: string = randomId();
    const record = new ResponseRecord({
      queued: (bytes) => {
        this.#queuedBytes += bytes;
        if (record.queuedBytes > 0) this.#waiting.add(record);
        else this.#waiting.delete(record);
      },
      over: () => {
        this.#expected.delete(requestId);
        expected.onEnd?.();
      },
    });
    const expected: Expected = { record, sentAt: undefined, answered: false, onEnd: undefined };
    this.#expected.set(requestId, expected);
    return {
      requestId,
      record,
      sent: () => {
        expected.sentAt = this.#losses;
      },
      answered: () => {
        expected.answered = true;
        // The loss may be known here before the answer, which was read ahead of it.
        if (this.#expected.has(requestId) && expected.sentAt !== this.#losses) record.fail(lostError());
      },
      onEnd: (action) => {
        if (this.#expected.has(requestId)) expected.onEnd = action;
        else action();
      },
    };
  }

  take(params: unknown): boolean {
    const delta = bodyDelta(params);
    if (delta === undefined) return false;
    const record = this.#expected.get(delta.requestId)?.record;
    // Without one it is the rest of a body that nobody reads any more.
    record?.accept(delta);
    if (record !== undefined) this.#makeRoom(record);
    return true;
  }

  /** Bodies that nobody reads go first, the largest of them before others; then the one that fills the client. */
  #makeRoom(filling: ResponseRecord): void {
    const limitBytes = limits.HTTP_QUEUED_BYTES_PER_CLIENT;
    while (this.#queuedBytes > limitBytes) {
      const unread = [...this.#waiting].filter(({ isRead }) => !isRead);
      const [largest = filling] = unread.toSorted((one, other) => other.queuedBytes - one.queuedBytes);
      largest.fail(overflow(limitBytes));
      if (largest === filling) return;
    }
  }

  /** Requests that are not answered have their own outcome. */
  lost(): void {
    this.#losses += 1;
    for (const { record, answered } of [...this.#expected.values()]) if (answered) record.fail(lostError());
  }
}

function bodyDelta(params: unknown): BodyDelta | undefined {
  if (!isObject(params)) return undefined;
  const { requestId, seq, deltaBase64, done, error } = params;
  if (!isText(requestId) || !isSeq(seq) || !isText(deltaBase64) || typeof done !== 'boolean') return undefined;
  const decoded = decodeBase64(deltaBase64);
  if (!decoded.ok) return undefined;
  return { requestId, seq, bytes: decoded.bytes, done, ...(isText(error) ? { error } : {}) };
}

function lostError(): ClientError {
  const message = 'the connection was lost while the http response came; it is not taken up again: ask anew';
  return new ClientError('HTTP_FAILED', message, { method: 'http/request', reason: 'lost', retryable: true });
}

function overflow(limitBytes: number): ClientError {
  const message = `more than ${limitBytes} bytes of http responses wait for their readers; this one was given up: read bodies as they come`;
  return new ClientError('HTTP_FAILED', message, { method: 'http/request', reason: 'overflow', limitBytes });
}
