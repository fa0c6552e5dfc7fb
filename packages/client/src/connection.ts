/** One connection: handshake, requests, and the notices of one transport until it closes. */
import { type CloseReason, limits, PACKAGE_VERSION, Peer, PROTOCOL_VERSION, WireError } from '@exec-server/protocol';
import type { Clock } from './clock.js';
import { ClientError } from './errors.js';
import { type InitializeReply, initializeReply, isProcessMethod, processNotice, type ProcessNotice } from './guards.js';
import { KeepAlive } from './keepAlive.js';
import type { Carrier } from './transport/dialer.js';

export interface ConnectionListener {
  notice(notice: ProcessNotice): void;
  /** A notification that is not about processes; false when it does not decode. */
  notification?(method: string, params: unknown): boolean;
  /** The transport closed; told once, after everything read before it. */
  lost(reason: CloseReason): void;
  /** Something odd that harms nothing. */
  log(text: string): void;
}

export interface InitializeOptions {
  readonly clientName: string;
  readonly leaseMs?: number;
  readonly resumeSessionId?: string;
  readonly attach?: 'observe';
  readonly takeOver?: true;
  /** The life of the server the session belongs to, where it is known. */
  readonly epoch?: string;
  /** Names the client object, so that it can replace its own dead predecessor. */
  readonly attachId: string;
}

/** A foreign server stops answering when more than 64 are pipelined; one of them is kept for the question whether it lives. */
const FOREIGN_REQUESTS = 63;

export class Connection {
  readonly carrier: Carrier;
  readonly #peer: Peer;
  readonly #finished: Promise<void>;
  readonly #keepAlive: KeepAlive | undefined;
  #reply: InitializeReply | undefined;
  /** Writes that are not answered yet. */
  #writes = 0;

  /**
   * `clock` is for keeping the connection alive; undefined where the end of the server is the end of the transport. `silenceMs` is
   * what the connection before this one gives as `nextSilenceMs`.
   */
  constructor(carrier: Carrier, listener: ConnectionListener, clock: Clock | undefined, silenceMs?: number) {
    this.carrier = carrier;
    this.#keepAlive = clock === undefined ? undefined : new KeepAlive(carrier, clock, silenceMs);
    let finish = (): void => {};
    this.#finished = new Promise((resolve) => (finish = resolve));
    this.#peer = new Peer(
      this.#keepAlive?.transport ?? carrier.transport,
      {
        request: (method) => {
          throw new WireError('unknownMethod', `this client does not take requests (${method})`);
        },
        notification: (method, params) => {
          const notice = isProcessMethod(method) ? processNotice(method, params) : undefined;
          if (notice !== undefined) listener.notice(notice);
          else if (isProcessMethod(method) || listener.notification?.(method, params) === false)
            this.violate(`a ${method} notification does not decode`);
        },
        malformed: (detail) => this.violate(`a message is not JSON-RPC: ${detail}`),
        strayAnswer: () => this.violate('an answer belongs to no request'),
        fault: (method, error) => listener.log(`${method} ${String(error)}`),
        ended: () => this.#peer.close({ kind: 'ended', detail: 'the server ended the connection' }),
        closed: (reason) => {
          this.#keepAlive?.stop();
          listener.lost(reason);
          finish();
        },
      },
      { directNotifications: true },
    );
  }

  /** No request can be sent any more; `finished` follows. */
  get closed(): boolean {
    return this.#peer.closed;
  }

  /** Resolves when the loss was told. */
  get finished(): Promise<void> {
    return this.#finished;
  }

  /** How long the connection after this one may be silent, in ms; undefined for the default. */
  get nextSilenceMs(): number | undefined {
    return this.#keepAlive?.nextSilenceMs;
  }

  /** The answer to `initialize`; only after it. */
  get server(): InitializeReply {
    if (this.#reply === undefined) throw new ClientError('CLOSED', 'the connection is not initialized');
    return this.#reply;
  }

  get extended(): boolean {
    return this.#reply?.extended !== undefined;
  }

  /** What every server answers at once: foreign ones have no `ping`. */
  get pingMethod(): 'ping' | 'environment/status' {
    return this.extended ? 'ping' : 'environment/status';
  }

  /** Requests that may be unanswered at a time. */
  get requestLimit(): number {
    return this.#reply?.extended === undefined
      ? FOREIGN_REQUESTS
      : (this.#reply.extended.limits.pendingRequests ?? 1024);
  }

  /** Begins reading and shakes hands. */
  async initialize({ resumeSessionId, ...options }: InitializeOptions): Promise<InitializeReply> {
    this.#peer.start();
    const params = {
      resumeSessionId: resumeSessionId ?? null,
      clientVersion: PACKAGE_VERSION,
      protocolVersion: PROTOCOL_VERSION,
      extensions: { flowControl: true },
      ...options,
    };
    const reply = initializeReply(await this.#peer.request('initialize', params));
    if (reply === undefined) throw this.violate('the answer to initialize does not decode');
    this.#reply = reply;
    // A message is one frame; foreign servers take smaller ones.
    this.#peer.maxRequestBytes =
      reply.extended === undefined ? limits.MAX_FRAME_BYTES : reply.extended.limits.maxMessageBytes;
    this.#peer.notify('initialized', {});
    // Until here the time for `initialize` is the bound.
    if (!this.#peer.closed) {
      const ask = (): Promise<unknown> => this.#peer.request(this.pingMethod, {});
      this.#keepAlive?.start({ ask, isStuck: () => !this.extended && this.#writes > 0 });
    }
    return reply;
  }

  /** Rejects with RemoteError or TransportClosedError. */
  async request(method: string, params: unknown): Promise<unknown> {
    if (method !== 'process/write') return await this.#peer.request(method, params);
    this.#writes += 1;
    try {
      return await this.#peer.request(method, params);
    } finally {
      this.#writes -= 1;
    }
  }

  acknowledge(processId: string, seq: number): void {
    if (this.#reply?.extended?.flowControl === true) this.#peer.notify('process/ack', { processId, seq });
  }

  /** Cuts a connection whose server does not keep to the protocol. */
  violate(detail: string): ClientError {
    this.#peer.abort({ kind: 'violation', detail });
    return new ClientError(
      'PROTOCOL_VIOLATION',
      `${this.carrier.transport.label} does not keep to the protocol: ${detail}`,
    );
  }

  close(): void {
    this.#peer.close();
  }

  abort(): void {
    this.#peer.abort();
  }
}
