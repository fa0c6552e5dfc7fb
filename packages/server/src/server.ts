/** The composition root: options in, an embeddable server out. */
import { randomBytes } from 'node:crypto';
import { type CloseReason, clampTimerMs, epoch, limits, type Transport } from '@exec-server/protocol';
import PQueue from 'p-queue';
import { type Clock, holding, hostClock } from './clock.js';
import { Connection } from './connection/connection.js';
import { readEnvironmentInfo } from './environment/info.js';
import { TempFiles } from './files/tempFiles.js';
import { isLoopback } from './listen/admission.js';
import {
  DEFAULT_HOST,
  listenWebSocket,
  type WebSocketListener,
  type WebSocketListenOptions,
} from './listen/websocket.js';
import type { Platform } from './host/child.js';
import { HttpAgents } from './http/agents.js';
import { Reaper } from './processes/reaper.js';
import { createHostPlatform } from './host/spawn.js';
import { MARK_VARIABLE } from './host/tree/mark.js';
import { type SpoolLimits, type SpoolProblem, SpoolStore } from './processes/spool/spoolStore.js';
import type { Log, ServerContext } from './serverContext.js';
import { SessionStore } from './sessions/sessionStore.js';

/** How a server is made; every member has a default. */
export interface ExecServerOptions {
  /**
   * How long a detached session lives when its client asks for nothing else, in ms. Default 80,000, as the reference has
   * it.
   */
  readonly sessionLeaseMs?: number | undefined;
  /** How long an exited process stays readable after its close, in ms. Default 80,000. */
  readonly exitedRetentionMs?: number | undefined;
  /**
   * Output kept in memory per process, in bytes. Default 4 MiB; at least 2.25 MiB: 2 MiB at which a process is held back,
   * and what is read meanwhile.
   */
  readonly retainedBytesPerProcess?: number | undefined;
  /** The same for the processes of one session together; the one that holds most gives way. Default 256 MiB. */
  readonly retainedBytesPerSession?: number | undefined;
  /** The same for all processes. Default 1 GiB. */
  readonly retainedBytesPerServer?: number | undefined;
  /**
   * Requests of one connection that run at a time. 1: strictly one after the other, waits included, as the reference does.
   * Default: 64, and requests that wait (long polls, writes without room) do not count.
   */
  readonly concurrentRequests?: number | undefined;
  /**
   * Whether clients may make http requests from here (`http/request`). Default: over transports given to `accept`, over stdio
   * and on loopback, and not where a listener can be reached from other machines. False: nowhere, whatever a listener says.
   */
  readonly http?: boolean | undefined;
  /** What `envPolicy.inherit` and `valueEnvVar` draw from. Default: the environment of this program. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Takes log lines. Default: nothing is logged. */
  readonly log?: Log | undefined;
  /** The host that starts processes. Default: this one. */
  readonly platform?: Platform | undefined;
  /** Folder in which undelivered output is spooled once memory is full. Default: the temporary folder of the host. */
  readonly spoolDir?: string | undefined;
  /** Most bytes in the spool. Default 256 MiB a process, 1 GiB a session, 4 GiB in all. */
  readonly spoolLimits?: SpoolLimits | undefined;
  /** End all children when this program is killed; costs one small process. Default true. */
  readonly guard?: boolean | undefined;
  /** Time source. Default: the clock of this host. */
  readonly clock?: Clock | undefined;
}

