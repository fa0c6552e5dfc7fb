/** SessionId → Session: creates, attaches, expires and ends sessions; remembers the ids of those that are over. */
import { randomBytes } from 'node:crypto';
import { limits, sessionId, type SessionId, WireError } from '@exec-server/protocol';
import type { Process } from '../processes/process.js';
import type { ProcessTableOptions } from '../processes/processTable.js';
import type { SpoolStore } from '../processes/spool/spoolStore.js';
import { type Attachment, Session } from './session.js';

export interface SessionStoreOptions extends ProcessTableOptions {
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
  readonly #over = new Set<SessionId>();
  /** Children of ended sessions that were killed and not reaped yet. */
  readonly #dying = new Set<Process>();
  #whenReaped: (() => void)[] = [];
  #stopping = false;
  #created = 0;

  constructor(options: SessionStoreOptions) {
    this.#options = options;
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
      id: newSessionId(),
      life: `${this.#options.life}-${(this.#created += 1)}`,
      leaseMs: Math.min(wishedLeaseMs ?? this.#options.leaseMs, limits.MAX_SESSION_LEASE_MS),
      onExpired: (expired) => this.end(expired, 'the session was detached longer than its lease'),
    });
    this.#sessions.set(session.id, session);
    await session.attach(attachment);
    return session;
  }

  /**
   * Gives control of a session to this connection, if it is detached, or its own connection has gone silent or is an earlier
   * one of the same client object. Throws WireError when that cannot be.
   */
  async resume(id: string, attachment: Attachment): Promise<Session> {
    this.#refuseWhenStopping();
    // The map's key type is a brand over string.
    const session = this.#sessions.get(id as SessionId);
    const present = session?.attachment;
    if (session !== undefined && present !== undefined && isReplaceable(present, attachment)) {
      this.#evict(session, present);
    }
    if (session !== undefined && session.leaseState === 'expired') this.end(session, 'its lease was over');
    else if (session?.attachment !== undefined) {
      throw new WireError('attachedElsewhere', `session ${id} is already attached to another connection`);
    } else if (session !== undefined && (await session.attach(attachment))) return session;
    throw new WireError(
      this.#over.has(sessionId(id)) ? 'expiredSession' : 'unknownSession',
      `unknown session id ${id}`,
    );
  }

  /** Nothing told that the connection is gone. Detached first, so that its requests are waited for as after any loss. */
  #evict(session: Session, silent: Attachment): void {
    session.detach(silent);
    silent.abort('its session was resumed by another connection');
  }

  /** Kills the session's processes and forgets it; its id stays known as over. */
  end(session: Session, detail: string): void {
    if (!this.#sessions.delete(session.id)) return;
    this.#over.add(session.id);
    if (this.#over.size > limits.EXPIRED_SESSIONS_REMEMBERED) {
      for (const oldest of this.#over) {
        this.#over.delete(oldest);
        break;
      }
    }
    const ended = session.end(detail);
    for (const process of ended) this.#bury(process);
    // What left its group is found by its mark; a session that started nothing left nothing.
    if (session.marks.used) this.#options.sweep(session.marks.life);
  }

  /** Ends all sessions; resolves when every child was reaped, or after `patienceMs`. */
  async close(patienceMs: number): Promise<void> {
    this.#stopping = true;
    for (const session of [...this.#sessions.values()]) this.end(session, 'the server is shutting down');
    if (this.#dying.size === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(patienceMs, resolve, true);
      this.#whenReaped.push(() => {
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

/** A client that dials again knows better than this server whether its old connection is dead. */
function isReplaceable(present: Attachment, next: Attachment): boolean {
  return present.isSilent || (next.attachId !== undefined && next.attachId === present.attachId);
}

/** 128 random bits, in the shape of a UUID, which is what clients of the base protocol are used to. */
function newSessionId(): SessionId {
  const hex = randomBytes(16).toString('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return sessionId(parts.join('-'));
}
