/** Any WebSocket-shaped object → Transport: one text message a message. */
import { decodeUtf8 } from '../framing.js';
import type { CloseReason, Transport, TransportListener } from './transport.js';

/** What `ws` and a browser's WebSocket have in common, and what only the first has. */
export interface SocketLike {
  /** 0 connecting, 1 open, 2 closing, 3 closed. */
  readonly readyState: number;
  /** Bytes given to `send` and not taken yet. */
  readonly bufferedAmount: number;
  /** Set to `arraybuffer`. */
  binaryType: string;
  /** Set by the transport; `data` is a string or an `ArrayBuffer`. */
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  /** Set by the transport: the socket is closed. */
  onclose: ((event: { readonly code: number; readonly reason: string; readonly wasClean?: boolean }) => void) | null;
  /** Set by the transport; a close follows. */
  onerror: ((event: { readonly message?: string }) => void) | null;
  /** Sends one text message. A socket that knows no options ignores them. */
  send(message: string | Uint8Array, options?: { readonly binary: boolean }, done?: (error?: Error) => void): void;
  /** Begins the close handshake. */
  close(code?: number, reason?: string): void;
  /** Cuts without a close handshake; absent in browsers. */
  terminate?: () => void;
  /** Stops reading; absent in browsers. */
  pause?: () => void;
  /** Reads again. */
  resume?: () => void;
}

/** How {@link socketTransport} makes a transport. */
export interface SocketTransportOptions {
  /** {@link Transport.label}. */
  readonly label: string;
  /**
   * Holds back and releases what the carrier below writes, so that the messages of one turn leave in one piece. Only a side
   * that owns the socket below can give it.
   */
  readonly carrier?: {
    /** Collects what is written until `uncork`. */
    cork(): void;
    /** Lets it go. */
    uncork(): void;
  };
  /** Ping and pong frames, for `confirm`; browsers have none. A pong carries the payload of its ping. */
  readonly pings?: {
    /** Sends a ping frame. */
    readonly ping: (payload: string) => void;
    /** Tells each pong frame. */
    readonly onPong: (listener: (payload: string) => void) => void;
  };
}

const OPEN = 1;
const CLOSED = 3;
/** Close code of a server that stops: of the range for applications, so that no proxy says it. */
const STOPPED = 4001;
const TEXT = { binary: false } as const;
const CLOSE_TEXT_BYTES = 123;

/**
 * A transport over a WebSocket that is open or opening: one text message a message; a binary one that holds UTF-8 is
 * taken as well. Takes over the handlers of the socket; what arrives before `start` is kept.
 */
export function socketTransport(socket: SocketLike, options: SocketTransportOptions): Transport {
  return new SocketTransport(socket, options);
}

class SocketTransport implements Transport {
  readonly label: string;
  readonly #socket: SocketLike;
  readonly #options: SocketTransportOptions;
  #listener: TransportListener | undefined;
  /** Messages that arrived before `start`. */
  #early: unknown[] = [];
  #corked = false;
  #closed: CloseReason | undefined;
  /** Why this side closes; wins over what the close event says. */
  #ownReason: CloseReason | undefined;
  #lastError: string | undefined;
  readonly confirm?: (arrived: () => void) => void;