/** What the server holds now. */
export interface Gauges {
  /** Connections that are open, those before their handshake included. */
  readonly connections: number;
  /** Sessions that are attached, or detached with a lease that has not run out. */
  readonly sessions: number;
  /** Sessions that a connection controls. */
  readonly attachedSessions: number;
  /** Connections that observe a session. */
  readonly observers: number;
  /** Processes that run or are kept after their end. */
  readonly processes: number;
  /** Processes that run or are starting. */
  readonly runningProcesses: number;
  /** Processes whose writes block because their reader or the disk is behind. */
  readonly heldBackProcesses: number;
  /** Output bytes in memory. */
  readonly retainedBytes: number;
  /** Output bytes in the spool. */
  readonly spooledBytes: number;
  /** Those of them that are not on disk yet. */
  readonly spoolPendingBytes: number;
  /** Bytes on their way out: given to a transport and not sent, or fetched from the spool for it. */
  readonly queuedBytes: number;
  /** Bytes accepted for stdin and not taken by the children yet. */
  readonly stdinQueuedBytes: number;
  /** Requests that are not answered yet. */
  readonly pendingRequests: number;
  /** The bytes of the messages that carried them. */
  readonly pendingRequestBytes: number;
  /** File handles of all connections: files that are open, archives, and stages that are being written. */
  readonly openFiles: number;
  /** Staged writes of all sessions, those that no connection has open included. */
  readonly stages: number;
  /** Watches of all connections, `fs/watchMissing` among them. */
  readonly watches: number;
}

/** How one peer is served. */
export interface AcceptOptions {
  /** Begins the error text for a message that does not parse. */
  readonly malformedPrefix?: string | undefined;
  /** End the session with this connection. Default false: it is detached and can be resumed. */
  readonly endsSession?: boolean | undefined;
  /** Whether this peer may make http requests, unless `http` of the server is false. Default true. */
  readonly http?: boolean | undefined;
  /** Whether the peer may be gone without a word; a resume of its session then takes it over. Default: never. */
  readonly isSilent?: (() => boolean) | undefined;
}

/** A server in this program. Its sessions and processes belong to it alone, and end with it. */
export interface ExecServer {
  /**
   * Serves one peer over a transport that was not started yet; resolves with the reason when the connection is over, and
   * never rejects.
   */
  accept(transport: Transport, options?: AcceptOptions): Promise<CloseReason>;
  /**
   * Listens for WebSocket peers, on loopback unless `host` says otherwise. Rejects when the address cannot be had, or is
   * beyond loopback and would be open to everybody. May be called several times.
   */
  listen(options?: WebSocketListenOptions): Promise<WebSocketListener>;
  /** What the server holds at the moment; counts on demand, over all processes. */
  gauges(): Gauges;
  /**
   * Ends every session, kills every group, and tells the peers by an orderly close. Resolves when the children were
   * reaped, or after 5 s of waiting for them. Idempotent.
   */
  close(): Promise<void>;
  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** How long `close` waits for killed children to be reaped. */
const REAP_PATIENCE_MS = 5_000;
/** How long `close` waits for file operations under way before it takes their temporary files from them. */
const REMOVE_PATIENCE_MS = 5_000;
/** How long `close` waits for connections to take what was sent to them. */
const FLUSH_PATIENCE_MS = 1_000;

/**
 * Makes a server; nothing is served before `listen` or `accept`. Throws a RangeError for a number that cannot be used.
 * Unless `guard` is false a small process is started with the first child or temporary file; it ends and removes them
 * when this program is killed.
 *
 * @example
 * ```ts
 * await using server = createExecServer({ log: (level, message, fields) => console.error(level, message, fields) });
 * const listener = await server.listen({ port: 7000, authenticate: capabilityToken(secret) });
 * console.log(listener.url); // ws://127.0.0.1:7000
 * ```
 */
export function createExecServer(options: ExecServerOptions = {}): ExecServer {
  return new Server(options);
}

class Server implements ExecServer {
  readonly #context: ServerContext;
  readonly #spools: SpoolStore;
  /** Whether clients may make http requests; undefined: where they come from decides. */
  readonly #http: boolean | undefined;
  readonly #connections = new Set<Connection>();
  readonly #listeners = new Set<WebSocketListener>();
  #closing: Promise<void> | undefined;
  /** Called when the last connection is gone; set while the server closes. */
  #whenDisconnected: () => void = () => {};
  #whenAlone: (() => void)[] = [];

