/** The body of an answer as a client gets it: decoded, and with a plain word on whether it is whole. */
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Answer, ReceivedHeader } from './exchange.js';

export interface ResponseBody {
  /** Closes when nothing more comes. */
  readonly stream: Readable;
  /** Why the body is not whole; known once the stream has closed. */
  readonly failure: () => Error | undefined;
  /** Ends it, and the http connection it comes from. */
  cancel(): void;
}

/** Larger pieces than zlib's own, as each becomes a message. */
const PIECE_BYTES = 64 * 1024;
const NO_LONGER_TRUE = new Set(['content-encoding', 'content-length']);

/** Body and headers of an answer to `method`; gzip is decoded, and the headers that spoke of it are gone. */
export function decodeAnswer(
  answer: Answer,
  method: string,
): { readonly headers: readonly ReceivedHeader[]; readonly body: ResponseBody } {
  const { headers, body, failure } = answer;
  if (!isGzip(answer, method)) {
    return { headers, body: { stream: body, failure, cancel: () => body.destroy() } };
  }
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  // Its failure stays with the last stream.
  pipeline(body, gunzip, () => {});
  let isPadded = false;
  gunzip.once('end', () => {
    // What comes behind the end of the compressed data, be it zeros without end, is not waited for.
    isPadded = !body.readableEnded;
    if (isPadded) gunzip.destroy();
  });
  const failed = (): Error | undefined => {
    if (isPadded) return undefined;
    // A body of no bytes at all has no end mark, and nothing is missing from it.
    return failure() ?? (answer.receivedBytes() > 0 ? (gunzip.errored ?? undefined) : undefined);
  };
  return {
    headers: headers.filter(({ name }) => !NO_LONGER_TRUE.has(name)),
    body: { stream: gunzip, failure: failed, cancel: () => gunzip.destroy() },
  };
}

function isGzip({ status, headers }: Answer, method: string): boolean {
  if (method.toUpperCase() === 'HEAD' || status === 204 || status === 304) return false;
  const [encoding, ...more] = headers.filter(({ name }) => name === 'content-encoding');
  return more.length === 0 && encoding !== undefined && /^(x-)?gzip$/i.test(encoding.value);
}
