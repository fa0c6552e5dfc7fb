/** The terminal this command runs on: its size, and its raw mode, which ends on every way out. */
import { spawnSync } from 'node:child_process';
import type { TerminalSize } from '@exec-server/protocol';

/** Undefined where stdout is no terminal. */
export function ownSize(): TerminalSize | undefined {
  const { isTTY, columns, rows } = process.stdout;
  return isTTY && columns > 0 && rows > 0 ? { cols: columns, rows } : undefined;
}

/** Calls `changed` when the size is another one than `known`, now and later. The returned function ends that. */
export function watchSize(known: TerminalSize | undefined, changed: (size: TerminalSize) => void): () => void {
  let last = known;
  const look = (): void => {
    const size = ownSize();
    if (size === undefined || (size.cols === last?.cols && size.rows === last.rows)) return;
    last = size;
    changed(size);
  };
  process.stdout.on('resize', look);
  look();
  return () => process.stdout.off('resize', look);
}

/**
 * Hands every key on as it is typed, and output as it comes. The returned function restores the terminal; so does the end of
 * this program, by `exit` or by an error nobody caught. Signals that end it are the caller's to take. Does nothing where
 * stdin is no terminal.
 */
export function enterRawMode(): () => void {
  const { stdin } = process;
  if (!stdin.isTTY) return () => {};
  // Reported where the terminal was hung up; there is nothing left to restore then.
  stdin.on('error', () => {});
  let isRaw = true;
  const restore = (): void => {
    if (!isRaw) return;
    isRaw = false;
    process.off('exit', restore);
    process.off('SIGCONT', again);
    stdin.setRawMode(false);
  };
  // Whoever stopped this program may have set the terminal for itself.
  const again = (): void => {
    stdin.setRawMode(false);
    setRaw();
  };
  process.on('exit', restore);
  process.on('SIGCONT', again);
  setRaw();
  return restore;
}

function setRaw(): void {
  process.stdin.setRawMode(true);
  // Node leaves it on that a line feed also returns the carriage, which the other terminal has done where it was wanted.
  // Leaving raw mode restores this too. Without `stty` only programs that draw the whole screen look odd.
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
}

/** What programs on the other terminal have to know of this one. */
export function terminalVariables(): Readonly<Record<string, string>> {
  const { TERM = 'xterm-256color', COLORTERM } = process.env;
  return { TERM, ...(COLORTERM === undefined ? {} : { COLORTERM }) };
}
