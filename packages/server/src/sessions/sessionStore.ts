/** SessionId → Session: creates, attaches, expires and ends sessions; remembers the ids of those that are over. */
import { randomBytes } from 'node:crypto';
import { limits, sessionId, type SessionId, WireError } from '@exec-server/protocol';
import type { Process } from '../processes/process.js';
import type { ProcessTableOptions } from '../processes/processTable.js';
import type { SpoolStore } from '../processes/spool/spoolStore.js';
import { WindowBudget } from '../processes/windowBudget.js';
import { type Attachment, type Observer, Session } from './session.js';

export interface SessionStoreOptions extends Omit<ProcessTableOptions, 'windows' | 'openSpool'> {
  /** What the windows of all processes may hold in memory together, and those of one session. */
  readonly retainedBytesPerServer: number;
  readonly retainedBytesPerSession: number;
  /** Begins the marks of this server's processes. */
  readonly life: string;
  /** Ends what still carries a mark of a session that is over. */
  readonly sweep: (sessionLife: string) => void;
  /** Undefined: no spool; what does not fit memory is lost, and told. */
  readonly spools?: SpoolStore | undefined;
  /** Lease of a session whose client asks for none. */
  readonly leaseMs: number;
}

export class SessionStore {
  readonly #options: SessionStoreOptions;
  readonly #sessions = new Map<SessionId, Session>();
  readonly #byObserveId = new Map<SessionId, Session>();
  readonly #windows: WindowBudget;
  readonly #over = new Set<SessionId>();
  /** Children of ended sessions that were killed and not reaped yet. */
  readonly #dying = new Set<Process>();
  #whenReaped: (() => void)[] = [];
  /** Ended sessions whose temporary files are being removed. */
  readonly #removing = new Set<Promise<void>>();
  #stopping = false;
  #created = 0;

  constructor(options: SessionStoreOptions) {
    this.#options = options;
    this.#windows = new WindowBudget(options.retainedBytesPerServer);
  }

  get size(): number {
    return this.#sessions.size;
  }

  values(): IterableIterator<Session> {
    return this.#sessions.values();
  }

