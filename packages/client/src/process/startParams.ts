/** What a caller asks for → the params of `process/start`. Pure. */
import type { EnvPolicy, StartParams, TerminalSize } from '@exec-server/protocol';
import { ClientError } from '../errors.js';

/** What {@link Client.start} starts, and how. */
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
  /**
   * Run on a terminal; output then has the one stream `pty`. A size is that of the terminal at birth (80 x 24 without) and
   * NOT_SUPPORTED on foreign servers. Default false.
   */
  readonly tty?: boolean | TerminalSize | undefined;
  /** The server kills the process and its tree after this many ms. Default: never. NOT_SUPPORTED on foreign servers. */
  readonly timeoutMs?: number | undefined;
  /**
   * How long others may hold the streams open after the exit, in ms; what they write later is lost, and `closed` says
   * `heldOpen`. Default: no limit. NOT_SUPPORTED on foreign servers.
   */
  readonly lingerMs?: number | undefined;
  /**
   * `adopt`: where `processId` is taken by a process that was started by the same params, that one is the result, and the
   * start may be repeated at will. An aborted start is then not terminated. NOT_SUPPORTED on foreign servers.
   */
  readonly ifExists?: 'adopt' | undefined;
  /**
   * What happens to its output while no client is attached and the server's memory for it is full: `spool` (the default) keeps
   * it on disk, `pause` holds the process, `drop` loses the oldest and tells which. Foreign servers drop.
   */
  readonly detached?: 'spool' | 'pause' | 'drop' | undefined;
  /** `argv[0]` as the program sees it. */
  readonly arg0?: string | undefined;
  /** Names the process in its session; unique there. Default: random. */
  readonly processId?: string | undefined;
}

/** Throws INVALID_ARGUMENT for an `argv` that is no array, as a shell line is none. */
export function startParams(options: StartOptions, processId: string, defaultCwd: string): StartParams {
  checkArgv(options.argv);
  return {
    processId,
    argv: [...options.argv],
    cwd: toCwd(options.cwd ?? defaultCwd),
    env: { ...options.env },
    tty: options.tty !== undefined && options.tty !== false,
    ...(options.stdin === 'pipe' ? { pipeStdin: true } : {}),
    ...(options.envPolicy === null ? {} : { envPolicy: policyOf(options.envPolicy) }),
    ...(options.arg0 === undefined ? {} : { arg0: options.arg0 }),
    ...(typeof options.tty === 'object' ? { size: { cols: options.tty.cols, rows: options.tty.rows } } : {}),
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: Math.ceil(options.timeoutMs) }),
    ...(options.lingerMs === undefined ? {} : { lingerMs: Math.ceil(options.lingerMs) }),
    ...(options.ifExists === undefined ? {} : { ifExists: options.ifExists }),
    ...(options.detached === undefined ? {} : { detached: options.detached }),
  };
}

/** What of a start only servers with our extensions can do; undefined when every server can. */
export function extensionOf(params: StartParams): string | undefined {
  const names = [
    ...(params.size === undefined ? [] : ['a terminal size']),
    ...(params.timeoutMs === undefined ? [] : ['timeoutMs']),
    ...(params.lingerMs === undefined ? [] : ['lingerMs']),
    ...(params.ifExists === undefined ? [] : ['ifExists']),
  ];
  return names.length === 0 ? undefined : `a start with ${names.join(', ')}`;
}

/** The server judges the members. */
function checkArgv(argv: unknown): void {
  if (Array.isArray(argv)) return;
  const message =
    `argv cannot be used: it is no array but ${typeof argv}; pass the program and its arguments as an array, ` +
    "a shell line as ['sh', '-c', line]; nothing was sent";
  throw new ClientError('INVALID_ARGUMENT', message, { argument: 'argv' });
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
  if (!path.startsWith('/') && !/^[A-Za-z][\w+.-]*:/.test(path)) {
    const message = `cwd cannot be used: ${JSON.stringify(path)} is no absolute path of the server, such as /srv; nothing was sent`;
    throw new ClientError('INVALID_ARGUMENT', message, { argument: 'cwd' });
  }
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