  constructor(socket: SocketLike, options: SocketTransportOptions) {
    this.label = options.label;
    this.#socket = socket;
    this.#options = options;
    socket.binaryType = 'arraybuffer';
    socket.onmessage = ({ data }) => {
      if (this.#listener === undefined) this.#early.push(data);
      else this.#receive(data);
    };
    socket.onerror = (event) => {
      this.#lastError = event.message;
    };
    socket.onclose = ({ code, reason }) => this.#finish(this.#ownReason ?? this.#describe(code, reason));
    if (options.pings !== undefined) this.confirm = this.#confirmBy(options.pings);
  }

  get queuedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  start(listener: TransportListener): void {
    this.#listener = listener;
    const early = this.#early;
    this.#early = [];
    // What arrived before a close is delivered before it is told.
    const closedEarly = this.#closed;
    this.#closed = undefined;
    for (const data of early) this.#receive(data);
    if (closedEarly !== undefined) this.#finish(closedEarly);
    else if (this.#socket.readyState === CLOSED) this.#finish({ kind: 'cut', detail: 'closed before the start' });
  }

  send(message: string | Uint8Array): void {
    if (this.#closed !== undefined || this.#socket.readyState !== OPEN) return;
    const carrier = this.#options.carrier;
    if (carrier !== undefined && !this.#corked) {
      this.#corked = true;
      carrier.cork();
      queueMicrotask(() => {
        this.#corked = false;
        carrier.uncork();
      });
    }
    this.#socket.send(message, TEXT, (error) => {
      // A failed write is followed by the close event, which tells why.
      if (error === undefined || error === null) this.#listener?.drained();
    });
  }

  pause(): void {
    this.#socket.pause?.();
  }

  resume(): void {
    this.#socket.resume?.();
  }

  close(reason: CloseReason = { kind: 'closed', detail: 'closed here' }): void {
    if (this.#closed !== undefined) return;
    this.#ownReason ??= reason;
    this.#socket.close(this.#codeOf(reason), clipped(reason.detail));
  }

  abort(reason: CloseReason = { kind: 'closed', detail: 'aborted here' }): void {
    if (this.#closed !== undefined) return;
    this.#ownReason ??= reason;
    if (this.#socket.terminate === undefined) this.#socket.close();
    else this.#socket.terminate();
    this.#finish(this.#ownReason);
  }

  /** A peer may answer the newest of several pings only; that speaks for all before it. */
  #confirmBy({ ping, onPong }: NonNullable<SocketTransportOptions['pings']>): (arrived: () => void) => void {
    const waiting = new Map<number, () => void>();
    let asked = 0;
    onPong((payload) => {
      const answered = /^\d{1,15}$/.test(payload) ? Number(payload) : 0;
      if (answered > asked || this.#closed !== undefined) return;
      for (const [number, arrived] of waiting) {
        if (number > answered) break;
        waiting.delete(number);
        arrived();
      }
    });
    return (arrived) => {
      if (this.#closed !== undefined || this.#socket.readyState !== OPEN) return;
      asked += 1;
      waiting.set(asked, arrived);
      ping(String(asked));
    };
  }

  #receive(data: unknown): void {
    if (this.#closed !== undefined) return;
    if (typeof data === 'string') {
      this.#listener?.message(data);
      return;
    }
    const text = data instanceof ArrayBuffer ? decodeUtf8(new Uint8Array(data)) : undefined;
    if (text === undefined) this.abort({ kind: 'violation', detail: 'a binary message is not UTF-8' });
    else this.#listener?.message(text);
  }

  #describe(code: number, reason: string): CloseReason {
    const words = reason === '' ? '' : ` (${reason})`;
    if (code === STOPPED) return { kind: 'stopped', detail: reason === '' ? 'the server stops' : reason };
    if (code === 1000 || code === 1001 || code === 1005)
      return { kind: 'ended', detail: `close frame ${code}${words}` };
    if (code === 1006)
      return { kind: 'cut', detail: this.#lastError ?? 'the connection was cut without a close frame' };
    return { kind: code === 1009 || code === 1007 ? 'violation' : 'cut', detail: `close code ${code}${words}` };
  }

  /** A browser lets its pages say 1000, and codes of their own from 3000 on. */
  #codeOf(reason: CloseReason): number {
    if (reason.kind === 'stopped') return STOPPED;
    if (reason.kind !== 'violation') return 1000;
    return this.#socket.terminate === undefined ? 4002 : 1002;
  }

  #finish(reason: CloseReason): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#listener?.closed(reason);
  }
}

/** As much of a text as a close frame takes: 123 bytes of UTF-8. */
function clipped(text: string): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(CLOSE_TEXT_BYTES));
  return text.slice(0, read);
}
