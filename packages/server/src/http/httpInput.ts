/** Params of `http/request` → the request to send, or an error whose text is the one of the base protocol. */
import { Buffer } from 'node:buffer';
import { decodeBase64, limits, type ParamsOf, WireError } from '@exec-server/protocol';
import type { Hop, SentHeader } from './hop.js';
import { basicAuthorization } from './proxies.js';

type HttpParams = ParamsOf<'http/request'>;
type Environment = Readonly<Record<string, string | undefined>>;

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const NOT_IN_VALUE = /[\0-\x08\x0a-\x1f\x7f]/;

/** Variables whose values no request carries: whoever holds them spends the money of their owner. */
const NEVER_SENT = new Set([
  'OPENAI_API_KEY',
  'CODEX_API_KEY',
  'CODEX_ACCESS_TOKEN',
  'AZURE_OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'CLAUDE_CODE_OAUTH_TOKEN',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_BEARER_TOKEN_BEDROCK',
  'GEMINI_API_KEY',
  'GOOGLE_API_KEY',
  'MISTRAL_API_KEY',
  'GROQ_API_KEY',
  'XAI_API_KEY',
  'DEEPSEEK_API_KEY',
  'OPENROUTER_API_KEY',
  'TOGETHER_API_KEY',
  'FIREWORKS_API_KEY',
  'COHERE_API_KEY',
  'CO_API_KEY',
  'PERPLEXITY_API_KEY',
  'CEREBRAS_API_KEY',
  'REPLICATE_API_TOKEN',
  'HF_TOKEN',
  'HUGGINGFACE_API_KEY',
  'MOONSHOT_API_KEY',
  'DASHSCOPE_API_KEY',
  'ZHIPUAI_API_KEY',
  'EXEC_SERVER_SESSION',
]);

/** `env` is what `valueEnvVar` draws from. Throws WireError `httpInvalid`, and `invalidParams` for a body that is not base64. */
export function httpInput(params: HttpParams, env: Environment): Hop {
  const { method } = params;
  if (!TOKEN.test(method)) throw invalid('method', 'http/request method is invalid: invalid HTTP method');
  if (method.toUpperCase() === 'CONNECT') {
    throw invalid('method', 'http/request method is invalid: CONNECT opens a tunnel, which this server does not do');
  }
  if (params.streamResponse === true) checkRequestId(params.requestId);
  const url = urlOf(params.url);
  const headers = (params.headers ?? []).map((header) => sentHeader(header, env));
  const authorization = basicAuthorization(url);
  if (authorization !== undefined && !headers.some(({ name }) => name.toLowerCase() === 'authorization')) {
    headers.push({ name: 'authorization', value: authorization, secret: false });
  }
  url.username = '';
  url.password = '';
  const body = bodyOf(params.bodyBase64);
  checkLength(headers, body);
  return { method, url, headers, body };
}

/** An `http/request` that cannot be sent as it is. */
export function invalid(field: string, message: string): WireError {
  return new WireError('httpInvalid', message, { field });
}

/** It stands in every delta. */
function checkRequestId(requestId: string): void {
  if (Buffer.byteLength(requestId) <= limits.MAX_HTTP_REQUEST_ID_BYTES) return;
  throw new WireError(
    'httpInvalid',
    `http/request requestId is longer than ${limits.MAX_HTTP_REQUEST_ID_BYTES} bytes`,
    {
      field: 'requestId',
      limitBytes: limits.MAX_HTTP_REQUEST_ID_BYTES,
    },
  );
}

function urlOf(text: string): URL {
  if (!URL.canParse(text)) throw invalid('url', `http/request url is invalid: ${urlFault(text)}`);
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw invalid('url', `http/request only supports http and https URLs, got ${url.protocol.slice(0, -1)}`);
  }
  return url;
}

function urlFault(text: string): string {
  if (!/^[a-z][a-z0-9+.-]*:/i.test(text)) return 'relative URL without a base';
  if (/^https?:\/*([?#]|$)/i.test(text)) return 'empty host';
  return 'host or port cannot be parsed';
}

function sentHeader(
  { name, value, valueEnvVar }: NonNullable<HttpParams['headers']>[number],
  env: Environment,
): SentHeader {
  if (!TOKEN.test(name)) throw invalid('headers', 'http/request header name is invalid: invalid HTTP header name');
  const secret = valueEnvVar === undefined || valueEnvVar === null ? undefined : variable(name, valueEnvVar, env);
  const whole = value + (secret ?? '');
  if (NOT_IN_VALUE.test(whole)) {
    throw invalid('headers', `http/request header value is invalid for ${name}: failed to parse header value`);
  }
  return { name, value: Buffer.from(whole, 'utf8').toString('latin1'), secret: secret !== undefined };
}

/** A length that is not the one of the body would make the rest of it, or the next request, something else to the host. */
function checkLength(headers: readonly SentHeader[], body: Uint8Array | undefined): void {
  const length = String(body?.length ?? 0);
  const wrong = headers.find(({ name, value }) => name.toLowerCase() === 'content-length' && value !== length);
  if (wrong === undefined) return;
  throw invalid(
    'headers',
    `http/request cannot be sent: content-length is ${wrong.value}, and the body has ${length} bytes`,
  );
}

function variable(header: string, name: string, env: Environment): string {
  if (NEVER_SENT.has(name.toUpperCase())) {
    throw invalid('headers', `http/request header ${header} cannot use executor environment variable ${name}`);
  }
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (value === undefined) {
    throw invalid('headers', `http/request header ${header} requires executor environment variable ${name}`);
  }
  return value;
}

function bodyOf(bodyBase64: string | null | undefined): Uint8Array | undefined {
  if (bodyBase64 === undefined || bodyBase64 === null) return undefined;
  const decoded = decodeBase64(bodyBase64);
  if (!decoded.ok) throw new WireError('invalidParams', decoded.detail, { field: 'bodyBase64' });
  return decoded.bytes;
}
