/**
 * Checks of what a server sends, by hand: a bundle for browsers carries no schema library. Each guard gives the value in
 * the shape the client works with, or undefined when it is not that message. Pure.
 */
import { decodeBase64, type EnvironmentInfo, type ServerLimits, type StreamName } from '@exec-server/protocol';
import type { ClosedEvent, ExitedEvent, GapEvent, OutputEvent, ProcessEvent } from './events.js';

/** Answer to `initialize`; everything but the session id is absent in the oldest servers. */
export interface InitializeReply {
  readonly sessionId: string;
  readonly environmentInfo?: Partial<EnvironmentInfo>;
  /** Present only in servers that speak the extensions. */
  readonly extended?: {
    readonly serverInfo: { readonly name: string; readonly version: string };
    readonly protocolVersion: number;
    readonly flowControl: boolean;
    readonly epoch: string;
    readonly limits: Partial<ServerLimits>;
    readonly resumed: boolean;
    readonly leaseMs: number;
  };
}

export interface StartReply {
  readonly pid?: number;
}

/** Answer to `process/read`; what foreign servers lack is optional. */
export interface ReadReply {
  readonly chunks: readonly OutputEvent[];
  /** `nextSeq - 1` is the last seq this answer covers. */
  readonly nextSeq: number;
  readonly exited: boolean;
  readonly exitCode: number | null;
  /** Whether the close is covered by this answer. */
  readonly closed: boolean;
  /** The process has closed, and this answer does not reach the close. */
  readonly endsLater: boolean;
  readonly epoch?: string;
  readonly firstRetainedSeq?: number;
  readonly gap?: GapEvent;
  readonly signal?: string;
  readonly exitedSeq?: number;
}

export interface WriteReply {
  readonly status: 'accepted' | 'unknownProcess' | 'stdinClosed' | 'starting';
}

/** A notification about one process. */
export interface ProcessNotice<E extends ProcessEvent = ProcessEvent> {
  readonly processId: string;
  readonly event: E;
}

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 0;
const isSeq = (value: unknown): value is number => isCount(value) && value >= 1;
const isInteger = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value);
const isStream = (value: unknown): value is StreamName => value === 'stdout' || value === 'stderr' || value === 'pty';
const absent = (value: unknown): value is undefined | null => value === undefined || value === null;

export function initializeReply(value: unknown): InitializeReply | undefined {
  if (!isObject(value)) return undefined;
  const { sessionId, environmentInfo, serverInfo } = value;
  if (!isText(sessionId) || sessionId === '') return undefined;
  if (!absent(environmentInfo) && !isObject(environmentInfo)) return undefined;
  // Members of the environment are shown to the caller and never computed with, save `cwd`, which is checked at its use.
  const environment = absent(environmentInfo) ? {} : { environmentInfo: environmentInfo as Partial<EnvironmentInfo> };
  if (absent(serverInfo)) return { sessionId, ...environment };
  const { protocolVersion, extensions, epoch, limits, resumed, leaseMs } = value;
  if (!isObject(serverInfo) || !isText(serverInfo['name']) || !isText(serverInfo['version'])) return undefined;
  if (!isCount(protocolVersion) || !isText(epoch) || !isCount(leaseMs) || typeof resumed !== 'boolean')
    return undefined;
  if (!absent(limits) && !isObject(limits)) return undefined;
  if (!absent(extensions) && !isObject(extensions)) return undefined;
  return {
    sessionId,
    ...environment,
    extended: {
      serverInfo: { name: serverInfo['name'], version: serverInfo['version'] },
      protocolVersion,
      flowControl: extensions?.['flowControl'] === true,
      epoch,
      limits: countsOf(limits ?? {}),
      resumed,
      leaseMs,
    },
  };
}

function countsOf(members: Members): Partial<ServerLimits> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isCount(value)));
}

export function startReply(value: unknown): StartReply | undefined {
  if (!isObject(value) || !isText(value['processId'])) return undefined;
  const { pid } = value;
  return isCount(pid) ? { pid } : {};
}

export function readReply(value: unknown): ReadReply | undefined {
  if (!isObject(value)) return undefined;
  const { chunks, nextSeq, exited, exitCode, closed, epoch, firstRetainedSeq, gap, signal, exitedSeq, closedSeq } =
    value;
  if (!Array.isArray(chunks) || !isSeq(nextSeq) || typeof exited !== 'boolean' || typeof closed !== 'boolean') {
    return undefined;
  }
  if (!absent(exitCode) && !isInteger(exitCode)) return undefined;
  if (exited && absent(exitCode)) return undefined;
  const endsLater = closed && isSeq(closedSeq) && closedSeq >= nextSeq;
  const events: OutputEvent[] = [];
  for (const chunk of chunks as readonly unknown[]) {
    const event = isObject(chunk) ? outputEvent(chunk) : undefined;
    if (event === undefined || event.seq >= nextSeq) return undefined;
    events.push(event);
  }
  const range = absent(gap) ? undefined : gapEvent(gap);
  if (!absent(gap) && range === undefined) return undefined;
  return {
    chunks: events,
    nextSeq,
    exited,
    exitCode: exitCode ?? null,
    closed: closed && !endsLater,
    endsLater,
    ...(isText(epoch) ? { epoch } : {}),
    ...(isCount(firstRetainedSeq) ? { firstRetainedSeq } : {}),
    ...(range === undefined ? {} : { gap: range }),
    ...(isText(signal) ? { signal } : {}),
    ...(isSeq(exitedSeq) ? { exitedSeq } : {}),
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

export function terminateReply(value: unknown): { readonly running: boolean } | undefined {
  if (!isObject(value) || typeof value['running'] !== 'boolean') return undefined;
  return { running: value['running'] };
}

export function isProcessMethod(method: string): method is keyof typeof eventGuards {
  return Object.hasOwn(eventGuards, method);
}

/** The params of a notification about a process. */
export function processNotice(method: keyof typeof eventGuards, params: unknown): ProcessNotice | undefined {
  if (!isObject(params)) return undefined;
  const { processId } = params;
  const event = eventGuards[method](params);
  return isText(processId) && event !== undefined ? { processId, event } : undefined;
}

const eventGuards = {
  'process/output': outputEvent,
  'process/exited': exitedEvent,
  'process/closed': closedEvent,
  'process/gap': gapEvent,
} as const;

function outputEvent(members: Members): OutputEvent | undefined {
  const { seq, stream, chunk } = members;
  if (!isSeq(seq) || !isStream(stream) || !isText(chunk)) return undefined;
  const decoded = decodeBase64(chunk);
  return decoded.ok ? { type: 'output', seq, stream, bytes: decoded.bytes } : undefined;
}

function exitedEvent(members: Members): ExitedEvent | undefined {
  const { seq, exitCode, signal } = members;
  if (!isSeq(seq) || !isInteger(exitCode)) return undefined;
  return { type: 'exited', seq, exitCode, ...(isText(signal) ? { signal } : {}) };
}

function closedEvent(members: Members): ClosedEvent | undefined {
  const { seq } = members;
  return isSeq(seq) ? { type: 'closed', seq } : undefined;
}

function gapEvent(members: unknown): GapEvent | undefined {
  if (!isObject(members)) return undefined;
  const { fromSeq, throughSeq, bytes } = members;
  if (!isSeq(fromSeq) || !isSeq(throughSeq) || throughSeq < fromSeq) return undefined;
  return { type: 'gap', fromSeq, throughSeq, ...(isCount(bytes) ? { bytes } : {}) };
}
