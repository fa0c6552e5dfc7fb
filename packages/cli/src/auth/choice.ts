/** The `--ws-*` flags → how clients show who they are. Pure; flags that do not fit together throw a CommandError of the usage kind. */
import { parseWhole } from '../args.js';
import { CommandError, ExitCode } from '../exitCodes.js';
import type { ExpectedClaims } from './claims.js';

export const AUTH_MODES = ['capability-token', 'signed-bearer-token'] as const;
export const DEFAULT_CLOCK_SKEW_SECONDS = 30;

/** What was given on the command line, as it was given. */
export interface AuthFlags {
  readonly wsAuth: string | undefined;
  readonly wsTokenFile: string | undefined;
  readonly wsTokenSha256: string | undefined;
  readonly wsSharedSecretFile: string | undefined;
  readonly wsIssuer: string | undefined;
  readonly wsAudience: string | undefined;
  readonly wsMaxClockSkewSeconds: string | undefined;
}

export type AuthChoice =
  | { readonly kind: 'tokenFile'; readonly path: string }
  | { readonly kind: 'tokenDigest'; readonly sha256: string }
  | { readonly kind: 'signedToken'; readonly secretFile: string; readonly expected: ExpectedClaims };

const usage = (message: string): CommandError => new CommandError(message, ExitCode.usage);

/** Undefined: whoever reaches the listener may connect. */
export function chooseAuth(flags: AuthFlags, transport: 'stdio' | 'websocket'): AuthChoice | undefined {
  const { wsAuth, wsTokenFile, wsTokenSha256, ...ofSigned } = flags;
  const ofCapability = [wsTokenFile, wsTokenSha256];
  const isGiven = (values: readonly (string | undefined)[]): boolean => values.some((value) => value !== undefined);
  if (!isGiven(Object.values(flags))) return undefined;
  if (transport === 'stdio')
    throw usage(
      'WebSocket auth requires a WebSocket listener, not stdio: leave the --ws-* flags out, or pass --listen ws://IP:PORT',
    );
  switch (wsAuth) {
    case 'capability-token':
      if (isGiven(Object.values(ofSigned))) {
        throw usage(
          '`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience`, and `--ws-max-clock-skew-seconds` require ' +
            '`--ws-auth signed-bearer-token`',
        );
      }
      return chooseToken(wsTokenFile, wsTokenSha256);
    case 'signed-bearer-token':
      if (isGiven(ofCapability)) {
        throw usage(
          '`--ws-token-file` and `--ws-token-sha256` require `--ws-auth capability-token`, not `signed-bearer-token`',
        );
      }
      return chooseSigned(ofSigned);
    case undefined:
      throw usage('websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`');
    default:
      throw usage(`--ws-auth ${wsAuth}: expected ${AUTH_MODES.join(' or ')}`);
  }
}

function chooseToken(path: string | undefined, sha256: string | undefined): AuthChoice {
  if (path !== undefined && sha256 !== undefined) {
    throw usage('`--ws-token-file` and `--ws-token-sha256` are mutually exclusive: pass one of them');
  }
  if (path !== undefined) return { kind: 'tokenFile', path };
  if (sha256 === undefined) {
    throw usage('`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set');
  }
  if (!/^[0-9a-f]{64}$/i.test(sha256)) {
    throw usage(
      '--ws-token-sha256 must be a 64-character hex SHA-256 digest, as `printf %s "$TOKEN" | sha256sum` prints it',
    );
  }
  return { kind: 'tokenDigest', sha256 };
}

function chooseSigned(flags: Omit<AuthFlags, 'wsAuth' | 'wsTokenFile' | 'wsTokenSha256'>): AuthChoice {
  const { wsSharedSecretFile, wsIssuer, wsAudience, wsMaxClockSkewSeconds: skew } = flags;
  if (wsSharedSecretFile === undefined) {
    throw usage('`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set');
  }
  return {
    kind: 'signedToken',
    secretFile: wsSharedSecretFile,
    expected: {
      issuer: named('--ws-issuer', wsIssuer),
      audience: named('--ws-audience', wsAudience),
      maxClockSkewSeconds:
        skew === undefined ? DEFAULT_CLOCK_SKEW_SECONDS : parseWhole('--ws-max-clock-skew-seconds', skew, 0),
    },
  };
}

/** An empty name, as of a variable that is not set, would let everybody's tokens in. */
function named(flag: string, value: string | undefined): string | undefined {
  const name = value?.trim();
  if (name === '') throw usage(`${flag} is empty; leave it out to take any`);
  return name;
}
