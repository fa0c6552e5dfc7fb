/** What can go wrong and when: rules, and the bookkeeping that decides which are due. Knows no sockets or timers. Pure. */
import { type Seed, seededRandom, type SeededRandom } from './random.js';

/** `up` is from the client to the server, `down` from the server to the client, at whichever end a fault is injected. */
export type Direction = 'up' | 'down';

/** Whether a fault is about this message; called with the whole text of one message. */
export type MessagePredicate = (text: string) => boolean;

/**
 * When a rule is due. Counting is per connection and starts when the connection opens or the rule is added, whichever is later.
 * - `afterBytes`: each time this many more bytes have passed; includes the bytes of the HTTP upgrade.
 * - `afterMessages`: each time this many more messages have passed.
 * - `beforeMessage`, `afterMessage`: a matching message is about to pass, or has just passed.
 * - `aboutEveryBytes`: at random distances with this mean, drawn from the seed, the rule and the number of the connection.
 */
export type FaultTrigger =
  | { readonly direction: Direction; readonly afterBytes: number }
  | { readonly direction: Direction; readonly afterMessages: number }
  | { readonly direction: Direction; readonly beforeMessage: MessagePredicate }
  | { readonly direction: Direction; readonly afterMessage: MessagePredicate }
  | { readonly direction: Direction; readonly aboutEveryBytes: number };

/** How bytes of one direction flow while nothing is broken; what is absent is off. */
export interface FlowShape {
  /** Passes pieces of random size, 1 to this many bytes, each in its own write. */
  readonly splitBytes?: number | undefined;
  /** Passes at most `bytes` at a time and waits `pauseMs` after each, so `bytes / pauseMs` kB a second. */
  readonly drip?:
    | {
        /** Size of a piece, at least 1. */
        readonly bytes: number;
        /** Pause behind each, in ms. */
        readonly pauseMs: number;
      }
    | undefined;
  /** Passes each piece this long after it came; at most about 64 KiB are under way, the rest waits with the sender. */
  readonly delayMs?: number | undefined;
}

/** Both directions end at once. */
export interface CutAction {
  /** The name of this action. */
  readonly type: 'cut';
  /** Reset (RST) and lose what is under way, the default; `false` sends what was taken and ends orderly (FIN). */
  readonly hard?: boolean | undefined;
  /** Swallow everything in both directions for this long first, and cut then. */
  readonly silentMs?: number | undefined;
}

/** Holds one direction back, for `ms` or until it is released; nothing is lost, the sender feels the backpressure. */
export interface StallAction {
  /** The name of this action. */
  readonly type: 'stall';
  /** What is held back. */
  readonly direction: Direction;
  /** For how long, in ms. Default: until `release`. */
  readonly ms?: number | undefined;
}

/** Stays open, takes everything, passes on nothing, not even the end of a side: a network that went away unnoticed. */
export interface SilenceAction {
  /** The name of this action. */
  readonly type: 'silence';
}

/** Ends one direction after what it already took; the other direction goes on. */
export interface HalfCloseAction {
  /** The name of this action. */
  readonly type: 'halfClose';
  /** What is ended. */
  readonly direction: Direction;
}

/** Changes how one direction flows from here on; only where there are bytes. */
export interface ShapeAction {
  /** The name of this action. */
  readonly type: 'shape';
  /** What flows otherwise. */
  readonly direction: Direction;
  /** How it flows from now on; `{}` is as it comes. */
  readonly shape: FlowShape;
}

/** What can happen to a carrier of messages. */
export type MessageFault = CutAction | StallAction | SilenceAction | HalfCloseAction;
/** What can happen to a carrier of bytes. */
export type FaultAction = MessageFault | ShapeAction;

/**
 * One fault: when and what.
 *
 * @example
 * ```ts
 * const rule: FaultRule = { when: { direction: 'down', beforeMessage: hasMethod('process/exited') }, do: 'cut' };
 * ```
 */
export interface FaultRule<A extends FaultAction = FaultAction> {
  /** When it is due. */
  readonly when: FaultTrigger;
  /** `'cut'` and `'silence'` stand for those actions without options. */
  readonly do: A | 'cut' | 'silence';
  /** How often in all, over all connections. Default: once; without limit for `aboutEveryBytes`. */
  readonly times?: number | undefined;
}

/** A predicate for JSON-RPC requests and notifications of one method. */
export function hasMethod(method: string): MessagePredicate {
  return (text) => {
    try {
      const message: unknown = JSON.parse(text);
      return typeof message === 'object' && message !== null && 'method' in message && message.method === method;
    } catch {
      return false; // What is not JSON has no method.
    }
  };
}

/** What a rule for actions `A` leads to; the two that need no options can always be named by their word. */
export type DueAction<A extends FaultAction> = A | CutAction | SilenceAction;

interface ArmedRule<A extends FaultAction> {
  readonly index: number;
  readonly when: FaultTrigger;
  readonly action: DueAction<A>;
  left: number;
}

/** The rules of one proxy or transport, with how often each may still happen. */
export class FaultPlan<A extends FaultAction> {
  readonly #random: SeededRandom;
  readonly #rules: ArmedRule<A>[] = [];
  #connections = 0;

  constructor(rules: readonly FaultRule<A>[], seed: Seed) {
    this.#random = seededRandom(seed);
    for (const rule of rules) this.add(rule);
  }

