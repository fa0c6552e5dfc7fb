/** Shapes of `initialize`, `initialized`, `session/close` and the environment methods. */
import { z } from 'zod';
import { flag, u64 } from './scalars.js';

/** What a side can do beyond the base protocol; absent members mean false. */
export const Extensions = z.object({
  /** Client: sends `process/ack`, takes `process/gap`. Server: takes `process/ack`. */
  flowControl: flag.optional(),
  /** Server: it can start processes on a terminal. */
  terminal: flag.optional(),
  /** Server: it has the additions to the file methods (`fs/move`, `fs/watch`, `fs/pack`, stages, `operationId`, …). */
  files: flag.optional(),
  /** Server: it makes `http/request`s for this client; false where they are not allowed. */
  http: flag.optional(),
});

export const InitializeParams = z.object({
  /** Free text for logs. */
  clientName: z.string(),
  /** The session to attach to; absent or null for a new one. */
  resumeSessionId: z.string().nullish(),
  clientVersion: z.string().nullish(),
  /** Integer from 1; absent for a client of the base protocol. */
  protocolVersion: u64.nullish(),
  extensions: Extensions.nullish(),
  /**
   * Random for a client object: a connection that resumes with the same one replaces its predecessor at once, which may look
   * alive to the server for a while.
   */
  attachId: z.string().nullish(),
  /** How long the session shall live while detached, in ms; the server caps it. */
  leaseMs: u64.nullish(),
  /**
   * How to attach to the session `resumeSessionId` names: `control` (the default), of which there is one, or `observe`, of
   * which there may be many: they receive output and may read, and change nothing. An `observeId` admits to the latter.
   */
  attach: z.enum(['control', 'observe']).nullish(),
  /** Take control from whoever has it. Default false. */
  takeOver: flag.nullish(),
  /** The life of the server the client's cursors belong to; a resume in another life is refused with `otherEpoch`. */
  epoch: z.string().nullish(),
});

export const ShellInfo = z.object({ name: z.string(), path: z.string() });

/** Every capability of the base protocol, false where this server has none. */
export const Capabilities = z.record(z.string(), z.boolean());

export const EnvironmentInfo = z.object({
  shell: ShellInfo,
  executorVersion: z.string(),
  /** Stable for a host. */
  providerId: z.string(),
  cwd: z.string(),
  userHomeDir: z.string(),
  platformOs: z.string(),
  prependPathDirs: z.array(z.string()),
  temporaryDirectories: z.array(z.string()),
  tempDir: z.string(),
  capabilities: Capabilities,
});

/** Limits a client can plan with; sizes in bytes. */
export const ServerLimits = z.object({
  maxMessageBytes: u64,
  maxFrameBytes: u64,
  maxReadBytes: u64,
  retainedBytesPerProcess: u64,
  creditBytesPerProcess: u64,
  stdinQueueBytes: u64,
  pendingRequests: u64,
});

export const InitializeResult = z.object({
  /** Whoever knows it can control the session; an observer gets back the id it came with. */
  sessionId: z.string(),
  /** A second id of the session, which admits observers only. */
  observeId: z.string(),
  environmentInfo: EnvironmentInfo,
  serverInfo: z.object({ name: z.string(), version: z.string() }),
  protocolVersion: u64,
  extensions: Extensions,
  /** One life of the server; a cursor of another epoch means nothing here. */
  epoch: z.string(),
  limits: ServerLimits,
  /** Whether `resumeSessionId` was taken up. */
  resumed: z.boolean(),
  /** How long this session lives while detached. */
  leaseMs: u64,
});

export const EnvironmentStatusResult = z.object({ status: z.literal('ready') });
export const SessionCloseParams = z.object({}).nullish();
export const SessionCloseResult = z.object({});
export const PingResult = z.object({});
/** Methods without parameters take absent, null or an empty object. */
export const NoParams = z.strictObject({}).nullish();
