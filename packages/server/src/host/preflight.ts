/**
 * Checks of a start before the fork, and the reason of an exec that failed all the same. Usual cost: three small file
 * calls, 0.02 ms. They are synchronous: through the thread pool they cost five times as much, and the fork itself waits
 * in this thread until the child has entered its folder and exec'd, so a file system that hangs holds it in any case.
 *
 * The program is looked up as execvp(3) does, by the child's own PATH, and exec'd by the path that was found, which
 * spares the child the search; `argv[0]` stays what the request says. A text file with execute permission and no `#!`
 * passes: the C library runs it through /bin/sh.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { WireError } from '@exec-server/protocol';
import type { SpawnRequest } from './child.js';
import { type HostLimits, hostLimits, POINTER_BYTES } from './hostLimits.js';
import { cwdError, errnoCode, osErrorText, startError } from './startErrors.js';

/** What execvp searches when there is no PATH. */
const DEFAULT_PATH = '/bin:/usr/bin';
/** The kernel reads this much of a `#!` line, and follows this many interpreters. */
const SHEBANG_BYTES = 256;
const INTERPRETER_DEPTH = 5;

/** Throws the WireError of the first failed check; else the path to exec, relative paths being relative to `cwd`. */
export function checkStart(request: SpawnRequest, limits: HostLimits = hostLimits()): string {
  checkText(request);
  checkArgumentLengths(request, limits);
  const cwdCode = cwdFault(request.cwd);
  if (cwdCode !== undefined) throw cwdError(cwdCode, request.cwd);
  const program = findProgram(request);
  if (program.code !== undefined) throw startError(program.code, program.path);
  checkTotalLength(request, program.path, limits);
  return program.path;
}

/** Empty argv or program, and NUL anywhere. */
function checkText({ argv, arg0, env, cwd }: SpawnRequest): void {
  if (argv.length === 0) throw new WireError('emptyArgv', 'argv must not be empty', { field: 'argv' });
  if (argv[0] === '') throw new WireError('emptyProgram', 'missing program for pipe spawn', { field: 'argv[0]' });
  for (const [index, argument] of argv.entries()) refuseNul(argument, `argv[${index}]`);
  if (arg0 !== undefined) refuseNul(arg0, 'arg0');
  for (const [name, value] of Object.entries(env)) refuseNul(name + value, `env.${name}`);
  refuseNul(cwd, 'cwd');
}

function refuseNul(text: string, field: string): void {
  if (text.includes('\0')) throw new WireError('nulByte', 'nul byte found in provided data', { field });
}

/** Arguments as the program gets them: `arg0` stands in for `argv[0]`. */
function namedArguments({ argv, arg0 }: SpawnRequest): (readonly [field: string, text: string])[] {
  return argv.map((text, index) => (index === 0 && arg0 !== undefined ? ['arg0', arg0] : [`argv[${index}]`, text]));
}

function checkArgumentLengths(request: SpawnRequest, { argumentBytes }: HostLimits): void {
  const check = (bytes: number, field: string): void => {
    if (bytes > argumentBytes) {
      throw new WireError('argumentTooLong', osErrorText('E2BIG'), { field, limitBytes: argumentBytes });
    }
  };
  for (const [field, text] of namedArguments(request)) check(Buffer.byteLength(text), field);
  for (const [name, value] of Object.entries(request.env)) check(variableBytes(name, value), `env.${name}`);
}

function variableBytes(name: string, value: string): number {
  return Buffer.byteLength(name) + 1 + Buffer.byteLength(value);
}

/** As the kernel counts: strings with their NUL, the program path among them, and the pointers. */
function checkTotalLength(request: SpawnRequest, path: string, { totalBytes }: HostLimits): void {
  let argvBytes = Buffer.byteLength(path) + 1;
  for (const [, text] of namedArguments(request)) argvBytes += Buffer.byteLength(text) + 1 + POINTER_BYTES;
  let envBytes = 0;
  for (const [name, value] of Object.entries(request.env)) envBytes += variableBytes(name, value) + 1 + POINTER_BYTES;
  if (argvBytes + envBytes > totalBytes) {
    const field = envBytes > argvBytes ? 'env' : 'argv';
    throw new WireError('argumentsTooLong', osErrorText('E2BIG'), { field, limitBytes: totalBytes });
  }
}

