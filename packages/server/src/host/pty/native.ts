/**
 * The terminal library, loaded when the first terminal is asked for. Of it only the native functions are used: its
 * ready-made object loses the tail of output, spins on a child that does not read, and writes to a descriptor number
 * after the descriptor was closed.
 */
import { WireError } from '@exec-server/protocol';

export interface ForkedTerminal {
  /** The master: non-blocking, not close-on-exec, the caller's to close. */
  readonly fd: number;
  readonly pid: number;
  /** Path of the slave. */
  readonly pty: string;
}

/** What the addon exports, as far as it is used. */
export interface PtyNative {
  /**
   * Forks on a new terminal and returns before the exec: in the child `chdir` and `execvp` follow, and a failure of
   * theirs is a line on the terminal and exit code 1. Throws, without an errno, when there is no terminal or no
   * process to be had. `onExit` is called once, when the child was reaped; a signal death is code 0 with the signal's
   * number, else the signal is 0.
   */
  fork(
    file: string,
    /** Without `argv[0]`, which is `file`. */
    args: readonly string[],
    /** `NAME=value`; nothing is added. */
    env: readonly string[],
    cwd: string,
    cols: number,
    rows: number,
    /** -1: the server's own. */
    uid: number,
    gid: number,
    /** The terminal's `iutf8`. */
    utf8: boolean,
    /** Not looked at on Linux. */
    helperPath: string,
    onExit: (code: number, signal: number) => void,
  ): ForkedTerminal;
  resize(fd: number, cols: number, rows: number, xPixels: number, yPixels: number): void;
}

export type PtyImporter = () => Promise<unknown>;

const importPackage: PtyImporter = () => import('@lydell/node-pty');

let loaded: Promise<PtyNative> | undefined;

/**
 * The native functions. Rejects with `terminalUnavailable` where the optional package or its binary for this host is
 * missing; pipes are not touched by that. Linux only: what is done with a terminal here relies on how its kernel
 * reports a hung-up one, and on /proc. `importer` stands in for the import, in tests.
 */
export function loadPty(importer: PtyImporter = importPackage): Promise<PtyNative> {
  if (importer !== importPackage) return load(importer);
  loaded ??= load(importPackage);
  return loaded;
}

async function load(importer: PtyImporter): Promise<PtyNative> {
  if (process.platform !== 'linux') throw unavailable(`not supported on ${process.platform}`);
  let module: unknown;
  try {
    module = await importer();
  } catch (error) {
    // The package's own error has no code: whatever is thrown means that it is not there.
    const text = error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error);
    throw unavailable(
      `the optional package @lydell/node-pty is not installed where the server is, or does not load (${text})`,
    );
  }
  if (!hasNative(module)) throw unavailable('the terminal library lacks its native functions');
  return module.native;
}

function unavailable(cause: string): WireError {
  return new WireError('terminalUnavailable', `this server cannot give a process a terminal: ${cause}`, {
    field: 'tty',
  });
}

function hasNative(module: unknown): module is { readonly native: PtyNative } {
  if (typeof module !== 'object' || module === null || !('native' in module)) return false;
  const { native } = module;
  if (typeof native !== 'object' || native === null) return false;
  return (
    'fork' in native && typeof native.fork === 'function' && 'resize' in native && typeof native.resize === 'function'
  );
}
