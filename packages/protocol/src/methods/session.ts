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

/** Params of `initialize`; without `protocolVersion` the client is one of the base protocol. */
export const InitializeParams = z.object({
  /** Free text for logs. */
  clientName: z.string(),
  /** The session to attach to; absent or null for a new one. */
  resumeSessionId: z.string().nullish(),
  /** Of the client program; ours sends that of its package. */
  clientVersion: z.string().nullish(),
  /** Integer from 1; absent for a client of the base protocol. */
  protocolVersion: u64.nullish(),
  /** What the client can do beyond the base protocol. */
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

/** The shell of the user the server runs as: name, and absolute path. */
export const ShellInfo = z.object({ name: z.string(), path: z.string() });

/** Every capability of the base protocol, false where this server has none. */
export const Capabilities = z.record(z.string(), z.boolean());

/** Result of `environment/info`; folders are `file:` URIs. */
export const EnvironmentInfo = z.object({
  /** The login shell of the user the server runs as. */
  shell: ShellInfo,
  /** Version of the server. */
  executorVersion: z.string(),
  /** Stable for a host. */
  providerId: z.string(),
  /** Where processes start that ask for no other folder; a `file:` URI. */
  cwd: z.string(),
  /** A `file:` URI. */
  userHomeDir: z.string(),
  /** `linux`, `macos`, `windows`, or what Node calls it. */
  platformOs: z.string(),
  /** Of the base protocol; empty here. */
  prependPathDirs: z.array(z.string()),
  /** `file:` URIs; here `tempDir` alone. */
  temporaryDirectories: z.array(z.string()),
  /** A `file:` URI. */
  tempDir: z.string(),
  /** What of the base protocol the server has. */
  capabilities: Capabilities,
});

/** Limits a client can plan with; sizes in bytes. */
export const ServerLimits = z.object({
  /** Largest message it takes. */
  maxMessageBytes: u64,
  /** Largest single WebSocket frame it takes. */
  maxFrameBytes: u64,
  /** Most output in one answer of `process/read`. */
  maxReadBytes: u64,
  /** Output it keeps in memory for one process. */
  retainedBytesPerProcess: u64,
  /** Output of one process that is on the way unacknowledged at most. */
  creditBytesPerProcess: u64,
  /** Stdin it accepts for one process that does not read; a write beyond it waits. */
  stdinQueueBytes: u64,
  /** Requests that may be unanswered at a time; a number. */
  pendingRequests: u64,
});

/** Result of `initialize`. */
export const InitializeResult = z.object({
  /** Whoever knows it can control the session; an observer gets back the id it came with. */
  sessionId: z.string(),
  /** A second id of the session, which admits observers only. */
  observeId: z.string(),
  /** As `environment/info` answers. */
  environmentInfo: EnvironmentInfo,
  /** Name and version of the server program. */
  serverInfo: z.object({ name: z.string(), version: z.string() }),
  /** Version of the extensions it speaks, from 1. */
  protocolVersion: u64,
  /** What the server can do beyond the base protocol. */
  extensions: Extensions,
  /** One life of the server; a cursor of another epoch means nothing here. */
  epoch: z.string(),
  /** What it takes. */
  limits: ServerLimits,
  /** Whether `resumeSessionId` was taken up. */
  resumed: z.boolean(),
  /** How long this session lives while detached. */
  leaseMs: u64,
});

/** Result of `environment/status`. */
export const EnvironmentStatusResult = z.object({ status: z.literal('ready') });
/** Params of `session/close`; may be left out. */
export const SessionCloseParams = z.object({}).nullish();
/** Result of `session/close`: an empty object; the connection closes behind it. */
export const SessionCloseResult = z.object({});
/** Result of `ping`: an empty object. */
export const PingResult = z.object({});
/** Methods without parameters take absent, null or an empty object. */
export const NoParams = z.strictObject({}).nullish();
