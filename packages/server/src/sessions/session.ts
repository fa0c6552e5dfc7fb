/** One session: its process table, its lease, the connection that controls it, and those that observe it. */
import { limits, type SessionId } from '@exec-server/protocol';
import type { Clock } from '../clock.js';
import type { Process } from '../processes/process.js';
import { ProcessTable, type ProcessTableOptions } from '../processes/processTable.js';
import { SessionFiles } from '../files/sessionFiles.js';
import { MarkSource } from '../host/tree/mark.js';
import * as lease from './lease.js';

/** What a session needs of a connection that observes it. */
export interface Observer {
  /** Begins to push the events of a process. `held`: only after the client's first read. */
  follow(process: Process, options: { readonly held: boolean }): void;
  /** The session is over, `stopping` because the server stops; the connection has nothing left to do. */
  sessionEnded(detail: string, stopping: boolean): void;
}

/** What a session needs of the connection that controls it. */
export interface Attachment extends Observer {
  /** Whether the peer may be gone without a word: then another connection may take its place. */
  readonly isSilent: boolean;
  /** Which client object it is; undefined where the client does not say. */
  readonly attachId: string | undefined;
  /** Cuts the connection: its client has the session on another one, or may be gone. What was read and has not begun does not. */
  replaced(detail: string): void;
  /** Another client has the session now: the connection is told why, and ends. */
  takenOver(detail: string): void;
  /** Settles when every request this connection had read was answered or dropped. */
  settled(): Promise<void>;
}

export interface SessionOptions extends ProcessTableOptions {
  readonly id: SessionId;
  /** Admits observers only. */
  readonly observeId: SessionId;
  readonly leaseMs: number;
  /** Begins the environment marks of its processes. */
  readonly life: string;
  /** Called when the lease has run out. */
  readonly onExpired: (session: Session) => void;
}

export class Session {
  readonly id: SessionId;
  readonly observeId: SessionId;
  readonly processes: ProcessTable;
  readonly marks: MarkSource;
  readonly files = new SessionFiles();
  readonly leaseMs: number;
  readonly #clock: Clock;
  readonly #onExpired: (session: Session) => void;
  #lease: lease.Lease = lease.attached;
  #attachment: Attachment | undefined;
  readonly #observers = new Set<Observer>();
  /** Clients that lost the session to another one. */
  readonly #losers = new Set<string>();
  /** The client that had it before it was detached. */
  #lastAttachId: string | undefined;
  /** Whether the present attachment gets new processes at once: not before its predecessor's requests have settled. */
  #following = false;
  #previous: Promise<unknown> = Promise.resolve();
  #cancelExpiry: (() => void) | undefined;
  #ended = false;

  constructor(options: SessionOptions) {
    this.id = options.id;
    this.observeId = options.observeId;
    this.leaseMs = options.leaseMs;
    this.#clock = options.clock;
    this.#onExpired = options.onExpired;
    this.processes = new ProcessTable(options);
    this.marks = new MarkSource(options.life);
  }

  get attachment(): Attachment | undefined {
    return this.#attachment;
  }

  get observers(): number {
    return this.#observers.size;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The state of the lease now. */
  get leaseState(): lease.Lease['state'] {
    return this.#ended ? 'expired' : lease.leaseAt(this.#lease, this.#clock.now()).state;
  }

  /**
   * Takes control, or returns false when the lease is over. Resolves after the requests of the previous connection have
   * settled, so that a read tells for sure what became of them.
   */
  async attach(attachment: Attachment): Promise<boolean> {
    const renewed = lease.resume(this.#lease, this.#clock.now());
    if (renewed === undefined || this.#ended) return false;
    this.#lease = renewed;
    this.#attachment = attachment;
    this.#cancelExpiry?.();
    this.#cancelExpiry = undefined;
    await this.#settled();
    if (this.#attachment !== attachment || this.#ended) return !this.#ended;
    this.#following = true;
    this.#followAll(attachment);
    return true;
  }

  /** Gives up control, if this connection still has it; the lease starts. */
  detach(attachment: Attachment): void {
    if (this.#attachment !== attachment) return;
    this.#attachment = undefined;
    this.#lastAttachId = attachment.attachId;
    this.#following = false;
    this.#previous = Promise.all([this.#previous, attachment.settled()]).then(() => undefined);
    this.#lease = lease.detach(this.#lease, this.leaseMs, this.#clock.now());
    if (this.#ended) return;
    this.#cancelExpiry = this.#clock.after(this.leaseMs, () => this.#onExpired(this));
  }

  /** The connection that controls it gives it up to another client. */
  lose(attachment: Attachment): void {
    this.#remember(attachment.attachId);
    this.detach(attachment);
  }

  /** It is taken over by this client: whoever had it last does not get it back by dialing again. */
  takenBy(attachId: string | undefined): void {
    if (attachId !== undefined) this.#losers.delete(attachId);
    if (this.#attachment === undefined && this.#lastAttachId !== attachId) this.#remember(this.#lastAttachId);
  }

  #remember(loser: string | undefined): void {
    if (loser !== undefined) this.#losers.add(loser);
    for (const oldest of this.#losers) {
      if (this.#losers.size <= limits.TAKEN_OVER_REMEMBERED) break;
      this.#losers.delete(oldest);
    }
  }

  /** Whether this client lost the session, and has not taken it back. */
  hasLost(attachId: string | undefined): boolean {
    return attachId !== undefined && this.#losers.has(attachId);
  }

  /** Its pushes begin with its first reads. Neither the lease nor the pace of any process depends on it. */
  observe(observer: Observer): void {
    this.#observers.add(observer);
    this.#followAll(observer);
  }

  unobserve(observer: Observer): void {
    this.#observers.delete(observer);
  }

  /** One that is starting is followed when it has begun. */
  #followAll(observer: Observer): void {
    for (const process of this.processes.values()) {
      if (process.state !== 'starting') observer.follow(process, { held: true });
    }
  }

  /** A start that hangs, on a dead file system for example, does not keep a client from its other processes. */
  #settled(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(limits.SETTLE_WAIT_MS, resolve);
      // `settled` never rejects.
      void this.#previous.then(() => {
        cancel();
        resolve();
      });
    });
  }

  /** A process was forked; its events go to whoever controls the session now, and to its observers. */
  began(process: Process): void {
    if (this.#following) this.#attachment?.follow(process, { held: false });
    for (const observer of this.#observers) observer.follow(process, { held: false });
  }

  /** Kills every group. Idempotent; returns what was running, to be waited for. */
  end(detail: string, stopping = false): Process[] {
    if (this.#ended) return [];
    this.#ended = true;
    this.#cancelExpiry?.();
    const ended = this.processes.end();
    this.#attachment?.sessionEnded(detail, stopping);
    this.#attachment = undefined;
    for (const observer of this.#observers) observer.sessionEnded(detail, stopping);
    this.#observers.clear();
    return ended;
  }
}
