/** What all connections of one server share. */
import type { EnvironmentInfo, Epoch } from '@exec-server/protocol';
import type PQueue from 'p-queue';
import type { Clock } from './clock.js';
import type { TempFiles } from './files/tempFiles.js';
import type { Platform } from './host/child.js';
import type { HttpAgents } from './http/agents.js';
import type { Reaper } from './processes/reaper.js';
import type { SessionStore } from './sessions/sessionStore.js';

/** How much a log line matters: `error` is a fault of the server, `warn` something its owner should look at. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
/** Takes what the server has to say; no secrets, environment values or payloads are in it. */
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;

export interface ServerContext {
  readonly clock: Clock;
  readonly platform: Platform;
  readonly sessions: SessionStore;
  /** Bounds how many children are being started at a time. */
  readonly starts: PQueue;
  readonly reaper: Reaper;
  /** Temporary files of all sessions. */
  readonly tempFiles: TempFiles;
  /** The marks this server itself was started under. */
  readonly outerMarks: string | undefined;
  readonly epoch: Epoch;
  readonly environmentInfo: EnvironmentInfo;
  /** Makes the `http/request`s of all connections. */
  readonly httpAgents: HttpAgents;
  /** The environment that `envPolicy.inherit` and `valueEnvVar` draw from. */
  readonly serverEnv: Readonly<Record<string, string | undefined>>;
  readonly concurrentRequests: number | undefined;
  readonly retainedBytesPerProcess: number;
  readonly log: Log;
}
