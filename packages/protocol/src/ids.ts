/** Branded identifiers, so that a session id is never passed where a process id is meant. Pure. */

declare const brand: unique symbol;
type Branded<Base, Name extends string> = Base & { readonly [brand]: Name };

/** Names a session across connections; whoever knows it can resume the session. 128 random bits as 32 hex digits here. */
export type SessionId = Branded<string, 'SessionId'>;
/** Chosen by the client, unique within its session while the process is retained; any text. */
export type ProcessId = Branded<string, 'ProcessId'>;
/** One life of a server process; cursors belong to one epoch. */
export type Epoch = Branded<string, 'Epoch'>;
/** A JSON-RPC request id as the wire allows it: a string, or an integer within signed 64 bits. */
export type RequestId = string | number;
/** Position in one process's events: 1 is the first, output, exit and close count together. 0 means "before the first". */
export type Seq = number;

/** Brands a text as a session id; checks nothing. */
export const sessionId = (text: string): SessionId => text as SessionId;
/** Brands a text as a process id; checks nothing. */
export const processId = (text: string): ProcessId => text as ProcessId;
/** Brands a text as an epoch; checks nothing. */
export const epoch = (text: string): Epoch => text as Epoch;