/** The errno of entering the folder. The trailing dot makes one call answer both "is a folder" and "may enter". */
function cwdFault(cwd: string): string | undefined {
  return cwd === '' ? 'ENOENT' : executeFault(`${cwd}/.`);
}

/** The errno of access(2) for executing or entering; undefined when allowed. */
function executeFault(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
    return undefined;
  } catch (error) {
    return errnoCode(error) ?? 'EIO';
  }
}

/** `missing`, `other` for what execve refuses with EACCES, or an errno. */
function kindOf(path: string): 'file' | 'other' | 'missing' | { readonly code: string } {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return 'missing';
    return stats.isFile() ? 'file' : 'other';
  } catch (error) {
    return { code: errnoCode(error) ?? 'EIO' };
  }
}

/** The errno of executing a file; undefined when allowed. A search meets many that are missing, and errors are not cheap. */
function programFault(path: string): string | undefined {
  const kind = kindOf(path);
  if (kind === 'missing') return 'ENOENT';
  if (kind === 'other') return 'EACCES';
  return kind === 'file' ? executeFault(path) : kind.code;
}

/** A path of the child as the server reaches it; not normalized, since `..` after a link is the kernel's to resolve. */
function fromCwd(cwd: string, path: string): string {
  return path.startsWith('/') ? path : `${cwd}/${path}`;
}

interface Lookup {
  /** The path to exec; on failure what was looked for. */
  readonly path: string;
  readonly code?: string;
}

function findProgram({ argv, cwd, env }: SpawnRequest): Lookup {
  const program = argv[0] ?? '';
  if (program.includes('/')) {
    const fault = programFault(fromCwd(cwd, program));
    return fault === undefined ? { path: program } : { path: program, code: fault };
  }
  let code = 'ENOENT';
  for (const folder of (env['PATH'] ?? DEFAULT_PATH).split(':')) {
    const path = `${folder === '' ? '.' : folder}/${program}`;
    const fault = programFault(fromCwd(cwd, path));
    if (fault === undefined) return { path };
    // A folder of that name, or a file without permission: the search goes on, and EACCES is what it ends with.
    if (fault === 'EACCES') code = fault;
  }
  return { path: program, code };
}

/**
 * The error of an exec that failed though the checks passed: ENOENT and EACCES are also how the kernel reports a bad
 * `#!` interpreter, and something may have changed in between. A missing loader of a binary stays `programNotFound`.
 */
export async function explainFailedExec(code: string, path: string, cwd: string): Promise<WireError> {
  if (code !== 'ENOENT' && code !== 'EACCES') return startError(code, path);
  const cwdCode = cwdFault(cwd);
  if (cwdCode !== undefined) return cwdError(cwdCode, cwd);
  let script = fromCwd(cwd, path);
  for (let depth = 0; depth < INTERPRETER_DEPTH; depth += 1) {
    const interpreter = await readInterpreter(script);
    if (interpreter === undefined) break;
    script = fromCwd(cwd, interpreter);
    const fault = programFault(script);
    if (fault === 'ENOENT') return new WireError('interpreterNotFound', osErrorText('ENOENT'), { path: interpreter });
    if (fault !== undefined) return startError(fault, interpreter);
  }
  return startError(code, path);
}

/** The interpreter of a script; undefined when the file is none or cannot be read. */
async function readInterpreter(path: string): Promise<string | undefined> {
  try {
    // Non-blocking: the path may be a FIFO by now.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SHEBANG_BYTES), 0, SHEBANG_BYTES, 0);
    return /^#![ \t]*([^ \t\n\0]+)/.exec(buffer.toString('utf8', 0, bytesRead))?.[1];
  } catch (error) {
    if (errnoCode(error) === undefined) throw error;
    return undefined;
  }
}
