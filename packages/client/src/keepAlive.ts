/**
 * Keeps one connection alive and notices when the server has gone silent: a look every 5 s, a ping every 10 s, the end after 25 s
 * without a sign of life. Pings are frames where the carrier has them, and calls where it has not. Such a carrier shows a message
 * only when it is whole: one that the link does not carry in the time is given more of it on the connections that follow.
 */
import { type CloseReason, limits, type Transport, type TransportListener } from '@exec-server/protocol';
import type { Clock } from './clock.js';
import { Liveness, LOOK_EVERY_MS } from './liveness.js';
import type { Carrier, Pulse } from './transport/dialer.js';

/** How a connection without ping frames is asked for a sign of life. */
export interface Question {
  /** Makes the server answer something. */
  ask(): Promise<unknown>;
  /** Whether the server may be unable to answer: a foreign one answers nothing else while a write waits for its program. */
  isStuck(): boolean;
}

export class KeepAlive {
  /** To be used in place of the carrier's own. */
  readonly transport: Transport;
  readonly #watched: WatchedTransport;
  readonly #pulse: Pulse | undefined;
  readonly #clock: Clock;
  readonly #silenceMs: number;
  readonly #liveness: Liveness;
  #started = false;
  #gaveUp = false;
  #cancel: (() => void) | undefined;

  /** `silenceMs`: how long a carrier without ping frames may be silent. */
  constructor({ transport, pulse }: Carrier, clock: Clock, silenceMs: number = limits.SUSPECT_MS) {
    this.#silenceMs = pulse === undefined ? silenceMs : limits.SUSPECT_MS;
    this.#liveness = new Liveness(this.#silenceMs);
    this.#watched = new WatchedTransport(transport, () => this.#liveness.heard());
    this.transport = this.#watched;
    this.#pulse = pulse;
    this.#clock = clock;
    pulse?.onSign(() => this.#liveness.heard());
  }

  /** Begins to look. */
  start(question: Question): void {
    this.#started = true;
    let asking = false;
    const ping = (): void => {
      if (this.#pulse !== undefined) return this.#pulse.ping();
      // A question that is not answered yet says it all.
      if (asking) return;
      asking = true;
      const answered = (): void => void (asking = false);
      question.ask().then(answered, answered);
    };
    const look = (): void => {
      const isHeld = this.#watched.takeHeld() || (this.#pulse === undefined && question.isStuck());
      this.#liveness.look(this.#pulse?.counts() ?? this.#watched.counts, isHeld);
      if (this.#liveness.isLost) {
        this.#gaveUp = true;
        this.transport.abort({ kind: 'cut', detail: `no sign of life for ${this.#silenceMs / 1000} s` });
        return;
      }
      if (this.#liveness.asks) ping();
      this.#cancel = this.#clock.timer(LOOK_EVERY_MS, look);
    };
    this.#cancel = this.#clock.timer(LOOK_EVERY_MS, look);
  }

  /**
   * What the connection that follows this one is to be made with: twice as much after a silence, up to 120 s, and the same where this
   * one ended before it began to look.
   */
  get nextSilenceMs(): number {
    if (!this.#started) return this.#silenceMs;
    return this.#gaveUp ? Math.min(2 * this.#silenceMs, limits.IDLE_LIMIT_MS) : limits.SUSPECT_MS;
  }

  stop(): void {
    this.#cancel?.();
  }
}

/** Tells of each message, and knows whether reading was held back. */
class WatchedTransport implements Transport {
  readonly #inner: Transport;
  readonly #heard: () => void;
  #paused = false;
  /** Paused now, or at some time since this was last asked. */
  #wasHeld = false;
  #drains = 0;

  constructor(inner: Transport, heard: () => void) {
    this.#inner = inner;
    this.#heard = heard;
  }

  get label(): string {
    return this.#inner.label;
  }

  get queuedBytes(): number {
    return this.#inner.queuedBytes;
  }

  get counts(): { readonly received: number; readonly sent: number; readonly waiting: number } {
    return { received: 0, sent: this.#drains, waiting: this.#inner.queuedBytes };
  }

  takeHeld(): boolean {
    const held = this.#wasHeld;
    this.#wasHeld = this.#paused;
    return held;
  }

  start(listener: TransportListener): void {
    this.#inner.start({
      message: (text) => {
        this.#heard();
        listener.message(text);
      },
      drained: () => {
        this.#drains += 1;
        listener.drained();
      },
      ended: () => listener.ended(),
      closed: (reason) => listener.closed(reason),
    });
  }

  send(message: string | Uint8Array): void {
    this.#inner.send(message);
  }

  pause(): void {
    this.#paused = true;
    this.#wasHeld = true;
    this.#inner.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#inner.resume();
  }

  close(reason?: CloseReason): void {
    this.#inner.close(reason);
  }

  abort(reason?: CloseReason): void {
    this.#inner.abort(reason);
  }
}
