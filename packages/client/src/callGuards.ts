/** Checks of the answers to calls that change or list processes; see `guards.ts`. Pure. */
import type { Leftover, ProcessSummary } from '@exec-server/protocol';
import type { Exit } from './events.js';
import { absent, exitOf, isCount, isInteger, isObject, isText, type Members } from './shapes.js';

export interface StartReply {
  /** Absent on foreign servers, and for an adopted process that is no longer kept. */
  readonly pid?: number;
  /** Whether the process was there before this start. */
  readonly existing?: boolean;
  /** How an adopted process ended, if it has. */
  readonly exit?: Exit;
}

export interface WriteReply {
  readonly status: 'accepted' | 'unknownProcess' | 'stdinClosed' | 'starting';
}

/** Answer of {@link ProcessHandle.terminate}; `running` alone where the server did not wait for the end. */
export interface TerminateReply {
  /** Whether the process was running, or starting, when the call came. */
  readonly running: boolean;
  /** How it ended; absent without `wait`, and when it still runs. */
  readonly exit?: Exit;
  /** Whether the grace ran out and SIGKILL was sent. */
  readonly escalated?: boolean;
  /** What still lives of its tree: pid and command line of each. */
  readonly left?: readonly Leftover[];
  /** How the tree was looked for; `none` on a host that cannot. */
  readonly method?: string;
  /**
   * Whether that way finds everything; a child that cleared its environment, left the group and lost its parent is not
   * found.
   */
  readonly treeComplete?: boolean;
}

/** Answer of {@link Client.list}. */
export interface ProcessList {
  /** Those that run and those that are kept after their end. Sizes in bytes, times in ms since 1970. */
  readonly processes: readonly ProcessSummary[];
  /** The life of the server their cursors belong to. */
  readonly epoch: string;
}

export function startReply(value: unknown): StartReply | undefined {
  if (!isObject(value) || !isText(value['processId'])) return undefined;
  const { pid, existing } = value;
  const exit = exitOf(value['exit']);
  return {
    ...(existing === true ? { existing } : {}),
    ...(isCount(pid) ? { pid } : {}),
    ...(exit === undefined ? {} : { exit }),
  };
}

export function writeReply(value: unknown): WriteReply | undefined {
  if (!isObject(value)) return undefined;
  const { status } = value;
  switch (status) {
    case 'accepted':
    case 'unknownProcess':
    case 'stdinClosed':
    case 'starting':
      return { status };
    default:
      return undefined;
  }
}

/** `delivered` is absent in the base protocol. */
export function signalReply(value: unknown): { readonly delivered?: boolean } | undefined {
  if (!isObject(value)) return undefined;
  const { delivered } = value;
  return typeof delivered === 'boolean' ? { delivered } : {};
}

export function terminateReply(value: unknown): TerminateReply | undefined {
  if (!isObject(value)) return undefined;
  const { running, escalated, left, method, treeComplete } = value;
  if (typeof running !== 'boolean') return undefined;
  const exit = exitOf(value['exit']);
  const remains = leftovers(left);
  if (!absent(left) && remains === undefined) return undefined;
  return {
    running,
    ...(exit === undefined ? {} : { exit }),
    ...(typeof escalated === 'boolean' ? { escalated } : {}),
    ...(remains === undefined ? {} : { left: remains }),
    ...(isText(method) ? { method } : {}),
    ...(typeof treeComplete === 'boolean' ? { treeComplete } : {}),
  };
}

/** An answer without members of its own. */
export function emptyReply(value: unknown): Members | undefined {
  return isObject(value) ? value : undefined;
}

/** The last event there was when the server answered. */
export function flushReply(value: unknown): number | undefined {
  if (!isObject(value)) return undefined;
  const { throughSeq } = value;
  return isCount(throughSeq) ? throughSeq : undefined;
}

export function listReply(value: unknown): ProcessList | undefined {
  if (!isObject(value) || !isText(value['epoch']) || !Array.isArray(value['processes'])) return undefined;
  const processes = mapAll(value['processes'], processSummary);
  return processes === undefined ? undefined : { processes, epoch: value['epoch'] };
}

function processSummary(value: unknown): ProcessSummary | undefined {
  if (!isObject(value)) return undefined;
  const { processId, argv, tty, state, startedAtMs, outputBytes, retainedBytes, firstRetainedSeq, nextSeq } = value;
  const { pid, exitedAtMs, closedAtMs, exit, stdinBytes, leftovers: left } = value;
  if (!isText(processId) || !isTexts(argv) || typeof tty !== 'boolean' || !isState(state)) return undefined;
  if (!isInteger(startedAtMs) || !isCount(outputBytes) || !isCount(retainedBytes)) return undefined;
  if (!isCount(firstRetainedSeq) || !isCount(nextSeq) || !isCount(stdinBytes)) return undefined;
  const ended = exitOf(exit);
  const remains = leftovers(left);
  return {
    processId,
    argv: [...argv],
    tty,
    state,
    startedAtMs,
    outputBytes,
    retainedBytes,
    firstRetainedSeq,
    nextSeq,
    stdinBytes,
    ...(isCount(pid) ? { pid } : {}),
    ...(isInteger(exitedAtMs) ? { exitedAtMs } : {}),
    ...(isInteger(closedAtMs) ? { closedAtMs } : {}),
    ...(ended === undefined
      ? {}
      : { exit: { exitCode: ended.exitCode, signal: ended.signal ?? null, reason: ended.reason ?? 'exited' } }),
    ...(remains === undefined ? {} : { leftovers: remains }),
  };
}

const isTexts = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText);

function isState(value: unknown): value is ProcessSummary['state'] {
  return value === 'starting' || value === 'running' || value === 'exited' || value === 'closed';
}

function leftovers(value: unknown): Leftover[] | undefined {
  return Array.isArray(value) ? mapAll(value, leftover) : undefined;
}

function leftover(value: unknown): Leftover | undefined {
  if (!isObject(value)) return undefined;
  const { pid, argv } = value;
  return isCount(pid) && isTexts(argv) ? { pid, argv: [...argv] } : undefined;
}

/** Every element converted; undefined when one is not what it should be. */
function mapAll<T>(values: readonly unknown[], convert: (value: unknown) => T | undefined): T[] | undefined {
  const converted: T[] = [];
  for (const value of values) {
    const result = convert(value);
    if (result === undefined) return undefined;
    converted.push(result);
  }
  return converted;
}
