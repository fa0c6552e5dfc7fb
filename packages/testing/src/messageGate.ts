/** One direction of a message carrier: passes messages in order, holds them back while stalled or delayed, asks the rules. */
import type { ConnectionFaults, Direction, DueAction, MessageFault } from './faultPlan.js';
import { decodeText } from './scanner.js';

type Message = string | Uint8Array;

interface Held {
  readonly message: Message;
  readonly bytes: number;
  /** Whether the rules for "before this message" were asked. */
  judged: boolean;
}

export interface MessageGateOptions<M extends Message> {
  readonly direction: Direction;
  readonly faults: ConnectionFaults<MessageFault>;
  /** Whether somebody beyond the gate takes a message now. */
  readonly isOpen: () => boolean;
  readonly pass: (message: M) => void;
  readonly act: (action: DueAction<MessageFault>) => void;
}

export class MessageGate<M extends Message> {
  readonly #options: MessageGateOptions<M>;
  #queue: (Held & { readonly message: M })[] = [];
  #heldBytes = 0;
  #passed = 0;
  #stalled = false;
  #lag = 0;
  #shut = false;
  #pumping = false;

  constructor(options: MessageGateOptions<M>) {
    this.#options = options;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0;
  }

  get isStalled(): boolean {
    return this.#stalled;
  }

  get passed(): number {
    return this.#passed;
  }

  push(message: M): void {
    if (this.#shut) return;
    const bytes = typeof message === 'string' ? Buffer.byteLength(message) : message.length;
    this.#queue.push({ message, bytes, judged: false });
    this.#heldBytes += bytes;
    this.pump();
  }

  stall(): void {
    this.#stalled = true;
  }

  /** Keeps the newest so many messages back. */
  delay(messages: number): void {
    this.#lag = messages;
    this.pump();
  }

  release(): void {
    this.#stalled = false;
    this.#lag = 0;
    this.pump();
  }

  /** Takes nothing more; what is held still passes. */
  shut(): void {
    this.#shut = true;
    this.#lag = 0;
    this.pump();
  }

  /** Forgets what is held and takes nothing more. */
  drop(): void {
    this.#shut = true;
    this.#queue = [];
    this.#heldBytes = 0;
  }

  pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    const { direction, faults } = this.#options;
    while (this.#canPass()) {
      const head = this.#queue[0];
      if (head === undefined) break;
      const text = faults.inspects(direction) ? textOf(head.message) : undefined;
      if (!head.judged) {
        head.judged = true;
        if (text !== undefined) this.#act(faults.beforeMessage(direction, text));
        if (!this.#canPass()) break;
      }
      this.#queue.shift();
      this.#heldBytes -= head.bytes;
      this.#passed += 1;
      this.#options.pass(head.message);
      this.#act([...faults.bytesPassed(direction, head.bytes), ...faults.afterMessage(direction, text)]);
    }
    this.#pumping = false;
  }

  #canPass(): boolean {
    return this.#queue.length > this.#lag && !this.#stalled && this.#options.isOpen();
  }

  #act(actions: readonly DueAction<MessageFault>[]): void {
    for (const action of actions) this.#options.act(action);
  }
}

function textOf(message: Message): string {
  return typeof message === 'string' ? message : decodeText(message);
}
