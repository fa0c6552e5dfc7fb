/** Connections to a server that this client starts and that speaks on its stdin and stdout. */
import {
  type ByteSink,
  byteTransport,
  type CloseReason,
  type Transport,
  type TransportListener,
} from '@exec-server/protocol';
import { ClientError } from '../errors.js';
import type { Carrier, Dialer } from './dialer.js';
import type { ChildOptions } from './childOptions.js';
import { ServerChild } from './serverChild.js';

/** Such a server ends with its connection: it is dialed once. */
export function childDialer(options: ChildOptions): Dialer {
  const label = options.command.join(' ');
  return { label, redials: false, ownsServer: true, dial: (signal) => dial(options, label, signal) };
}

async function dial(options: ChildOptions, label: string, signal: AbortSignal): Promise<Carrier> {
  let child: ServerChild;
  try {
    child = await ServerChild.spawn(options);
  } catch (error) {
    throw new ClientError(
      'CONNECT_FAILED',
      `the server program did not start: ${launchFault(error)}; check the command (${label})`,
      { url: label },
      error,
    );
  }
  const transport = new ChildTransport(child);
  if (signal.aborted) transport.abort();
  return { transport, gone: child.gone, report: () => child.report() };
}

/** What a host says of a program it cannot start, in words. */
function launchFault(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  if (text.endsWith('ENOENT')) return 'there is no such program, or no such working directory (ENOENT)';
  return text.endsWith('EACCES') ? 'it may not be executed (EACCES)' : text;
}

class ChildTransport implements Transport {
  readonly label: string;
  readonly #child: ServerChild;
  readonly #inner: Transport;

  constructor(child: ServerChild) {
    this.label = child.label;
    this.#child = child;
    this.#inner = byteTransport(child.stdout, this.#sink(), { label: child.label });
  }

  get queuedBytes(): number {
    return this.#inner.queuedBytes;
  }

  start(listener: TransportListener): void {
    this.#inner.start({
      message: (text) => listener.message(text),
      drained: () => listener.drained(),
      ended: () => void this.#endOfOutput(),
      closed: (reason) => void this.#closed(reason, listener),
    });
    // Paused since the start of the program.
    this.#child.stdout.resume();
  }

  send(message: string | Uint8Array): void {
    this.#inner.send(message);
  }

  pause(): void {
    this.#inner.pause();
  }

  resume(): void {
    this.#inner.resume();
  }

  /** Ends the program's stdin and gives it time to end. */
  close(reason?: CloseReason): void {
    this.#inner.close(reason);
    this.#child.end('afterEof');
  }

  abort(reason?: CloseReason): void {
    this.#inner.abort(reason);
    this.#child.end('now');
  }

  async #endOfOutput(): Promise<void> {
    await this.#child.settle();
    this.#inner.abort({ kind: 'ended', detail: this.#child.describe() });
  }

  async #closed(reason: CloseReason, listener: TransportListener): Promise<void> {
    this.#child.end('afterEof');
    if (reason.kind === 'cut') {
      await this.#child.settle();
      listener.closed({ kind: 'cut', detail: `${reason.detail}; ${this.#child.describe()}` });
    } else {
      listener.closed(reason);
    }
  }

  /**
   * The program's stdin. When the program ends, the pipe to it breaks before the last of its output is read, so that says
   * nothing: the end of the output does.
   */
  #sink(): ByteSink {
    const { stdin } = this.#child;
    const brokenPipe = (): void => void this.#endOfOutput();
    stdin.on('error', brokenPipe);
    return {
      get writableLength() {
        return stdin.writableLength;
      },
      write: (chunk, done) => stdin.write(chunk, done),
      cork: () => stdin.cork(),
      uncork: () => stdin.uncork(),
      end: (done) => stdin.end(done),
      destroy: () => stdin.destroy(),
      on: () => undefined,
    };
  }
}
