/** What is executed on a terminal for a request: file, arguments, environment. */
import { accessSync, constants } from 'node:fs';
import { userInfo } from 'node:os';
import { WireError } from '@exec-server/protocol';
import type { SpawnRequest } from '../child.js';

export interface Command {
  /** Looked up by the child as execvp(3) does; also its `argv[0]`. */
  readonly file: string;
  readonly args: readonly string[];
}

const BASH_PATHS = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash'];
/** Bash sets these itself; they are put back to what the request says. */
const SHELL_VARIABLES = ['PWD', 'OLDPWD'];

/**
 * The addon has no `argv[0]` of its own, so another one goes by bash, which replaces itself with the program: same
 * pid. `-p` keeps bash from reading BASH_ENV and from importing functions. What it leaves behind is a variable SHLVL
 * in an environment without one. `program` is the path that was found.
 */
export function terminalCommand({ argv, arg0, env }: SpawnRequest, program: string): Command {
  const [file = program, ...args] = argv;
  if (arg0 === undefined || arg0 === file) return { file, args };
  const bash = findBash();
  if (bash === undefined) {
    throw new WireError('terminalUnavailable', 'arg0 on a terminal needs bash, which this host lacks', {
      field: 'arg0',
    });
  }
  const kept = SHELL_VARIABLES.filter((name) => env[name] !== undefined);
  const script = [
    `unset -v ${SHELL_VARIABLES.join(' ')}`,
    ...kept.map((name) => `export ${name}="$1"; shift`),
    'exec -a "$0" -- "$@"',
  ].join('; ');
  return { file: bash, args: ['-p', '-c', script, arg0, ...kept.map((name) => env[name] ?? ''), program, ...args] };
}

let bashPath: string | undefined;

function findBash(): string | undefined {
  bashPath ??= BASH_PATHS.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      // Not there, or not for us.
      return false;
    }
  });
  return bashPath;
}

/** A terminal's environment names the user's shell. TERM is left to the request. */
export function terminalEnvironment(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (env['SHELL'] !== undefined) return env;
  const shell = loginShell();
  return shell === undefined ? env : { ...env, SHELL: shell };
}

let knownShell: { readonly path: string | undefined } | undefined;

/** Asked once: the user database may be a network away. */
function loginShell(): string | undefined {
  knownShell ??= { path: readLoginShell() };
  return knownShell.path;
}

function readLoginShell(): string | undefined {
  try {
    return userInfo().shell ?? undefined;
  } catch {
    // The user has no entry.
    return undefined;
  }
}