  /** A new session under the control of this connection. */
  async create(attachment: Attachment, wishedLeaseMs: number | undefined): Promise<Session> {
    this.#refuseWhenStopping();
    if (this.#sessions.size >= limits.MAX_SESSIONS) {
      throw new WireError('tooManySessions', `the server holds ${this.#sessions.size} sessions`, {
        limit: limits.MAX_SESSIONS,
      });
    }
    const { spools } = this.#options;
    const budget = spools?.sessionBudget();
    const session = new Session({
      ...this.#options,
      openSpool: spools === undefined || budget === undefined ? undefined : (changed) => spools.open(budget, changed),
      windows: new WindowBudget(this.#options.retainedBytesPerSession, this.#windows),
      id: newSessionId(),
      observeId: newSessionId(),
      life: `${this.#options.life}-${(this.#created += 1)}`,
      leaseMs: Math.min(wishedLeaseMs ?? this.#options.leaseMs, limits.MAX_SESSION_LEASE_MS),
      onExpired: (expired) => this.end(expired, 'the session was detached longer than its lease'),
    });
    this.#sessions.set(session.id, session);
    this.#byObserveId.set(session.observeId, session);
    await session.attach(attachment);
    return session;
  }

  /**
   * Gives control of a session to this connection, if it is detached, or its own connection is suspect or is an earlier one of
   * the same client object, or in any case with `takeOver`. Throws WireError when that cannot be.
   */
  async resume(id: string, attachment: Attachment, takeOver = false): Promise<Session> {
    this.#refuseWhenStopping();
    const session = this.#sessions.get(sessionId(id));
    if (session === undefined) {
      if (!this.#byObserveId.has(sessionId(id))) throw this.#missing(id);
      throw new WireError('observeOnly', 'the session id given admits observers, not control');
    }
    if (session.leaseState === 'expired') {
      this.end(session, 'its lease was over');
      throw this.#missing(id);
    }
    if (takeOver) session.takenBy(attachment.attachId);
    else if (session.hasLost(attachment.attachId)) {
      throw new WireError('takenOver', `session ${id} was taken over by another client`);
    }
    if (session.attachment !== undefined) this.#evict(session, session.attachment, attachment, takeOver);
    if (await session.attach(attachment)) return session;
    throw this.#missing(id);
  }

  /** Admits an observer by the id of a session or by its `observeId`. Throws WireError. */
  observe(id: string, observer: Observer): Session {
    this.#refuseWhenStopping();
    const session = this.#sessions.get(sessionId(id)) ?? this.#byObserveId.get(sessionId(id));
    if (session === undefined) throw this.#missing(id);
    if (session.leaseState === 'expired') {
      this.end(session, 'its lease was over');
      throw this.#missing(id);
    }
    session.observe(observer);
    return session;
  }

  #missing(id: string): WireError {
    const reason = this.#over.has(sessionId(id)) ? 'expiredSession' : 'unknownSession';
    return new WireError(reason, `unknown session id ${id}`);
  }

  /** Detached before its connection ends, so that its requests are waited for as after any loss. Throws when it may not be. */
  #evict(session: Session, present: Attachment, next: Attachment, takeOver: boolean): void {
    // A client that dials again knows better than this server whether its old connection is dead.
    if (next.attachId !== undefined && next.attachId === present.attachId) {
      session.detach(present);
      present.replaced('its session was resumed by a later connection of the same client');
    } else if (present.isSilent) {
      session.lose(present);
      present.replaced('it gave no sign of life, and its session was resumed by another client');
    } else if (takeOver) {
      session.lose(present);
      present.takenOver('its session was taken over by another client');
    } else {
      throw new WireError('attachedElsewhere', `session ${session.id} is already attached to another connection`);
    }
  }

  /** Kills the session's processes and forgets it; its id stays known as over. */
  end(session: Session, detail: string, stopping = false): void {
    if (!this.#sessions.delete(session.id)) return;
    this.#byObserveId.delete(session.observeId);
    for (const id of [session.id, session.observeId]) this.#over.add(id);
    for (const oldest of this.#over) {
      // Two ids a session.
      if (this.#over.size <= 2 * limits.EXPIRED_SESSIONS_REMEMBERED) break;
      this.#over.delete(oldest);
    }
    const ended = session.end(detail, stopping);
    // Never rejects.
    const removing = session.files.end().finally(() => this.#removing.delete(removing));
    this.#removing.add(removing);
    for (const process of ended) this.#bury(process);
    // What left its group is found by its mark; a session that started nothing left nothing.
    if (session.marks.used) this.#options.sweep(session.marks.life);
  }

  /** Ends all sessions; resolves when every child was reaped and every temporary file removed, or after `patienceMs`. */
  async close(patienceMs: number): Promise<void> {
    this.#stopping = true;
    for (const session of [...this.#sessions.values()]) this.end(session, 'the server is shutting down', true);
    const reaped = this.#dying.size === 0 ? undefined : new Promise<void>((resolve) => this.#whenReaped.push(resolve));
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(patienceMs, resolve, true);
      void Promise.all([reaped, ...this.#removing]).then(() => {
        cancel();
        resolve();
      });
    });
  }

  #bury(process: Process): void {
    if (process.state === 'starting') {
      this.#dying.add(process);
      // `started` never rejects.
      void process.started.then(() => {
        if (process.state === 'starting') this.#reaped(process);
        else this.#bury(process);
      });
      return;
    }
    if (process.log.exited !== undefined) {
      this.#reaped(process);
      return;
    }
    this.#dying.add(process);
    const stop = process.watch(() => {
      if (process.log.exited === undefined) return;
      stop();
      this.#reaped(process);
    });
  }

  #reaped(process: Process): void {
    process.dispose();
    this.#dying.delete(process);
    if (this.#dying.size > 0) return;
    for (const tell of this.#whenReaped.splice(0)) tell();
  }

  #refuseWhenStopping(): void {
    if (this.#stopping) throw new WireError('serverStopping', 'the server is shutting down');
  }
}

/** 128 random bits, in the shape of a UUID, which is what clients of the base protocol are used to. */
function newSessionId(): SessionId {
  const hex = randomBytes(16).toString('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return sessionId(parts.join('-'));
}