  /** Throws a `RangeError` for a count that is no positive number, and for such a shape. */
  add(rule: FaultRule<A>): void {
    const { when } = rule;
    if ('afterBytes' in when) checkCount('afterBytes', when.afterBytes);
    if ('afterMessages' in when) checkCount('afterMessages', when.afterMessages);
    if ('aboutEveryBytes' in when) checkCount('aboutEveryBytes', when.aboutEveryBytes);
    if (typeof rule.do !== 'string' && rule.do.type === 'shape') checkShape(rule.do.shape);
    this.#rules.push({
      index: this.#rules.length,
      when,
      action: typeof rule.do === 'string' ? { type: rule.do } : rule.do,
      left: rule.times ?? ('aboutEveryBytes' in when ? Number.POSITIVE_INFINITY : 1),
    });
  }

  /** The bookkeeping of one more connection. */
  openConnection(): ConnectionFaults<A> {
    this.#connections += 1;
    return new ConnectionFaults(this.#rules, this.#random.fork(`connection ${this.#connections}`));
  }
}

/** Where a rule stands on one connection. */
interface Progress {
  bytes: number;
  messages: number;
  /** Byte count at which the rule is due next; infinite for rules that do not count bytes. */
  dueAt: number;
  readonly random: SeededRandom;
}

/** Decides for one connection: told what passes, it answers what is due. */
export class ConnectionFaults<A extends FaultAction = FaultAction> {
  /** Everything random about this connection comes from here. */
  readonly random: SeededRandom;
  readonly #rules: readonly ArmedRule<A>[];
  readonly #progress = new Map<ArmedRule<A>, Progress>();

  constructor(rules: readonly ArmedRule<A>[], random: SeededRandom) {
    this.#rules = rules;
    this.random = random;
  }

  /** Whether a rule wants to see the text of messages in this direction. */
  inspects(direction: Direction): boolean {
    return this.#armed(direction).some(({ when }) => 'beforeMessage' in when || 'afterMessage' in when);
  }

  /** How many bytes may pass before the next byte count is reached. */
  room(direction: Direction): number {
    let room = Number.POSITIVE_INFINITY;
    for (const rule of this.#armed(direction)) {
      const { dueAt, bytes } = this.#progressOf(rule);
      room = Math.min(room, Math.max(dueAt - bytes, 1));
    }
    return room;
  }

  /** Bytes have passed. */
  bytesPassed(direction: Direction, count: number): DueAction<A>[] {
    const due: DueAction<A>[] = [];
    for (const rule of this.#armed(direction)) {
      const progress = this.#progressOf(rule);
      progress.bytes += count;
      while (progress.bytes >= progress.dueAt && rule.left > 0) {
        due.push(fire(rule));
        progress.dueAt += distance(rule.when, progress.random);
      }
    }
    return due;
  }

  /** A message is about to pass. */
  beforeMessage(direction: Direction, text: string): DueAction<A>[] {
    return this.#armed(direction)
      .filter(({ when }) => 'beforeMessage' in when && when.beforeMessage(text))
      .map(fire);
  }

  /** A message has passed; `text` is absent where it was not looked at. */
  afterMessage(direction: Direction, text: string | undefined): DueAction<A>[] {
    const due: DueAction<A>[] = [];
    for (const rule of this.#armed(direction)) {
      const progress = this.#progressOf(rule);
      progress.messages += 1;
      const { when } = rule;
      const isDue =
        ('afterMessages' in when && progress.messages % when.afterMessages === 0) ||
        ('afterMessage' in when && text !== undefined && when.afterMessage(text));
      if (isDue) due.push(fire(rule));
    }
    return due;
  }

  #armed(direction: Direction): ArmedRule<A>[] {
    return this.#rules.filter((rule) => rule.left > 0 && rule.when.direction === direction);
  }

  #progressOf(rule: ArmedRule<A>): Progress {
    let progress = this.#progress.get(rule);
    if (progress === undefined) {
      const random = this.random.fork(`rule ${rule.index}`);
      progress = { bytes: 0, messages: 0, dueAt: distance(rule.when, random), random };
      this.#progress.set(rule, progress);
    }
    return progress;
  }
}

function fire<A extends FaultAction>(rule: ArmedRule<A>): DueAction<A> {
  rule.left -= 1;
  return rule.action;
}

function distance(when: FaultTrigger, random: SeededRandom): number {
  if ('afterBytes' in when) return when.afterBytes;
  // Exponential distances: a cut is as likely right after the last one as at any other byte.
  if ('aboutEveryBytes' in when) return 1 + Math.floor(-Math.log(1 - random.next()) * when.aboutEveryBytes);
  return Number.POSITIVE_INFINITY;
}

/** Throws a `RangeError` for a shape in which nothing could ever pass. */
export function checkShape({ splitBytes, drip, delayMs }: FlowShape): void {
  if (splitBytes !== undefined) checkCount('splitBytes', splitBytes);
  if (drip !== undefined) checkCount('drip.bytes', drip.bytes);
  for (const [name, ms] of [
    ['drip.pauseMs', drip?.pauseMs],
    ['delayMs', delayMs],
  ] as const) {
    if (ms !== undefined && !(ms >= 0)) throw new RangeError(`${name} must be at least 0, not ${ms}`);
  }
}

function checkCount(name: string, count: number): void {
  if (Number.isInteger(count) && count >= 1) return;
  throw new RangeError(`${name} must be a whole number of at least 1, not ${count}`);
}
