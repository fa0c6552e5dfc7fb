import { describe, expect, it } from 'vitest';
import { connectError, refusalError } from './dialErrors.js';

const LABEL = 'ws://host:7000/';

const failed = (code: string, text = `connect ${code}`): Error => Object.assign(new Error(text), { code });

describe('a connection that does not come about', () => {
  it.each([
    ['ECONNREFUSED', /: nothing listens there; start the server, or check the URL \(ECONNREFUSED\)$/],
    ['ENOTFOUND', /: its host name is not known here; check the URL \(ENOTFOUND\)$/],
    ['ECONNRESET', /: the other side closed the connection without an answer; .* \(ECONNRESET\)$/],
    ['EWHATEVER', /: connect EWHATEVER$/],
  ])('by %s is said in words, and may be tried again', (code, words) => {
    const error = connectError(LABEL, failed(code));
    expect(error).toMatchObject({ code: 'CONNECT_FAILED', data: { url: LABEL, retryable: true } });
    expect(error.message.startsWith(`no connection to ${LABEL}: `)).toBe(true);
    expect(error.message).toMatch(words);
  });

  it.each([
    ['EPROTO', 'wrong version number', /does not speak TLS.*use ws:/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate', /^the certificate of .* not trusted: self-signed certi/],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'not for this name', /^the certificate of .* not trusted: not for this name/],
    ['HPE_INVALID_CONSTANT', 'Parse Error', /is not an exec server: it does not answer in HTTP/],
    ['WS_ERR_INVALID_OPCODE', 'a bad frame', /is not an exec server: a bad frame; check the URL$/],
  ])('for good, by %s, says which of them it is', (code, text, words) => {
    expect(connectError(LABEL, failed(code, text))).toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(words) as unknown,
    });
  });
});

describe('an upgrade that is answered otherwise', () => {
  const messageFor = (status: number, body = '', hasToken = false): string =>
    refusalError(LABEL, status, body, hasToken).message;

  it('tells a token that is missing from one that is not taken', () => {
    expect(messageFor(401, 'missing')).toBe(
      `${LABEL} wants a token, and none was given (status 401: missing); pass \`token\``,
    );
    expect(messageFor(401, 'expired', true)).toMatch(/does not take the token it was given \(status 401: expired\)/);
  });

  it('says nothing of a token where the host name is refused', () => {
    const body = 'host a is not allowed; start the server with --allow-host for it';
    expect(messageFor(403, body, true)).toBe(`${LABEL} does not let this client in (status 403: ${body})`);
  });

  it.each([
    [302, 'moved', /leads elsewhere \(status 302\), and redirects are not followed; check the URL$/],
    [404, '', /^there is no exec server at .*; check the path of the URL$/],
    [200, 'hello', /is not an exec server: it answered with status 200: hello; check the URL$/],
    [503, 'full', /cannot take the connection now \(status 503: full\); try again later$/],
  ])('says what a status of %i means', (status, body, words) => {
    expect(messageFor(status, body)).toMatch(words);
  });

  it('stays one line, and repeats no page', () => {
    expect(messageFor(200, '<!DOCTYPE html>\n<p>secret</p>')).toMatch(/^[^\n]*status 200: a web page; check the URL$/);
    expect(messageFor(200, `a\n${'b'.repeat(3_000)}`)).toMatch(/^[^\n]{100,400}$/);
  });
});
