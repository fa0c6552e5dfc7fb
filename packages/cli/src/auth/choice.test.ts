import { describe, expect, it } from 'vitest';
import { type CommandError, ExitCode } from '../exitCodes.js';
import { type AuthFlags, chooseAuth } from './choice.js';

const none: AuthFlags = {
  wsAuth: undefined,
  wsTokenFile: undefined,
  wsTokenSha256: undefined,
  wsSharedSecretFile: undefined,
  wsIssuer: undefined,
  wsAudience: undefined,
  wsMaxClockSkewSeconds: undefined,
};
const capability = { wsAuth: 'capability-token' };
const signed = { wsAuth: 'signed-bearer-token', wsSharedSecretFile: 's' };
const sha256 = 'aB'.repeat(32);
const choose = (flags: Partial<AuthFlags>): unknown => chooseAuth({ ...none, ...flags }, 'websocket');

describe('the flags of authentication', () => {
  it('choose nothing when there are none', () => {
    expect(choose({})).toBeUndefined();
    expect(chooseAuth(none, 'stdio')).toBeUndefined();
  });

  it('choose a token by its file or by its digest', () => {
    expect(choose({ ...capability, wsTokenFile: 'f' })).toEqual({ kind: 'tokenFile', path: 'f' });
    expect(choose({ ...capability, wsTokenSha256: sha256 })).toEqual({ kind: 'tokenDigest', sha256 });
  });

  it('choose signed tokens, with any issuer and audience and 30 s of skew unless they say otherwise', () => {
    const expected = { issuer: undefined, audience: undefined, maxClockSkewSeconds: 30 };
    expect(choose(signed)).toEqual({ kind: 'signedToken', secretFile: 's', expected });
    expect(choose({ ...signed, wsIssuer: ' me ', wsAudience: 'you', wsMaxClockSkewSeconds: '0' })).toEqual({
      kind: 'signedToken',
      secretFile: 's',
      expected: { issuer: 'me', audience: 'you', maxClockSkewSeconds: 0 },
    });
  });

  it.each<[Partial<AuthFlags>, RegExp]>([
    [capability, /`--ws-token-file` or `--ws-token-sha256` is required/],
    [{ ...capability, wsTokenFile: 'f', wsTokenSha256: sha256 }, /are mutually exclusive/],
    [{ ...capability, wsTokenSha256: 'abc' }, /--ws-token-sha256 must be a 64-character hex/],
    [{ ...capability, wsTokenSha256: '' }, /--ws-token-sha256 must be a 64-character hex/],
    [{ ...capability, wsTokenFile: 'f', wsIssuer: 'me' }, /`--ws-issuer`.* require `--ws-auth signed-bearer-token`/],
    [{ ...capability, wsTokenFile: 'f', wsSharedSecretFile: 's' }, /require `--ws-auth signed-bearer-token`/],
    [{ wsAuth: 'signed-bearer-token' }, /`--ws-shared-secret-file` is required/],
    [{ ...signed, wsTokenFile: 'f' }, /require `--ws-auth capability-token`, not/],
    [{ ...signed, wsTokenSha256: sha256 }, /require `--ws-auth capability-token`, not/],
    [{ ...signed, wsIssuer: '' }, /--ws-issuer is empty/],
    [{ ...signed, wsAudience: ' ' }, /--ws-audience is empty/],
    [{ ...signed, wsMaxClockSkewSeconds: '-1' }, /--ws-max-clock-skew-seconds -1: expected a whole number/],
    [{ wsTokenFile: 'f' }, /websocket auth flags require `--ws-auth/],
    [{ wsTokenSha256: sha256 }, /websocket auth flags require `--ws-auth/],
    [{ wsSharedSecretFile: 's' }, /websocket auth flags require `--ws-auth/],
    [{ wsIssuer: 'me' }, /websocket auth flags require `--ws-auth/],
    [{ wsAudience: 'you' }, /websocket auth flags require `--ws-auth/],
    [{ wsMaxClockSkewSeconds: '3' }, /websocket auth flags require `--ws-auth/],
    [{ wsAuth: 'none' }, /expected capability-token or signed-bearer-token/],
  ])('are refused as %j', (flags, words) => {
    const attempt = (): unknown => choose(flags);
    expect(attempt).toThrow(words);
    expect(attempt).toThrow(expect.objectContaining({ exitCode: ExitCode.usage }) as CommandError);
  });

  it('are refused over stdio, whatever they are', () => {
    for (const flags of [capability, signed, { wsIssuer: 'me' }]) {
      expect(() => chooseAuth({ ...none, ...flags }, 'stdio')).toThrow('requires a WebSocket listener, not stdio');
    }
  });
});
