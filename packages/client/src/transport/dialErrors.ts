/** A dial that failed, in words: what happened, and what to do. Pure. */
import { ClientError } from '../errors.js';

/** Refusals that pass: timeout, too many requests, and faults of a server or of a proxy whose server restarts. */
const isPassing = (status: number): boolean => status === 408 || status === 429 || status >= 500;

/** Error codes that say: this is no WebSocket server (bad frames, bad HTTP), or one whose certificate is not trusted. */
const FINAL_CODES = /^(WS_ERR|HPE_|ERR_TLS|ERR_SSL|EPROTO)|CERT/;
/** Of those, the ones of a certificate, and of another protocol where TLS was expected. */
const CERTIFICATE = /^ERR_TLS_CERT|CERT/;
const NO_TLS = /^(EPROTO|ERR_SSL)/;

/** How much of the body of a refusal a message repeats. */
const SHOWN_BODY = 200;

const CHECK_NETWORK = 'check the URL and the network';

/** Errors of the host that pass → what they mean, and what to do. */
const meanings: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there; start the server, or check the URL',
  ENOTFOUND: 'its host name is not known here; check the URL',
  EAI_AGAIN: 'its host name cannot be looked up now; check the network',
  ECONNRESET: 'the other side closed the connection without an answer; check that an exec server listens there',
  ETIMEDOUT: `its host does not answer; ${CHECK_NETWORK}`,
  EHOSTUNREACH: `its host cannot be reached; ${CHECK_NETWORK}`,
  ENETUNREACH: `its network cannot be reached; ${CHECK_NETWORK}`,
};

/** `label` names the server. */
export function connectError(label: string, error: Error): ClientError {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code !== undefined && !FINAL_CODES.test(code)) {
    const meaning = meanings[code];
    const words = meaning === undefined ? textOf(error) : `${meaning} (${code})`;
    return new ClientError(
      'CONNECT_FAILED',
      `no connection to ${label}: ${words}`,
      { url: label, retryable: true },
      error,
    );
  }
  return new ClientError('REFUSED', finalWords(label, code ?? '', textOf(error)), { url: label }, error);
}

function finalWords(label: string, code: string, text: string): string {
  if (CERTIFICATE.test(code)) {
    return `the certificate of ${label} is not trusted: ${text}; no token was sent; trust its issuer with NODE_EXTRA_CA_CERTS, or check the URL`;
  }
  if (NO_TLS.test(code)) {
    return `${label} does not speak TLS, which wss: asks for (${code}); use ws: where the server has no TLS, or check the URL`;
  }
  const why = code.startsWith('HPE_') ? `it does not answer in HTTP (${code})` : text;
  return `${label} is not an exec server: ${why}; check the URL`;
}

/** An upgrade that was answered otherwise. `hasToken`: whether a token was presented. */
export function refusalError(label: string, status: number, body: string, hasToken: boolean): ClientError {
  const data = { url: label, status, body };
  const told = bodyText(body);
  const answer = `status ${status}${told === '' ? '' : `: ${told}`}`;
  if (isPassing(status)) {
    const message = `${label} cannot take the connection now (${answer}); try again later`;
    return new ClientError('CONNECT_FAILED', message, { ...data, retryable: true });
  }
  return new ClientError('REFUSED', refusalWords(label, status, answer, told, hasToken), data);
}

function refusalWords(label: string, status: number, answer: string, told: string, hasToken: boolean): string {
  switch (status) {
    case 401:
      return hasToken
        ? `${label} does not take the token it was given (${answer}); pass the one it expects, and one that has not expired`
        : `${label} wants a token, and none was given (${answer}); pass \`token\``;
    case 403:
      // What this server has to say names what to do.
      return `${label} does not let this client in (${answer})${told === '' ? '; check the URL, and the token if it wants one' : ''}`;
    case 404:
      return `there is no exec server at ${label} (${answer}); check the path of the URL`;
    default:
      return status >= 300 && status < 400
        ? `${label} leads elsewhere (status ${status}), and redirects are not followed; check the URL`
        : `${label} is not an exec server: it answered with ${answer}; check the URL`;
  }
}

/** On one line; a page for browsers says nothing here. */
function bodyText(body: string): string {
  if (/^\s*</.test(body)) return 'a web page';
  const line = body.trim().replaceAll(/\s+/g, ' ');
  return line.length > SHOWN_BODY ? `${line.slice(0, SHOWN_BODY)}…` : line;
}

/** Attempts on several addresses fail as one error with an empty message. */
function textOf(error: Error): string {
  // Those of OpenSSL end with a line break.
  if (error.message !== '') return error.message.trim().replaceAll(/\s*\n\s*/g, ' ');
  return error instanceof AggregateError ? error.errors.map(String).join('; ') : error.name;
}
