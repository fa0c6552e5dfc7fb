/** A Transport that breaks on purpose, message by message: no sockets needed, every step under the test's control. */
import type { CloseReason, Transport, TransportListener } from '@exec-server/protocol';
import { sides } from './byteLink.js';
import { type Direction, type DueAction, FaultPlan, type FaultRule, type MessageFault } from './faultPlan.js';
import { MessageGate } from './messageGate.js';
import type { Seed } from './random.js';

/** Which end a transport is, and what happens to it by itself. */
export interface FaultTransportOptions {
  /** Which end the wrapped transport belongs to; decides which direction is `up`. Default `client`: what it sends goes up. */
  readonly end?: 'client' | 'server' | undefined;
  /** What random cut points are drawn from. Default 1. */
  readonly seed?: Seed | undefined;
  /**
   * Faults that happen by themselves. Byte counts are those of the messages alone and end with the message that reaches
   * them: none passes in part. Default none.
   */
  readonly rules?: readonly FaultRule<MessageFault>[] | undefined;
  /** A rule is due and happens now. */
  readonly onFault?: ((action: DueAction<MessageFault>) => void) | undefined;
}

/** What stands between a peer and its transport. A method without a direction means both. */
export interface FaultyTransport extends Transport {
  /** Messages that have passed. */
  readonly passed: Readonly<Record<Direction, number>>;
  /** Closes with kind `cut`, aborts the inner transport, drops what is held; nothing is delivered after it. */
  cut(detail?: string): void;
  /** Holds messages back, for `ms` or until released. */
  stall(direction?: Direction, ms?: number): void;
  /** Keeps the newest so many messages back: each passes when that many have come behind it. */
  delay(direction: Direction, messages: number): void;
  /** Ends stall and delay; what was held passes in order. */
  release(direction?: Direction): void;
  /**
   * Takes everything, passes nothing on. Closing this end then stays unknown to the other, as when a network goes away;
   * `cut` lets go of the inner transport.
   */
  silence(): void;
  /** Ends one direction after what it holds. Towards this end the listener hears `ended`; towards the other, later messages vanish. */
  halfClose(direction: Direction): void;
  /** Arms one more rule; it counts from now on. Throws a RangeError for a count that is no whole number from 1. */
  addRule(rule: FaultRule<MessageFault>): void;
}

/**
 * Wraps a transport that was not started yet.
 *
 * @example
 * ```ts
 * const [left, right] = memoryTransportPair();
 * const faulty = faultTransport(left, { rules: [{ when: { direction: 'down', beforeMessage: hasMethod('process/exited') }, do: 'cut' }] });
 * ```
 */
export function faultTransport(inner: Transport, options: FaultTransportOptions = {}): FaultyTransport {
  return new FaultTransport(inner, options);
}

class FaultTransport implements FaultyTransport {
  readonly #inner: Transport;
  readonly #options: FaultTransportOptions;
  readonly #plan: FaultPlan<MessageFault>;
  readonly #sending: MessageGate<string | Uint8Array>;
  readonly #receiving: MessageGate<string>;
  readonly #sendDirection: Direction;
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Ends a silence; outlives this end, because the other one does not know that it has closed. */
  #cutDue: NodeJS.Timeout | undefined;
  #listener: TransportListener | undefined;
  #paused = false;
  #silent = false;
  /** The other side has ended; told once what is held has been delivered. */
  #end: 'none' | 'due' | 'told' = 'none';
  #innerClosed: CloseReason | undefined;
  /** This end closes in order once what it sent has passed. */
  #closing: CloseReason | undefined;
  #closed: CloseReason | undefined;
  #closedTold = false;

