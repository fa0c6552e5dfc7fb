/** Connections that the caller makes: a transport in memory to a server in the same program, or one of the caller's own. */
import type { Transport, TransportListener } from '@exec-server/protocol';
import type { Carrier, Dialer } from './dialer.js';

/** One transport is used once; a function is called for each connection, so that a lost one can be restored. */
export type GivenTransport = Transport | (() => Transport | Promise<Transport>);

export function givenDialer(given: GivenTransport): Dialer {
  if (typeof given === 'function') {
    return {
      label: 'the given transport',
      redials: true,
      ownsServer: false,
      dial: async () => carrierOf(await given()),
    };
  }
  return { label: given.label, redials: false, ownsServer: false, dial: () => Promise.resolve(carrierOf(given)) };
}

function carrierOf(transport: Transport): Carrier {
  let close = (): void => {};
  const gone = new Promise<void>((resolve) => (close = resolve));
  return { transport: new Watched(transport, close), gone };
}

/** Tells when the transport has closed; one that is aborted before its start tells nobody else. */
class Watched implements Transport {
  readonly #inner: Transport;
  readonly #closed: () => void;

  constructor(inner: Transport, closed: () => void) {
    this.#inner = inner;
    this.#closed = closed;
  }

  get label(): string {
    return this.#inner.label;
  }

  get queuedBytes(): number {
    return this.#inner.queuedBytes;
  }

  start(listener: TransportListener): void {
    this.#inner.start({
      message: (text) => listener.message(text),
      drained: () => listener.drained(),
      ended: () => listener.ended(),
      closed: (reason) => {
        this.#closed();
        listener.closed(reason);
      },
    });
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

  close(...args: Parameters<Transport['close']>): void {
    this.#inner.close(...args);
  }

  abort(...args: Parameters<Transport['abort']>): void {
    this.#closed();
    this.#inner.abort(...args);
  }
}
