/** Shapes of `http/request` and its streamed body. */
import { z } from 'zod';
import { base64, flag, text, u64 } from './scalars.js';

/** One header. */
export const HttpHeader = z.object({ name: text, value: text });

/** Params of `http/request`: a request the server makes, from where it stands. */
export const HttpRequestParams = z.object({
  method: text,
  /** `http:` or `https:`. */
  url: text,
  /** Sent in this order; a name may occur several times. `valueEnvVar` names a variable of the server that is put behind `value`. */
  headers: z.array(HttpHeader.extend({ valueEnvVar: text.nullish() })).optional(),
  bodyBase64: base64.nullish(),
  /** For the whole of it, the body of the answer included. Default: no limit. */
  timeoutMs: u64.nullish(),
  /** Default `follow`: up to 10 redirects. */
  redirectPolicy: z.enum(['follow', 'stop']).optional(),
  /** Names the deltas of a streamed response; unique on the connection while it streams. */
  requestId: text,
  /** Answer with status and headers, and send the body in `http/request/bodyDelta`. */
  streamResponse: flag.optional(),
});
/** Result of `http/request`; any status is one. */
export const HttpRequestResult = z.object({
  status: u64,
  /** In the order of arrival, names in lower case. */
  headers: z.array(HttpHeader),
  /** Empty with `streamResponse`. */
  bodyBase64: base64,
});
/** Params of `http/request/bodyDelta`: the next bytes of a streamed body. */
export const BodyDeltaParams = z.object({
  requestId: text,
  /** From 1, without holes. */
  seq: u64,
  deltaBase64: base64,
  /** True on the last one, whose delta is empty. */
  done: flag,
  /** On the last one: why the body is not whole; null where it is. */
  error: text.nullable(),
});
