/** A process in a few members: for `process/list`, and for what stays known of it when its output is gone. */
import type { ExitSummary, Leftover, ProcessSummary } from '@exec-server/protocol';
import type { Process } from './process.js';
import type { StartRecord } from './startRecord.js';

/** Undefined while it runs. */
export function exitSummary(process: Process): ExitSummary | undefined {
  const { exited } = process.log;
  return exited === undefined
    ? undefined
    : { exitCode: exited.exitCode, signal: exited.signal ?? null, reason: exited.reason };
}

export interface SummaryOptions {
  /** Arguments are cut where they have more characters than this together. */
  readonly argvChars: number;
  readonly leftovers: Leftover[] | undefined;
}

export function summaryOf(
  process: Process,
  start: StartRecord,
  { argvChars, leftovers }: SummaryOptions,
): ProcessSummary {
  const argv = cutArgv(start.argv, argvChars);
  const { log, pid } = process;
  const { startedAtMs, exitedAtMs, closedAtMs } = process.times;
  const exit = exitSummary(process);
  return {
    processId: process.id,
    argv,
    ...(argv.length === start.argv.length && argv.at(-1) === start.argv.at(-1) ? {} : { argvCut: true }),
    tty: start.tty,
    state: process.state,
    startedAtMs,
    outputBytes: log.totalBytes,
    retainedBytes: log.retainedBytes,
    firstRetainedSeq: process.history.firstHeldSeq,
    nextSeq: log.nextSeq,
    stdinBytes: process.stdinAcceptedBytes,
    ...(pid === undefined ? {} : { pid }),
    ...(exitedAtMs === undefined ? {} : { exitedAtMs }),
    ...(closedAtMs === undefined ? {} : { closedAtMs }),
    ...(exit === undefined ? {} : { exit }),
    ...(leftovers === undefined ? {} : { leftovers }),
  };
}

/** As many arguments as fit, the last of them in part. */
function cutArgv(argv: readonly string[], mostChars: number): string[] {
  const cut: string[] = [];
  let left = mostChars;
  for (const argument of argv) {
    if (left <= 0) break;
    cut.push(argument.length <= left ? argument : argument.slice(0, left));
    left -= argument.length + 1;
  }
  return cut;
}
