/** Two transports joined in memory: for embedding a server in the program that uses it, and for tests. */
import { decodeUtf8 } from '../framing.js';
import type { CloseReason, Transport, TransportListener } from './transport.js';

/** What one end sends the other receives, in a later turn of the microtask queue. */
export function memoryTransportPair(labels: readonly [string, string] = ['memory', 'memory']): [Transport, Transport] {
  const left = new MemoryEnd(labels[0]);
  const right = new MemoryEnd(labels[1]);
  left.join(right);
  right.join(left);
  return [left, right];
}

class MemoryEnd implements Transport {
  readonly label: string;
  #other: MemoryEnd | undefined;
  #listener: TransportListener | undefined;
  #inbox: string[] = [];
  #inboxBytes = 0;
  #paused = false;
  #scheduled = false;
  #closing: CloseReason | undefined;
  #closed = false;
  /** Messages sent to the other end, and those it has taken. */
  #sent = 0;
  #taken = 0;
  #waiting: { readonly sent: number; readonly arrived: () => void }[] = [];

  constructor(label: string) {
    this.label = label;
  }

  join(other: MemoryEnd): void {
    this.#other = other;
  }

  get queuedBytes(): number {
    return this.#other === undefined ? 0 : this.#other.#inboxBytes;
  }

  start(listener: TransportListener): void {
    this.#listener = listener;
    this.#schedule();
  }

  send(message: string | Uint8Array): void {
    const other = this.#other;
    if (this.#closed || this.#closing !== undefined || other === undefined) return;
    const text = typeof message === 'string' ? message : (decodeUtf8(message) ?? '');
    this.#sent += 1;
    other.#inbox.push(text);
    other.#inboxBytes += text.length;
    other.#schedule();
  }

  confirm(arrived: () => void): void {
    if (this.#closed) return;
    this.#waiting.push({ sent: this.#sent, arrived });
    if (this.#taken === this.#sent) queueMicrotask(() => this.#tellArrived());
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#schedule();
  }

  close(reason: CloseReason = { kind: 'closed', detail: 'closed here' }): void {
    if (this.#closed || this.#closing !== undefined) return;
    const told: CloseReason =
      reason.kind === 'stopped' ? reason : { kind: 'ended', detail: 'the other end was closed' };
    if (this.#other !== undefined) this.#other.#end(told);
    this.#closing = reason;
    this.#inbox = [];
    this.#inboxBytes = 0;
    this.#schedule();
  }

  abort(reason: CloseReason = { kind: 'closed', detail: 'aborted here' }): void {
    if (this.#closed) return;
    const other = this.#other;
    if (other !== undefined && !other.#closed) {
      other.#inbox = [];
      other.#inboxBytes = 0;
      other.#end({ kind: 'cut', detail: 'the other end was aborted' });
    }
    this.#inbox = [];
    this.#inboxBytes = 0;
    this.#closing = reason;
    this.#finish();
  }

  #end(reason: CloseReason): void {
    this.#closing ??= reason;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#closed || this.#listener === undefined) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    const listener = this.#listener;
    if (listener === undefined || this.#closed) return;
    let taken = 0;
    while (!this.#paused && taken < this.#inbox.length) {
      const text = this.#inbox[taken] ?? '';
      taken += 1;
      this.#inboxBytes -= text.length;
      listener.message(text);
      if (this.#closed) return;
    }
    this.#inbox.splice(0, taken);
    if (taken > 0 && this.#other !== undefined) this.#other.#othersTook(taken);
    if (this.#inbox.length === 0 && this.#closing !== undefined) this.#finish();
  }

  #othersTook(messages: number): void {
    this.#taken += messages;
    this.#listener?.drained();
    this.#tellArrived();
  }

  #tellArrived(): void {
    while (!this.#closed && (this.#waiting[0]?.sent ?? Number.POSITIVE_INFINITY) <= this.#taken) {
      this.#waiting.shift()?.arrived();
    }
  }

  #finish(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener?.closed(this.#closing ?? { kind: 'closed', detail: 'closed here' });
  }
}
