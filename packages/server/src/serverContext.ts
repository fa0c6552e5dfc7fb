/** What all connections of one server share. */
import type { EnvironmentInfo, Epoch } from '@exec-server/protocol';
import type PQueue from 'p-queue';
import type { Clock } from './clock.js';
import type { Platform } from './host/child.js';
import type { Reaper } from './processes/reaper.js';
import type { SessionStore } from './sessions/sessionStore.js';

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
  /** The marks this server itself was started under. */
  readonly outerMarks: string | undefined;
  readonly epoch: Epoch;
  readonly environmentInfo: EnvironmentInfo;
  /** The environment that `envPolicy.inherit` draws from. */
  readonly serverEnv: Readonly<Record<string, string | undefined>>;
  readonly concurrentRequests: number | undefined;
  readonly retainedBytesPerProcess: number;
  readonly log: Log;
}
