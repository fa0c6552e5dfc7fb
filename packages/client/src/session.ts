/** The session behind a client: composes dialing, recovery, calls and records, and keeps what the server said first. */
import { limits } from '@exec-server/protocol';
import { type CallableMethod, type CallOptions, Calls } from './calls.js';
import { type Clock, systemClock } from './clock.js';
import { Connection, type ConnectionListener } from './connection.js';
import { ClientError } from './errors.js';
import type { SessionGauges } from './gauges.js';
import { initializeFailure, lossError, serverRestarted } from './failures.js';
import { goodbye } from './goodbye.js';
import { type InitializeReply, type ReadReply, readReply } from './guards.js';
import { Notices } from './notices.js';
import { type ClientState, type CommonOptions, policyOf, publicState } from './options.js';
import { type DriverHost, RecoveryDriver } from './recovery/driver.js';
import type { State } from './recovery/machine.js';
import { CatchUp, readBudget } from './registry/catchUp.js';
import { ProcessRecord, type RecordHost } from './registry/processRecord.js';
import { SessionRegistry } from './registry/sessionRegistry.js';
import type { Carrier, Dialer } from './transport/dialer.js';

/** Told a state the client is in now; `error` comes with `failed`. */
export type StateListener = (state: ClientState, error?: ClientError) => void;

/** What tests replace. */
export interface ClientInternals {
  readonly clock?: Clock;
  readonly random?: () => number;
}

export class Session {
  readonly dialer: Dialer;
  readonly clock: Clock;
  readonly registry = new SessionRegistry();
  /** Where services other than processes register for their notifications. */
  readonly notices = new Notices();
  readonly calls: Calls;
  readonly #options: CommonOptions;
  readonly #catchUp: CatchUp;
  readonly #driver: RecoveryDriver<Connection>;
  readonly #listeners = new Set<StateListener>();
  readonly #attachId = crypto.getRandomValues(new Uint32Array(4)).join('-');
  readonly #observes: boolean;
  /** First answer to `initialize`; every later one must name the same session and the same life of the server. */
  #server: InitializeReply | undefined;
  #lastCarrier: Carrier | undefined;
  /** How long the next connection may be silent, in ms. */
  #silenceMs: number | undefined;
  #shownState: ClientState = 'connecting';

