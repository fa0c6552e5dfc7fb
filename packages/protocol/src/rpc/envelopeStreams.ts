/** What vscode-jsonrpc reads from and writes to: envelopes, since framing and encoding are ours. */
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type DataCallback,
  type Disposable,
  type Message,
} from '#jsonrpc';

/** Hands messages that were decoded elsewhere to the library. */
export class EnvelopeReader extends AbstractMessageReader {
  #deliver: DataCallback | undefined;

  listen(callback: DataCallback): Disposable {
    this.#deliver = callback;
    return { dispose: () => (this.#deliver = undefined) };
  }

  deliver(message: Message): void {
    this.#deliver?.(message);
  }
}

/** Takes messages from the library; they are encoded elsewhere. */
export class EnvelopeWriter extends AbstractMessageWriter {
  readonly #write: (message: Message) => void;

  constructor(write: (message: Message) => void) {
    super();
    this.#write = write;
  }

  write(message: Message): Promise<void> {
    this.#write(message);
    return Promise.resolve();
  }

  end(): void {}
}
