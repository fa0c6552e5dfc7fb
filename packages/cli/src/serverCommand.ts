/** The command line of this package's own server, for programs that start it. */
import { fileURLToPath } from 'node:url';

/**
 * Program and arguments that start this version of `exec-server` with the Node that runs this program: an absolute path, so
 * neither `PATH` nor a package runner decides what is started. Pass it to `connect({ command: serverCommand() })`.
 *
 * In Electron, whose program is not Node, add `ELECTRON_RUN_AS_NODE: '1'` to the environment of the command.
 *
 * @param options - the options of `exec-server`. Default: `--listen stdio`.
 */
export function serverCommand(...options: readonly string[]): readonly [string, ...string[]] {
  const program = fileURLToPath(new URL('../bin/exec-server.js', import.meta.url));
  return [process.execPath, program, ...(options.length === 0 ? ['--listen', 'stdio'] : options)];
}