  constructor(dialer: Dialer, options: CommonOptions, internals: ClientInternals) {
    const { clock = options.clock ?? systemClock, random = Math.random } = internals;
    this.dialer = dialer;
    this.clock = clock;
    this.#options = options;
    this.#observes = options.attach === 'observe';
    if (options.onState !== undefined) this.#listeners.add(options.onState);
    this.#driver = new RecoveryDriver(this.#driverHost(), policyOf(options, dialer), clock, random);
    this.calls = new Calls(this.#driver, clock);
    const read = (record: ProcessRecord, afterSeq: number): Promise<ReadReply> => this.read(record.processId, afterSeq);
    this.#catchUp = new CatchUp(this.registry, { read, log: (text) => this.log(text) }, clock);
  }

  /** Resolves when the first connection is ready. */
  async opened(): Promise<void> {
    try {
      await this.#driver.ready().connection;
    } catch (error) {
      await this.#lastCarrier?.gone;
      throw error;
    }
  }

  get server(): InitializeReply {
    if (this.#server === undefined) throw new ClientError('CLOSED', 'the client has not connected yet');
    return this.#server;
  }

  get state(): State {
    return this.#driver.state;
  }

  /** The returned function ends the listening. */
  onState(listener: StateListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  gauges(): SessionGauges {
    const { connection } = this.#driver;
    return {
      ...this.registry.gauges(),
      queuedBytes: connection === undefined || connection.closed ? 0 : connection.carrier.transport.queuedBytes,
      pendingCalls: this.calls.pending,
    };
  }

  /** A record that is not registered yet. */
  newRecord(processId: string, afterSeq = 0): ProcessRecord {
    const host: RecordHost = {
      ackEveryBytes: this.#ackEveryBytes(),
      read: (record, after) => this.read(record.processId, after),
      soon: (action) => void this.clock.timer(0, action),
      acknowledge: (id, seq) => this.#driver.connection?.acknowledge(id, seq),
      holeSeen: (record, urgent) => this.#catchUp.holeSeen(record, urgent),
      closed: (record) => this.registry.remove(record),
    };
    return new ProcessRecord(processId, host, afterSeq);
  }

  read(processId: string, afterSeq: number, options: CallOptions = {}): Promise<ReadReply> {
    const params = { processId, afterSeq, ...readBudget(this.#server?.extended !== undefined) };
    return this.calls.call({ method: 'process/read', params, guard: readReply, data: { processId } }, options);
  }

  /** The ready connection, once there is one; `method` is what the caller is about to send. */
  async ready(options: CallOptions, method: CallableMethod): Promise<Connection> {
    const bounds = this.calls.bounds(method, options);
    try {
      return await this.calls.connection(bounds);
    } finally {
      bounds.dispose();
    }
  }

  async end(how: 'close' | 'detach'): Promise<void> {
    const { connection, state } = this.#driver;
    const processIds = this.registry.records().map((record) => record.processId);
    this.#driver.close();
    if (connection !== undefined) {
      const speaks = state.name === 'ready' && how === 'close' && !this.dialer.ownsServer && !this.#observes;
      await goodbye(connection, speaks ? processIds : undefined, this.clock);
    }
    await this.#lastCarrier?.gone;
  }

  /** Ends it without a word to the server, whose session ends with its lease. */
  abort(): void {
    const { connection } = this.#driver;
    this.#driver.close();
    connection?.abort();
  }

  log(text: string): void {
    try {
      this.#options.onLog?.(text);
    } catch {
      // It was the way to tell of it. Thrown on, it would end the recovery halfway through a transition.
    }
  }

  /** Undefined where nothing may be acknowledged: a foreign server, or one this client only observes, ends the connection. */
  #ackEveryBytes(): number | undefined {
    const { extended } = this.server;
    if (this.#observes || extended?.flowControl !== true) return undefined;
    const credit = extended.limits.creditBytesPerProcess ?? limits.CREDIT_BYTES_PER_PROCESS;
    return Math.min(limits.ACK_EVERY_BYTES, Math.floor(credit / 4));
  }

  #driverHost(): DriverHost<Connection> {
    return {
      dial: (signal) => this.dialer.dial(signal),
      open: (carrier, lost) => this.#open(carrier, lost),
      initialize: (connection) => this.#initialize(connection),
      judge: (error) => initializeFailure(error, this.#sessionToResume(), this.dialer.label),
      catchUp: (connection) => this.#catchUp.all(connection),
      abort: (connection) => connection.abort(),
      discard: ({ transport }) => transport.abort(),
      failed: (error) => {
        this.#catchUp.stop();
        this.registry.failAll(error);
      },
      changed: (state) => this.#changed(state),
      log: (text) => this.log(text),
    };
  }

  #sessionToResume(): string | undefined {
    return this.#server?.sessionId ?? this.#options.resumeSessionId;
  }

  /** The life of the server that is resumed; undefined on foreign servers, which do not tell. */
  #knownEpoch(): string | undefined {
    return this.#server === undefined ? this.#options.epoch : this.#server.extended?.epoch;
  }

  #open(carrier: Carrier, lost: (error: ClientError, violation: boolean) => void): Connection {
    this.#lastCarrier = carrier;
    const listener: ConnectionListener = {
      notice: (notice) => this.registry.route(notice),
      notification: (method, params) => this.notices.route(method, params, connection),
      lost: (reason) => {
        this.#silenceMs = connection.nextSilenceMs;
        // Other servers may mean something else by that close code, and keep their sessions.
        const isOurs = reason.kind !== 'stopped' || this.#server?.extended !== undefined;
        const told = isOurs ? reason : { ...reason, kind: 'ended' as const };
        const error = lossError(told, this.dialer, this.#server !== undefined, carrier.report?.());
        this.notices.lost(connection, error);
        lost(error, reason.kind === 'violation');
      },
      log: (text) => this.log(text),
    };
    // A server over pipes ends with them, and pipes with their server; one that is only stopped is not to lose its processes.
    const clock = this.dialer.ownsServer ? undefined : this.clock;
    const connection = new Connection(carrier, listener, clock, this.#silenceMs);
    return connection;
  }

  async #initialize(connection: Connection): Promise<void> {
    const { clientName = 'exec-server-client', leaseMs, takeOver } = this.#options;
    const observes = this.#observes;
    const resumeSessionId = this.#sessionToResume();
    const epoch = this.#knownEpoch();
    const { label } = this.dialer;
    const reply = await connection.initialize({
      clientName,
      attachId: this.#attachId,
      ...(observes ? { attach: 'observe' } : {}),
      // The first time alone: two clients that resume with it would take the session from each other in turn.
      ...(takeOver === true && this.#server === undefined ? { takeOver } : {}),
      ...(leaseMs === undefined || observes ? {} : { leaseMs }),
      ...(resumeSessionId === undefined ? {} : { resumeSessionId }),
      ...(resumeSessionId === undefined || epoch === undefined ? {} : { epoch }),
    });
    if (observes && reply.observeId === undefined) {
      const message = `${label} has no observers and took this client for the one in control, so it has left again; the processes run on`;
      throw new ClientError('NOT_SUPPORTED', message);
    }
    if (resumeSessionId !== undefined && reply.sessionId !== resumeSessionId) {
      const message = `${label} was asked to resume a session and answered with another one; the processes of the first are out of reach`;
      throw new ClientError('PROTOCOL_VIOLATION', message);
    }
    const isKnown = this.#server !== undefined || epoch !== undefined;
    if (isKnown && reply.extended?.epoch !== epoch) throw serverRestarted(label);
    this.#server ??= reply;
  }

  #changed(state: State): void {
    const shown = publicState(state);
    if (shown === this.#shownState) return;
    this.#shownState = shown;
    const error = state.name === 'failed' ? state.error : undefined;
    for (const listener of [...this.#listeners]) {
      const failed = (fault: unknown): void => this.log(`a state listener threw: ${String(fault)}`);
      try {
        // What it returns is nothing that is waited for; where it is a promise, its failure is no fault of the program.
        const returned: unknown = listener(shown, error);
        if (returned instanceof Promise) returned.catch(failed);
      } catch (fault) {
        failed(fault);
      }
    }
  }
}
