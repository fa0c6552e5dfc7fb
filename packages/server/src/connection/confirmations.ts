/**
 * Learns what has arrived at a client that acknowledges nothing: asks the carrier behind what was sent, once nothing is asked
 * any more, and again after each piece of a long stream. Pure.
 */
import { limits, type Seq } from '@exec-server/protocol';

/** Whose events are sent. */
export interface Confirmable {
  /** Everything through `seq` has arrived. */
  acked(seq: Seq): void;
}

export class Confirmations {
  readonly #confirm: (arrived: () => void) => void;
  /** Sent behind the last question. */
  #unasked = new Map<Confirmable, Seq>();
  #unaskedBytes = 0;
  #asked = 0;
  #ended = false;

  /** `confirm` asks the carrier; it calls back in a later turn, in order. */
  constructor(confirm: (arrived: () => void) => void) {
    this.#confirm = confirm;
  }

  /** An event was handed over for sending. */
  sent(source: Confirmable, seq: Seq): void {
    this.#unasked.set(source, seq);
  }

  /** A message was given to the carrier. */
  counted(bytes: number): void {
    this.#unaskedBytes += bytes;
    if (this.#unaskedBytes >= limits.CONFIRM_EVERY_BYTES) this.ask();
  }

  /** Nobody is asked any more, and late answers say nothing. */
  end(): void {
    this.#ended = true;
    this.#unasked.clear();
  }

  /** To be called when what was sent has been given to the carrier. */
  ask(): void {
    if (this.#ended || this.#unasked.size === 0) return;
    if (this.#asked > 0 && this.#unaskedBytes < limits.CONFIRM_EVERY_BYTES) return;
    const covered = this.#unasked;
    this.#unasked = new Map();
    this.#unaskedBytes = 0;
    this.#asked += 1;
    this.#confirm(() => {
      this.#asked -= 1;
      if (this.#ended) return;
      for (const [source, seq] of covered) source.acked(seq);
      this.ask();
    });
  }
}