  constructor(inner: Transport, options: FaultTransportOptions) {
    this.#inner = inner;
    this.#options = options;
    this.#plan = new FaultPlan(options.rules ?? [], options.seed ?? 1);
    this.#sendDirection = options.end === 'server' ? 'down' : 'up';
    const faults = this.#plan.openConnection();
    const act = (action: DueAction<MessageFault>): void => this.#act(action);
    this.#sending = new MessageGate({
      direction: this.#sendDirection,
      faults,
      act,
      isOpen: () => this.#closed === undefined,
      pass: (message) => inner.send(message),
    });
    this.#receiving = new MessageGate({
      direction: this.#sendDirection === 'up' ? 'down' : 'up',
      faults,
      act,
      isOpen: () => this.#closed === undefined && !this.#paused && this.#listener !== undefined,
      pass: (message) => this.#listener?.message(message),
    });
  }

  get label(): string {
    return this.#inner.label;
  }

  get queuedBytes(): number {
    return this.#closed === undefined ? this.#inner.queuedBytes + this.#sending.heldBytes : 0;
  }

  get passed(): Readonly<Record<Direction, number>> {
    return { up: this.#gate('up').passed, down: this.#gate('down').passed };
  }

  start(listener: TransportListener): void {
    this.#listener = listener;
    if (this.#closed !== undefined) {
      queueMicrotask(() => this.#tellClosed());
      return;
    }
    this.#inner.start({
      message: (text) => {
        this.#receiving.push(text);
        this.#settle();
      },
      drained: () => {
        if (this.#closed === undefined) listener.drained();
      },
      ended: () => {
        if (this.#silent || this.#end !== 'none') return;
        this.#end = 'due';
        this.#receiving.shut();
        this.#settle();
      },
      closed: (reason) => {
        this.#innerClosed = reason;
        this.#receiving.shut();
        this.#settle();
      },
    });
  }

  send(message: string | Uint8Array): void {
    if (this.#closed !== undefined || this.#closing !== undefined) return;
    this.#sending.push(message);
    // A rule that ended something in the middle of this message waits for it to have passed.
    this.#settle();
  }

  pause(): void {
    this.#paused = true;
    this.#inner.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#flow();
  }

  close(reason: CloseReason = { kind: 'closed', detail: 'closed here' }): void {
    if (this.#closed !== undefined || this.#closing !== undefined) return;
    this.#closing = reason;
    this.#sending.shut();
    this.#settle();
  }

  abort(reason: CloseReason = { kind: 'closed', detail: 'aborted here' }): void {
    if (this.#closed !== undefined) return;
    this.#stop(reason);
    if (!this.#silent) this.#inner.abort(reason);
    this.#tellClosed();
  }

  cut(detail = 'cut on purpose'): void {
    const reason: CloseReason = { kind: 'cut', detail };
    const wasOpen = this.#closed === undefined;
    clearTimeout(this.#cutDue);
    if (wasOpen) this.#stop(reason);
    this.#inner.abort(reason);
    // Later, because a rule may cut in the middle of a `send` of the listener.
    if (wasOpen) queueMicrotask(() => this.#tellClosed());
  }

  stall(direction?: Direction, ms?: number): void {
    if (this.#closed !== undefined) return;
    for (const one of sides(direction)) this.#gate(one).stall();
    // What the other side sends meanwhile waits there, not here without a bound.
    if (this.#receiving.isStalled) this.#inner.pause();
    if (ms !== undefined) this.#after(ms, () => this.release(direction));
  }

  delay(direction: Direction, messages: number): void {
    this.#gate(direction).delay(messages);
  }

  release(direction?: Direction): void {
    for (const one of sides(direction)) this.#gate(one).release();
    this.#flow();
  }

  silence(): void {
    if (this.#closed !== undefined || this.#silent) return;
    this.#silent = true;
    const hadQueued = this.#sending.heldBytes > 0;
    this.#sending.drop();
    this.#receiving.drop();
    this.#inner.resume();
    if (hadQueued) {
      queueMicrotask(() => {
        if (this.#closed === undefined) this.#listener?.drained();
      });
    }
    this.#settle();
  }

  halfClose(direction: Direction): void {
    this.#gate(direction).shut();
    if (direction === this.#sendDirection || this.#end !== 'none' || this.#silent) return;
    this.#end = 'due';
    this.#settle();
  }

  addRule(rule: FaultRule<MessageFault>): void {
    this.#plan.add(rule);
  }

  #gate(direction: Direction): MessageGate<string> | MessageGate<string | Uint8Array> {
    return direction === this.#sendDirection ? this.#sending : this.#receiving;
  }

  #act(action: DueAction<MessageFault>): void {
    if (this.#closed !== undefined) return;
    this.#options.onFault?.(action);
    switch (action.type) {
      case 'cut':
        if (action.silentMs === undefined) return this.cut();
        this.silence();
        this.#cutDue ??= setTimeout(() => this.cut(), action.silentMs);
        return;
      case 'stall':
        return this.stall(action.direction, action.ms);
      case 'silence':
        return this.silence();
      case 'halfClose':
        return this.halfClose(action.direction);
      default:
        return action satisfies never;
    }
  }

  /** Goes on with what was held back, as far as nothing else holds it. */
  #flow(): void {
    if (this.#closed !== undefined) return;
    this.#receiving.pump();
    if (!this.#paused && !this.#receiving.isStalled) this.#inner.resume();
    this.#settle();
  }

  /** Tells ends and closes whose turn has come: after the last message that was held. */
  #settle(): void {
    if (this.#closed !== undefined) return;
    const isDelivered = this.#receiving.isEmpty && !this.#receiving.isStalled && !this.#silent;
    if (this.#end === 'due' && isDelivered && !this.#paused && this.#listener !== undefined) {
      this.#end = 'told';
      this.#listener.ended();
    }
    if (this.#closing !== undefined && (this.#silent || this.#innerClosed !== undefined)) {
      this.#finish(this.#closing);
    } else if (this.#innerClosed !== undefined && isDelivered) {
      this.#finish(this.#innerClosed);
    } else if (this.#closing !== undefined && this.#sending.isEmpty) {
      this.#inner.close(this.#closing);
    }
  }

  #finish(reason: CloseReason): void {
    if (this.#closed !== undefined) return;
    this.#stop(reason);
    this.#tellClosed();
  }

  /** Once, and only to a listener that is there; `start` asks again. */
  #tellClosed(): void {
    if (this.#closedTold || this.#listener === undefined || this.#closed === undefined) return;
    this.#closedTold = true;
    this.#listener.closed(this.#closed);
  }

  #stop(reason: CloseReason): void {
    this.#closed = reason;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#sending.drop();
    this.#receiving.drop();
  }

  #after(ms: number, then: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      then();
    }, ms);
    this.#timers.add(timer);
  }
}
