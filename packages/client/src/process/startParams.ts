/** What a caller asks for → the params of `process/start`. Pure. */
import type { EnvPolicy, StartParams } from '@exec-server/protocol';

export interface StartOptions {
  /** Program and arguments; not a shell line. The program is looked up in the `PATH` of its environment. */
  readonly argv: readonly [string, ...string[]] | readonly string[];
  /** Absolute path or `file:` URI. Default: the server's working directory. */
  readonly cwd?: string | undefined;
  /** Variables laid over the inherited ones. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * What is inherited from the server's environment. Default: everything but names that match `*KEY*`, `*SECRET*`, `*TOKEN*`;
   * members left out have that default. Null: nothing, the environment is exactly `env`.
   */
  readonly envPolicy?: Partial<EnvPolicy> | null | undefined;
  /** `pipe` keeps stdin open for `write` and `end`; `none` (the default) is an empty stdin. A terminal always has one. */
  readonly stdin?: 'none' | 'pipe' | undefined;
  /** Run on a terminal; output then has the one stream `pty`. Default false. */
  readonly tty?: boolean | undefined;
  /** `argv[0]` as the program sees it. */
  readonly arg0?: string | undefined;
  /** Names the process in its session; unique there. Default: random. */
  readonly processId?: string | undefined;
}

export function startParams(options: StartOptions, processId: string, defaultCwd: string): StartParams {
  return {
    processId,
    argv: [...options.argv],
    cwd: toCwd(options.cwd ?? defaultCwd),
    env: { ...options.env },
    tty: options.tty ?? false,
    ...(options.stdin === 'pipe' ? { pipeStdin: true } : {}),
    ...(options.envPolicy === null ? {} : { envPolicy: policyOf(options.envPolicy) }),
    ...(options.arg0 === undefined ? {} : { arg0: options.arg0 }),
  };
}

function policyOf(policy: Partial<EnvPolicy> = {}): EnvPolicy {
  return {
    inherit: policy.inherit ?? 'all',
    ignoreDefaultExcludes: policy.ignoreDefaultExcludes ?? false,
    exclude: [...(policy.exclude ?? [])],
    set: { ...policy.set },
    includeOnly: [...(policy.includeOnly ?? [])],
  };
}

/** An absolute path of either kind as a `file:` URI; the server judges everything else. */
export function toCwd(path: string): string {
  const drive = /^[A-Za-z]:[\\/]/.test(path);
  if (!path.startsWith('/') && !drive) return path;
  const segments = (drive ? path.replaceAll('\\', '/') : path).split('/');
  return `file://${drive ? '/' : ''}${segments.map(encodeSegment).join('/')}`;
}

function encodeSegment(segment: string, index: number): string {
  // The drive letter keeps its colon.
  if (index === 0 && /^[A-Za-z]:$/.test(segment)) return segment;
  // Half a surrogate pair has no encoding.
  return encodeURIComponent(segment.replaceAll(/\p{Surrogate}/gu, '\uFFFD'));
}
