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

export function summaryOf(process: Process, start: StartRecord, leftovers: Leftover[] | undefined): ProcessSummary {
  const { log, pid } = process;
  const { startedAtMs, exitedAtMs, closedAtMs } = process.times;
  const exit = exitSummary(process);
  return {
    processId: process.id,
    argv: [...start.argv],
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
