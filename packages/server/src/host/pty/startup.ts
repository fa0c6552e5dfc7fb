/** From the addon's fork to the program: when it runs, and why it does not. */
import { closeSync, constants, openSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { WireError } from '@exec-server/protocol';
import { explainFailedExec } from '../preflight.js';
import { errnoCode, osErrorText, startError } from '../startErrors.js';
import { readProcStat } from './procStat.js';

/** An exec takes one or two milliseconds. */
const FIRST_LOOK_MS = 1;
const LONGEST_PAUSE_MS = 16;
/** A program on a file system that hangs: the start is answered all the same. */
const EXEC_WAIT_MS = 1000;
/** Exit code and only output of a fork that failed before its program ran. */
const FAILED_CODE = 1;
const FAILED_LINE = /^(execvp|chdir)\(\d\) failed\.: ([^\r\n]+)\r?\n$/;

/**
 * Resolves when the program runs; false when the child ended before that was seen. Until then the child may not have
 * its session yet, and a signal to its group would meet nobody.
 */
export async function programRuns(pid: number, ended: () => boolean): Promise<boolean> {
  const deadline = performance.now() + EXEC_WAIT_MS;
  for (let pause = FIRST_LOOK_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    await sleep(pause);
    if (ended()) return false;
    if (readProcStat(pid)?.execed === true || performance.now() > deadline) return true;
  }
}

/** The error of a child that ended at once, if that was because its program could not be executed. */
export async function failedExec(
  code: number | null,
  output: Uint8Array,
  program: string,
  cwd: string,
): Promise<WireError | undefined> {
  if (code !== FAILED_CODE) return undefined;
  const text = FAILED_LINE.exec(Buffer.from(output).toString('latin1'))?.[2];
  if (text === undefined) return undefined;
  const errno = Object.keys(osConstants.errno).find((name) => osErrorText(name).startsWith(`${text} (`));
  return errno === undefined ? new WireError('spawnFailed', text) : explainFailedExec(errno, program, cwd);
}

/** The addon's fork threw. It does not say why, so a terminal is asked for once more. */
export function forkError(): WireError {
  try {
    closeSync(openSync('/dev/ptmx', constants.O_RDWR | constants.O_NOCTTY));
  } catch (error) {
    const code = errnoCode(error) ?? 'EIO';
    if (code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM') return startError(code);
    if (code === 'ENOSPC') return new WireError('resourcesExhausted', 'the host has no terminals left');
    return new WireError('terminalUnavailable', `the host gives no terminals: ${osErrorText(code)}`, { field: 'tty' });
  }
  return startError('EAGAIN');
}