  constructor(options: ExecServerOptions) {
    const clock = options.clock ?? hostClock;
    const retainedBytesPerProcess = options.retainedBytesPerProcess ?? limits.RETAINED_BYTES_PER_PROCESS;
    checkOptions(options, retainedBytesPerProcess);
    const log: Log = options.log ?? (() => {});
    const life = randomBytes(8).toString('hex');
    const reaper = new Reaper({
      // It waits for the kernel, whose time no embedder sets.
      clock: hostClock,
      life,
      guard: options.guard ?? true,
      onUnguarded: (reason) =>
        log('warn', 'children would outlive this server if it were killed by SIGKILL; stop it with SIGTERM', {
          reason,
        }),
      onSweepFailed: (error) =>
        log('error', 'what a session left running could not be looked for, and may run on', { reason: String(error) }),
    });
    this.#spools = new SpoolStore({
      dir: options.spoolDir,
      limits: options.spoolLimits,
      onProblem: (problem) => log('warn', SPOOL_PROBLEMS[problem.kind], { ...problem }),
    });
    this.#http = options.http;
    this.#context = {
      reaper,
      tempFiles: new TempFiles({
        life,
        list: (key, begins) => reaper.listTemps(key, begins),
        unlist: (key) => reaper.unlistTemps(key),
      }),
      outerMarks: process.env[MARK_VARIABLE],
      clock,
      platform: options.platform ?? createHostPlatform(),
      sessions: new SessionStore({
        clock,
        life,
        spools: this.#spools,
        sweep: (sessionLife) => reaper.sweep(sessionLife),
        leaseMs: clampTimerMs(options.sessionLeaseMs ?? limits.SESSION_LEASE_MS),
        exitedRetentionMs: clampTimerMs(options.exitedRetentionMs ?? limits.EXITED_RETENTION_MS),
        retainedBytesPerProcess,
        retainedBytesPerSession: options.retainedBytesPerSession ?? limits.RETAINED_BYTES_PER_SESSION,
        retainedBytesPerServer: options.retainedBytesPerServer ?? limits.RETAINED_BYTES_PER_SERVER,
      }),
      starts: new PQueue({ concurrency: limits.CONCURRENT_STARTS }),
      epoch: epoch(life),
      environmentInfo: readEnvironmentInfo(),
      httpAgents: new HttpAgents(options.env ?? process.env),
      serverEnv: options.env ?? process.env,
      concurrentRequests: options.concurrentRequests,
      retainedBytesPerProcess,
      log,
    };
  }

  accept(transport: Transport, options: AcceptOptions = {}): Promise<CloseReason> {
    return new Promise((resolve) => {
      const connection = new Connection(transport, this.#context, {
        malformedPrefix:
          options.malformedPrefix ?? `failed to parse JSON-RPC message from exec-server ${transport.label}`,
        endsSession: options.endsSession ?? false,
        http: this.#http !== false && (options.http ?? true),
        isSilent: options.isSilent ?? (() => false),
        onClosed: (closed, reason) => {
          this.#connections.delete(closed);
          if (this.#connections.size === 0) this.#whenDisconnected();
          if (this.#connections.size === 0) for (const tell of this.#whenAlone.splice(0)) tell();
          this.#context.log('info', 'connection closed', { peer: closed.label, reason: reason.detail });
          resolve(reason);
        },
      });
      this.#connections.add(connection);
      connection.start();
      if (this.#closing !== undefined) connection.abort('the server is shutting down');
    });
  }

  async listen(options: WebSocketListenOptions = {}): Promise<WebSocketListener> {
    const { log, clock } = this.#context;
    const http = options.allowHttp ?? this.#http ?? isLoopback(options.host ?? DEFAULT_HOST);
    const listener = await listenWebSocket(options, {
      accept: (transport, peer, isSilent) => {
        log('info', 'connection accepted', { peer });
        // `accept` never rejects.
        void this.accept(transport, {
          malformedPrefix: `failed to parse websocket JSON-RPC message from exec-server websocket ${peer}`,
          isSilent,
          http,
        });
      },
      connections: () => this.#connections.size,
      clock,
      log,
    });
    this.#listeners.add(listener);
    return listener;
  }

  gauges(): Gauges {
    const sessions = [...this.#context.sessions.values()];
    const processes = sessions.flatMap((session) => [...session.processes.values()]);
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    return {
      connections: this.#connections.size,
      sessions: sessions.length,
      attachedSessions: sessions.filter((session) => session.attachment !== undefined).length,
      observers: sum(sessions.map(({ observers }) => observers)),
      processes: processes.length,
      runningProcesses: processes.filter(({ state }) => state === 'running' || state === 'starting').length,
      heldBackProcesses: processes.filter(({ heldBack }) => heldBack).length,
      retainedBytes: sum(sessions.map((session) => session.processes.retainedBytes)),
      spooledBytes: this.#spools.spooledBytes,
      spoolPendingBytes: this.#spools.pendingBytes,
      queuedBytes: sum([...this.#connections].map(({ queuedBytes }) => queuedBytes)),
      stdinQueuedBytes: sum(processes.map(({ stdinQueuedBytes }) => stdinQueuedBytes)),
      pendingRequests: sum([...this.#connections].map(({ pendingRequests }) => pendingRequests)),
      pendingRequestBytes: sum([...this.#connections].map(({ pendingRequestBytes }) => pendingRequestBytes)),
      openFiles: sum([...this.#connections].map(({ openFiles }) => openFiles)),
      stages: sum(sessions.map(({ files }) => files.stages.size)),
      watches: sum([...this.#connections].map(({ watches }) => watches)),
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const listenersClosed = [...this.#listeners].map((listener) => listener.close());
    await this.#context.sessions.close(REAP_PATIENCE_MS);
    await this.#connectionsGone();
    for (const connection of [...this.#connections]) connection.abort('the server is shutting down');
    await Promise.all(listenersClosed);
    await this.#context.tempFiles.close(holding(hostClock), REMOVE_PATIENCE_MS);
    await this.#context.reaper.close();
    await this.#spools.close();
    await this.#context.httpAgents.close();
    await this.#context.platform.close();
  }

  /** Peers are told by an orderly close; one that does not take it is cut after a while. */
  #connectionsGone(): Promise<void> {
    for (const connection of [...this.#connections]) {
      if (!connection.hasSession) connection.abort('the server is shutting down');
    }
    if (this.#connections.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#context.clock.after(FLUSH_PATIENCE_MS, resolve, true);
      this.#whenDisconnected = () => {
        cancel();
        resolve();
      };
    });
  }
}

const SPOOL_PROBLEMS: Readonly<Record<SpoolProblem['kind'], string>> = {
  unavailable:
    'undelivered output cannot go to disk, as no folder can be made for it; processes run on, and lose their oldest output once memory is full; choose another spool folder',
  full: 'undelivered output cannot be written to disk; processes run on, and lose their oldest output; make room in the spool folder',
  left: 'a folder of undelivered output could not be removed; remove it by hand',
};

function checkOptions(options: ExecServerOptions, retainedBytes: number): void {
  const least = limits.PAUSE_PROCESS_BYTES + 256 * 1024;
  if (!(retainedBytes >= least)) {
    throw new RangeError(
      `retainedBytesPerProcess is ${retainedBytes}; at least ${least} bytes are needed to hold back a fast process`,
    );
  }
  const { concurrentRequests } = options;
  if (concurrentRequests !== undefined && !(Number.isInteger(concurrentRequests) && concurrentRequests >= 1)) {
    throw new RangeError(`concurrentRequests is ${concurrentRequests}; it must be a whole number from 1`);
  }
  for (const name of ['retainedBytesPerSession', 'retainedBytesPerServer'] as const) {
    const value = options[name];
    if (value !== undefined && !(value >= retainedBytes)) {
      throw new RangeError(
        `${name} is ${value}; it must be at least retainedBytesPerProcess, which is ${retainedBytes}`,
      );
    }
  }
  for (const name of ['sessionLeaseMs', 'exitedRetentionMs'] as const) {
    const value = options[name];
    if (value !== undefined && !(value >= 0))
      throw new RangeError(`${name} is ${value}; it must be a number of milliseconds from 0`);
  }
}
