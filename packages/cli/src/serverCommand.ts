/** The command line of this package's own server, for programs that start it. */
import { fileURLToPath } from 'node:url';

/**
 * Program and arguments that start this version of `exec-server` with the Node that runs this program: an absolute path, so
 * neither `PATH` nor a package runner decides what is started.
 *
 * The program is a file of this package: a bundler has to leave the package out, and it has to be installed beside the bundle.
 * In Electron, whose program is not Node, add `ELECTRON_RUN_AS_NODE: '1'` to the environment of the command.
 *
 * `options` are those of `exec-server`; where `--listen` is not among them it is `--listen stdio`.
 *
 * @example
 * ```ts
 * const client = await connect({ command: serverCommand() });
 * ```
 */
export function serverCommand(...options: readonly string[]): readonly [string, ...string[]] {
  const program = fileURLToPath(new URL('../bin/exec-server.js', import.meta.url));
  return [process.execPath, program, ...(saysEnough(options) ? options : ['--listen', 'stdio', ...options])];
}

/** Whether it is said where to listen; a command of its own, as `doctor`, listens nowhere. */
function saysEnough(options: readonly string[]): boolean {
  const isCommand = options[0] !== undefined && !options[0].startsWith('-');
  return isCommand || options.some((option) => option === '--listen' || option.startsWith('--listen='));
}
