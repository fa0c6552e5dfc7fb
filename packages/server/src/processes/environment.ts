/** The environment of a child, computed from policy, request and metadata. Pure. */
import type { EnvPolicy } from '@exec-server/protocol';

export interface EnvironmentInputs {
  /** The server's own environment; only a policy takes from it. */
  readonly serverEnv: Readonly<Record<string, string | undefined>>;
  /** Absent: the environment is exactly `env`, with `metadata` over it. */
  readonly policy?: EnvPolicy | null | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly metadata?:
    | { readonly threadId?: string | null | undefined; readonly toolCallId?: string | null | undefined }
    | null
    | undefined;
}

const coreNames: ReadonlySet<string> = new Set(
  ['HOME', 'LANG', 'LC_ALL', 'LC_CTYPE', 'LOGNAME', 'PATH', 'SHELL', 'TEMP', 'TMP', 'TMPDIR', 'USER'], // not TERM
);
const defaultExcludes = ['*KEY*', '*SECRET*', '*TOKEN*'];
/** Settings of a server, never a child's, whatever asked for them. */
const neverPassed = ['CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE', 'CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN'];

export function buildChildEnvironment({ serverEnv, policy, env, metadata }: EnvironmentInputs): Record<string, string> {
  // A map, since a variable may be called `__proto__`.
  const variables =
    policy === undefined || policy === null ? new Map<string, string>() : applyPolicy(serverEnv, policy);
  for (const [name, value] of Object.entries(env)) variables.set(name, value);
  if (typeof metadata?.threadId === 'string') variables.set('CODEX_THREAD_ID', metadata.threadId);
  if (typeof metadata?.toolCallId === 'string') variables.set('CODEX_TOOL_CALL_ID', metadata.toolCallId);
  for (const name of neverPassed) variables.delete(name);
  return Object.fromEntries(variables);
}

function applyPolicy(serverEnv: EnvironmentInputs['serverEnv'], policy: EnvPolicy): Map<string, string> {
  const variables = new Map<string, string>();
  if (policy.inherit !== 'none') {
    for (const [name, value] of Object.entries(serverEnv)) {
      if (value !== undefined && (policy.inherit === 'all' || coreNames.has(name))) variables.set(name, value);
    }
  }
  const excluded = nameMatcher([...(policy.ignoreDefaultExcludes ? [] : defaultExcludes), ...policy.exclude]);
  for (const name of variables.keys()) {
    if (excluded(name)) variables.delete(name);
  }
  for (const [name, value] of Object.entries(policy.set)) variables.set(name, value);
  if (policy.includeOnly.length > 0) {
    const included = nameMatcher(policy.includeOnly);
    for (const name of variables.keys()) {
      if (!included(name)) variables.delete(name);
    }
  }
  return variables;
}

/** Whether a name matches one of the patterns: whole name, any case, `*` and `?` only. */
function nameMatcher(patterns: readonly string[]): (name: string) => boolean {
  const folded = patterns.map(fold);
  return (name) => {
    const characters = fold(name);
    return folded.some((pattern) => matches(pattern, characters));
  };
}

function fold(text: string): readonly string[] {
  return Array.from(text.toLowerCase());
}

/** Returns to the last `*` only, so a hostile pattern costs at most pattern times name. */
function matches(pattern: readonly string[], name: readonly string[]): boolean {
  let at = 0;
  let star = -1;
  let starName = 0;
  for (let index = 0; index < name.length; ) {
    const wanted = pattern[at];
    if (wanted === '*') {
      star = at;
      starName = index;
      at += 1;
    } else if (wanted === '?' || (wanted !== undefined && wanted === name[index])) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      starName += 1;
      index = starName;
      at = star + 1;
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}
