/** `client.http`: an http request made by the server, in the manner of `fetch`. */
import { encodeBase64, ErrorCode } from '@exec-server/protocol';
import { notSupported } from '../calls.js';
import { ClientError, isClientError, toClientError } from '../errors.js';
import type { Session } from '../session.js';
import { isInteger, isObject, isText } from '../shapes.js';
import type { ExpectedResponse, HttpResponses } from './responses.js';
import { onAbort } from '../signals.js';

/** A header: name, value, and a variable of the server's environment whose value is put behind it. */
export type HttpHeaderInput = readonly [name: string, value: string, valueEnvVar?: string];

/** What {@link Client.http} sends, and for how long it waits. */
export interface HttpOptions {
  /** As it is sent. Default `GET`. */
  readonly method?: string | undefined;
  /** In the order in which they are sent, repetitions included; or by name. */
  readonly headers?: Readonly<Record<string, string>> | Iterable<HttpHeaderInput> | undefined;
  /** Sent whole; text as UTF-8. Default: none. */
  readonly body?: string | Uint8Array | undefined;
  /** For all of it, in ms, the body of the answer included. Default: no limit. REQUEST_TIMEOUT, or HTTP_FAILED of the body. */
  readonly timeoutMs?: number | undefined;
  /** `stop`: a redirect is the answer. Default `follow`, up to 10 times. */
  readonly redirect?: 'follow' | 'stop' | undefined;
  /** Gives up, with ABORTED; the server carries on to the end of the body, as the protocol knows no way to cancel. */
  readonly signal?: AbortSignal | undefined;
}

/** An answer; a status of 400 and more is one, too. */
export class HttpResponse {
  /** The status code, of whichever kind. */
  readonly status: number;
  /** Pairs of a name, in lower case, and a value; in the order of arrival, repetitions included. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /**
   * Errors with HTTP_FAILED when it is not whole. It has to be read as it comes: 16 MiB may wait in the client, over all
   * responses, since a server cannot be asked to wait with one of them. Beyond that bodies that nobody reads are given up.
   */
  readonly body: ReadableStream<Uint8Array>;

  /** @internal */
  constructor({ status, headers }: HttpHead, body: ReadableStream<Uint8Array>) {
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  /** The whole body; it can be read once. Rejects as `body` errors. */
  async bytes(): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    const reader = this.body.getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) chunks.push(read.value);
    const whole = new Uint8Array(chunks.reduce((total, { length }) => total + length, 0));
    let at = 0;
    for (const chunk of chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }

  /** The whole body as UTF-8. */
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }
}

interface HttpHead {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Rejects as documented at `Client.http`. */
export async function httpRequest(
  session: Session,
  responses: HttpResponses,
  url: string | URL,
  options: HttpOptions,
): Promise<HttpResponse> {
  const { timeoutMs, signal } = options;
  const { calls } = session;
  const bounds = calls.bounds('http/request', { timeoutMs, signal });
  const begunAt = session.clock.now();
  try {
    await calls.connection(bounds);
    if (session.server.extended?.http === false) throw notSupported(session.dialer.label, 'http requests');
    const expected = responses.expect();
    try {
      const params = paramsOf(expected.requestId, String(url), options);
      const head = await calls.answer({ method: 'http/request', params, guard: httpHead }, bounds, () =>
        expected.sent(),
      );
      expected.answered();
      endWith(expected, signal);
      return new HttpResponse(head, expected.record.body);
    } catch (error) {
      const failure = withoutAnswer(error, timeoutMs !== undefined && session.clock.now() - begunAt >= timeoutMs);
      expected.record.fail(toClientError(failure, 'HTTP_FAILED', 'the http request has no answer'));
      throw failure;
    }
  } finally {
    bounds.dispose();
  }
}

/** A foreign server has one code, and no reason, for a request that was made and had no answer. */
function withoutAnswer(error: unknown, isLate: boolean): unknown {
  if (!isClientError(error) || error.code !== 'SERVER_ERROR') return error;
  if (error.data.reason !== undefined || error.data.wireCode !== ErrorCode.internal) return error;
  return new ClientError(isLate ? 'REQUEST_TIMEOUT' : 'HTTP_FAILED', error.message, error.data, error.cause);
}

function paramsOf(requestId: string, url: string, options: HttpOptions): object {
  const { method = 'GET', headers, body, timeoutMs, redirect } = options;
  return {
    method,
    url,
    headers: headerList(headers),
    requestId,
    streamResponse: true,
    ...(body === undefined ? {} : { bodyBase64: encodeBase64(isText(body) ? new TextEncoder().encode(body) : body) }),
    ...(timeoutMs === undefined ? {} : { timeoutMs: Math.ceil(timeoutMs) }),
    ...(redirect === undefined ? {} : { redirectPolicy: redirect }),
  };
}

function headerList(headers: HttpOptions['headers'] = []): object[] {
  const list: Iterable<HttpHeaderInput> = isIterable(headers) ? headers : Object.entries(headers);
  return Array.from(list, ([name, value, valueEnvVar]) => ({
    name,
    value,
    ...(valueEnvVar === undefined ? {} : { valueEnvVar }),
  }));
}

function isIterable(headers: NonNullable<HttpOptions['headers']>): headers is Iterable<HttpHeaderInput> {
  return Symbol.iterator in headers;
}

function httpHead(value: unknown): HttpHead | undefined {
  if (!isObject(value)) return undefined;
  const { status, headers } = value;
  if (!isInteger(status) || !Array.isArray(headers)) return undefined;
  const pairs: [string, string][] = [];
  for (const header of headers as readonly unknown[]) {
    if (!isObject(header) || !isText(header['name']) || !isText(header['value'])) return undefined;
    pairs.push([header['name'], header['value']]);
  }
  return { status, headers: pairs };
}

/** The caller's signal ends the body, too, while it comes. */
function endWith(expected: ExpectedResponse, signal: AbortSignal | undefined): void {
  if (signal === undefined) return;
  const abort = (): void => {
    const message = 'the http response was aborted by the caller';
    expected.record.fail(new ClientError('ABORTED', message, { method: 'http/request' }, signal.reason));
  };
  expected.onEnd(onAbort(signal, abort));
}
