/** Method table both sides read: direction, family and what a client does with a call that a cut left unanswered. Pure. */

/**
 * What happens to a call whose connection was lost before the answer.
 * - `repeat`: sent again after the resume; asking twice changes nothing.
 * - `continue`: sent again with the same `writeId` or `offset`; the server takes it once.
 * - `settle`: the client asks the server what became of it (a start is looked up by its id).
 * - `unknown`: rejected with OUTCOME_UNKNOWN, since nothing identifies the effect.
 * - `never`: belongs to one connection.
 */
export type ReplayPolicy = 'repeat' | 'continue' | 'settle' | 'unknown' | 'never';

/** Words of the gate errors: `client must call initialize before using <family> methods`. */
export type Family = 'exec' | 'filesystem' | 'http' | 'environment info' | 'environment status' | 'session';

/** What both sides know about one request; an entry of {@link requests}. */
export interface RequestEntry {
  /** Stands in the errors of a call that comes before the handshake. */
  readonly family: Family;
  /** What a client does with a call that a cut left unanswered. */
  readonly replay: ReplayPolicy;
  /** Passes requests that wait: it must work when everything else is stuck. */
  readonly urgent: boolean;
  /** Absent in the base protocol; sent only to a server that announced our extensions. */
  readonly extension: boolean;
  /** Whether an observer may call it: it changes nothing. */
  readonly observers: boolean;
}

const base = (family: Family, replay: ReplayPolicy, urgent = false): RequestEntry => ({
  family,
  replay,
  urgent,
  extension: false,
  observers: false,
});
const ours = (family: Family, replay: ReplayPolicy, urgent = false): RequestEntry => ({
  ...base(family, replay, urgent),
  extension: true,
});
const forAll = (entry: RequestEntry): RequestEntry => ({ ...entry, observers: true });

/** Requests from client to server; the table of section 3 of `docs/protocol.md`. */
export const requests = {
  initialize: forAll(base('session', 'never')),
  'environment/info': forAll(base('environment info', 'repeat')),
  'environment/status': forAll(base('environment status', 'repeat', true)),
  'process/start': base('exec', 'settle'),
  'process/read': forAll(base('exec', 'repeat')),
  'process/write': base('exec', 'continue'),
  'process/signal': base('exec', 'unknown', true),
  'process/terminate': base('exec', 'repeat', true),
  'process/resize': ours('exec', 'repeat', true),
  'process/list': forAll(ours('exec', 'repeat', true)),
  'process/release': ours('exec', 'repeat'),
  'process/follow': forAll(ours('exec', 'repeat')),
  'process/flush': forAll(ours('exec', 'repeat')),
  'fs/readFile': base('filesystem', 'repeat'),
  'fs/writeFile': base('filesystem', 'unknown'),
  'fs/open': base('filesystem', 'never'),
  'fs/readBlock': base('filesystem', 'never'),
  'fs/writeBlock': base('filesystem', 'never'),
  'fs/close': base('filesystem', 'never', true),
  'fs/createDirectory': base('filesystem', 'unknown'),
  'fs/remove': base('filesystem', 'unknown'),
  'fs/copy': base('filesystem', 'unknown'),
  'fs/move': ours('filesystem', 'unknown'),
  'fs/getMetadata': base('filesystem', 'repeat'),
  'fs/canonicalize': base('filesystem', 'repeat'),
  'fs/readDirectory': base('filesystem', 'repeat'),
  'fs/walk': base('filesystem', 'repeat'),
  'fs/watchMissing': base('filesystem', 'never'),
  'fs/watch': ours('filesystem', 'never'),
  'fs/unwatch': ours('filesystem', 'never', true),
  'fs/pack': ours('filesystem', 'never'),
  'fs/unpack': ours('filesystem', 'never'),
  'http/request': base('http', 'unknown'),
  ping: forAll(ours('session', 'repeat', true)),
  'session/close': ours('session', 'repeat', true),
} as const satisfies Record<string, RequestEntry>;

/** Notifications from client to server; `extension`: the base protocol lacks it. */
export const clientNotifications = {
  initialized: { extension: false },
  'process/ack': { extension: true },
} as const;

/** Notifications from server to client; `extension`: the base protocol lacks it. */
export const serverNotifications = {
  'process/output': { extension: false },
  'process/exited': { extension: false },
  'process/closed': { extension: false },
  'process/gap': { extension: true },
  'fs/missingChanged': { extension: false },
  'fs/changed': { extension: true },
  'http/request/bodyDelta': { extension: false },
} as const;

/** A method the client can ask the server for. */
export type RequestMethod = keyof typeof requests;
/** A notification from client to server. */
export type ClientNotificationMethod = keyof typeof clientNotifications;
/** A notification from server to client. */
export type ServerNotificationMethod = keyof typeof serverNotifications;

/** Whether this protocol has such a request, the base protocol's and ours alike. */
export function isRequestMethod(method: string): method is RequestMethod {
  return Object.hasOwn(requests, method);
}
