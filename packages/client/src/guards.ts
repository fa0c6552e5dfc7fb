/**
 * Checks of what a server sends, by hand: a bundle for browsers carries no schema library. Each guard gives the value in
 * the shape the client works with, or undefined when it is not that message. Pure.
 */
import { decodeBase64, type EnvironmentInfo, type ServerLimits } from '@exec-server/protocol';
import type { ClosedEvent, Closing, Exit, ExitedEvent, GapEvent, OutputEvent, ProcessEvent } from './events.js';
import {
  absent,
  closingOf,
  exitOf,
  isCount,
  isInteger,
  isObject,
  isSeq,
  isStream,
  isText,
  type Members,
} from './shapes.js';

/** Answer to `initialize`; everything but the session id is absent in the oldest servers. */
export interface InitializeReply {
  readonly sessionId: string;
  /** Admits observers; absent in servers that have none. Apart from `extended`, which is shown: it is a secret. */
  readonly observeId?: string;
  readonly environmentInfo?: Partial<EnvironmentInfo>;
  /** Present only in servers that speak the extensions. */
  readonly extended?: {
    readonly serverInfo: { readonly name: string; readonly version: string };
    readonly protocolVersion: number;
    readonly flowControl: boolean;
    readonly terminal: boolean;
    /** Whether it has the additions to the file methods. */
    readonly files: boolean;
    readonly http: boolean;
    readonly epoch: string;
    readonly limits: Partial<ServerLimits>;
    readonly resumed: boolean;
    readonly leaseMs: number;
  };
}

/** Answer to `process/read`; what foreign servers lack is optional. */
export interface ReadReply {
  readonly chunks: readonly OutputEvent[];
  /** `nextSeq - 1` is the last seq this answer covers. */
  readonly nextSeq: number;
  /** Absent until the process has exited. */
  readonly exit?: Exit;
  /** Whether the close is covered by this answer. */
  readonly closed: boolean;
  /** The process has closed, and this answer does not reach the close. */
  readonly endsLater: boolean;
  readonly epoch?: string;
  readonly firstRetainedSeq?: number;
  readonly gap?: GapEvent;
  /** How the streams ended; empty until `closed`, and on foreign servers. */
  readonly closing: Closing;
  readonly exitedSeq?: number;
}

/** A notification about one process. */
export interface ProcessNotice<E extends ProcessEvent = ProcessEvent> {
  readonly processId: string;
  readonly event: E;
}

export function initializeReply(value: unknown): InitializeReply | undefined {
  if (!isObject(value)) return undefined;
  const { sessionId, environmentInfo, serverInfo } = value;
  if (!isText(sessionId) || sessionId === '') return undefined;
  if (!absent(environmentInfo) && !isObject(environmentInfo)) return undefined;
  // Members of the environment are shown to the caller and never computed with, save `cwd`, which is checked at its use.
  const environment = absent(environmentInfo) ? {} : { environmentInfo: environmentInfo as Partial<EnvironmentInfo> };
  if (absent(serverInfo)) return { sessionId, ...environment };
  const { protocolVersion, extensions, epoch, limits, resumed, leaseMs, observeId } = value;
  if (!isObject(serverInfo) || !isText(serverInfo['name']) || !isText(serverInfo['version'])) return undefined;
  if (!isCount(protocolVersion) || !isText(epoch) || !isCount(leaseMs) || typeof resumed !== 'boolean')
    return undefined;
  if (!absent(limits) && !isObject(limits)) return undefined;
  if (!absent(extensions) && !isObject(extensions)) return undefined;
  if (!absent(observeId) && !isText(observeId)) return undefined;
  return {
    sessionId,
    ...(absent(observeId) ? {} : { observeId }),
    ...environment,
    extended: {
      serverInfo: { name: serverInfo['name'], version: serverInfo['version'] },
      protocolVersion,
      flowControl: extensions?.['flowControl'] === true,
      terminal: extensions?.['terminal'] === true,
      files: extensions?.['files'] === true,
      http: extensions?.['http'] === true,
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

export function readReply(value: unknown): ReadReply | undefined {
  if (!isObject(value)) return undefined;
  const { chunks, nextSeq, exited, exitCode, closed, epoch, firstRetainedSeq, gap, exitedSeq, closedSeq } = value;
  if (!Array.isArray(chunks) || !isSeq(nextSeq) || typeof exited !== 'boolean' || typeof closed !== 'boolean') {
    return undefined;
  }
  if (!absent(exitCode) && !isInteger(exitCode)) return undefined;
  const exit = exited ? exitOf(value) : undefined;
  if (exited && exit === undefined) return undefined;
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
    closed: closed && !endsLater,
    endsLater,
    closing: closingOf(value['closeReason'], value['holders']),
    ...(exit === undefined ? {} : { exit }),
    ...(isText(epoch) ? { epoch } : {}),
    ...(isCount(firstRetainedSeq) ? { firstRetainedSeq } : {}),
    ...(range === undefined ? {} : { gap: range }),
    ...(isSeq(exitedSeq) ? { exitedSeq } : {}),
  };
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
  const { seq } = members;
  const exit = exitOf(members);
  return isSeq(seq) && exit !== undefined ? { type: 'exited', seq, ...exit } : undefined;
}

function closedEvent(members: Members): ClosedEvent | undefined {
  const { seq, reason, holders } = members;
  return isSeq(seq) ? { type: 'closed', seq, ...closingOf(reason, holders) } : undefined;
}

function gapEvent(members: unknown): GapEvent | undefined {
  if (!isObject(members)) return undefined;
  const { fromSeq, throughSeq, bytes } = members;
  if (!isSeq(fromSeq) || !isSeq(throughSeq) || throughSeq < fromSeq) return undefined;
  return { type: 'gap', fromSeq, throughSeq, ...(isCount(bytes) ? { bytes } : {}) };
}
