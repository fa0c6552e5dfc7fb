/**
 * vscode-jsonrpc over a Transport. Owns the mapping between wire ids and the ids the library sees, the raw rules of the
 * envelope, and what is pending when the transport closes.
 */
import {
  createMessageConnection,
  type Logger,
  Message,
  type MessageConnection,
  ResponseError,
  type ResponseMessage,
} from '#jsonrpc';
import { decodeEnvelope, type Envelope, encodeRequestId } from '../envelope.js';
import { ErrorCode, WireError } from '../errors.js';
import type { RequestId } from '../ids.js';
import { INBOUND_QUEUE_BYTES, MAX_REPLY_BYTES } from '../limits.js';
import { answerText } from './answerText.js';
import { EnvelopeReader, EnvelopeWriter } from './envelopeStreams.js';
import { RemoteError, TransportClosedError } from './peerErrors.js';
import { refuseTooLarge } from './requestSize.js';
import type { CloseReason, Transport } from './transport.js';

/** What a {@link Peer} tells whoever owns it. */
export interface PeerHandlers {
  /** A request; a WireError thrown or rejected goes to the other side as it is, anything else as `internalError`. */
  request(method: string, params: unknown): unknown;
  /** A notification. Must not throw. */
  notification(method: string, params: unknown): void;
  /** A message that is not JSON-RPC; `detail` is the parser's text. */
  malformed(detail: string): void;
  /** An answer to a request that was never sent. */
  strayAnswer(): void;
  /** A request handler failed with something that is no WireError. */
  fault(method: string, error: unknown): void;
  /** The other side sends nothing more and still takes answers; whoever owns the peer closes it. */
  ended(): void;
  /** Called once, after everything that was read before the close was handed over. Pending requests are rejected after it. */
  closed(reason: CloseReason): void;
}

/** How a {@link Peer} hands messages over. */
export interface PeerOptions {
  /**
   * Hands notifications over as they are read, ahead of answers that wait in the library's queue. For a side whose
   * notifications carry their own order; the library's queue costs a turn of the event loop.
   */
  readonly directNotifications?: boolean;
}

/** Requests of ours carry ids from 1; the library counts from 0. */
const ID_OFFSET = 1;
/** Messages handed over in one turn of the event loop: the library alone hands over one, and many small calls would wait for turns. */
const MESSAGES_A_TURN = 16;
/** Messages read and not handed over yet at which reading stops, and goes on. */
const QUEUE_HIGH_WATER = 2048;
const QUEUE_LOW_WATER = 512;

const isRequestEnvelope = (envelope: Envelope): envelope is Extract<Envelope, { kind: 'request' }> =>
  envelope.kind === 'request';

/**
 * JSON-RPC over a transport, both ways: requests are paired with their answers, ids are echoed exactly, handlers run side
 * by side. When the transport closes, everything that was read is handed over first, and then `closed` is told.
 */
export class Peer {
  /** What it was made over. */
  readonly transport: Transport;
  readonly #handlers: PeerHandlers;
  readonly #options: PeerOptions;
  readonly #connection: MessageConnection;
  readonly #reader = new EnvelopeReader();
  /** Library id of an inbound request → its id on the wire. The library would confuse two requests that share an id. */
  readonly #inbound = new Map<number, { readonly wireId: RequestId; readonly bytes: number }>();
  #inboundBytes = 0;
  /** Params of requests of ours, encoded when their size was looked at. */
  readonly #encoded = new WeakMap<object, string>();
  readonly #afterReply = new WeakMap<object, (sent: boolean) => void>();
  #whenAnswered: (() => void)[] = [];
  #nextInboundId = 1;
  #sentRequests = 0;
  /** Messages given to the library's queue and not handled yet, and what they hold. */
  #queued = 0;
  #queuedBytes = 0;
  readonly #sizes = new WeakMap<Message, number>();
  /** Messages behind the one the library has. */
  readonly #backlog: Message[] = [];
  /** The library has a message that it has not handed over, or whose turn it is. */
  #libraryHasOne = false;
  #closeReason: CloseReason | undefined;
  #inputEnded = false;
  #finished = false;
  readonly #holds = new Set<string>();

  /** Takes over a transport that was not started yet; nothing is read before `start`. */
  constructor(transport: Transport, handlers: PeerHandlers, options: PeerOptions = {}) {
    this.transport = transport;
    this.#handlers = handlers;
    this.#options = options;
    const complain = (text: string): void => handlers.fault('', new Error(text));
    const logger: Logger = { error: complain, warn: complain, info: () => {}, log: () => {} };
    const writer = new EnvelopeWriter((message) => this.#write(message));
    this.#connection = createMessageConnection(this.#reader, writer, logger, {
      messageStrategy: {
        handleMessage: (message, next) => this.#takeTurn(message, async (given) => next(given)),
      },
    });
    this.#connection.onRequest((method, params) => this.#handle(method, params));
    this.#connection.onNotification((method, params) => handlers.notification(method, params));
    this.#connection.listen();
  }

  /** Begins reading. To be called once. */
  start(): void {
    this.transport.start({
      message: (text) => this.#receive(text),
      drained: () => this.drained?.(),
      ended: () => {
        this.#inputEnded = true;
        this.#finishIfDrained();
      },
      closed: (reason) => {
        this.#closeReason = reason;
        this.#finishIfDrained();
      },
    });
  }

  /** Set by whoever queues bulk output on this transport. */
  drained: (() => void) | undefined;

  /** Stops reading until `releaseReading` was called for every reason. What was read already is still handed over. */
  holdReading(reason: string): void {
    if (this.#holds.size === 0) this.transport.pause();
    this.#holds.add(reason);
  }

  /** Takes one reason back, and reads again when none is left. */
  releaseReading(reason: string): void {
    if (this.#holds.delete(reason) && this.#holds.size === 0) this.transport.resume();
  }

  /** Requests that were read and not answered yet. */
  get unanswered(): number {
    return this.#inbound.size;
  }

  /** Characters of the messages that carried them. */
  get unansweredBytes(): number {
    return this.#inboundBytes;
  }

  /** Settles when every request that was read is answered, or the transport has closed. */
  answered(): Promise<void> {
    if (this.#inbound.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenAnswered.push(resolve));
  }

  /** The transport has closed: no request can be sent, and no answer comes. */
  get closed(): boolean {
    return this.#closeReason !== undefined;
  }

  /** Largest message the other side takes, where it is less than MAX_MESSAGE_BYTES. */
  maxRequestBytes: number | undefined;

  /**
   * Sends a request. Rejects with RemoteError, with TransportClosedError when the answer cannot come any more, and with
   * RequestTooLargeError when it was not sent.
   */
  async request(method: string, params: unknown): Promise<unknown> {
    if (this.#closeReason !== undefined) throw new TransportClosedError(this.#closeReason);
    if (typeof params === 'object' && params !== null) {
      const encoded = JSON.stringify(params);
      const refused = refuseTooLarge(method, params, encoded, this.maxRequestBytes);
      if (refused !== undefined) throw refused;
      this.#encoded.set(params, encoded);
    }
    try {
      // The library would make a positional list of null.
      return params === undefined || params === null
        ? await this.#connection.sendRequest(method)
        : await this.#connection.sendRequest(method, params);
    } catch (error) {
      if (this.#closeReason !== undefined && this.#finished) throw new TransportClosedError(this.#closeReason);
      if (error instanceof ResponseError) throw new RemoteError(error.code, error.message, error.data);
      throw error;
    }
  }

  /** Sends a notification. Never throws; after the close it does nothing. */
  notify(method: string, params: unknown): void {
    this.transport.send(JSON.stringify({ method, params }));
  }

  /** Sends one message that was encoded by the caller; for the path where copies count. */
  sendEncoded(message: string | Uint8Array): void {
    this.transport.send(message);
  }

  /** Sends an error answer that belongs to no request, with id -1 as the base protocol has it. */
  answerMalformed(message: string, data: unknown): void {
    this.transport.send(JSON.stringify({ error: { code: ErrorCode.invalidRequest, message, data }, id: -1 }));
  }

  /** Runs `action` right after the answer was handed to the transport: with this result object, or an error in its place. */
  afterReply(result: object, action: (sent: boolean) => void): void {
    this.#afterReply.set(result, action);
  }

  /** Sends what is queued, then closes the transport. Requests that are pending reject with TransportClosedError. */
  close(reason?: CloseReason): void {
    this.transport.close(reason);
  }

  /** Closes the transport at once and drops what is queued. */
  abort(reason?: CloseReason): void {
    this.transport.abort(reason);
  }

  #receive(text: string): void {
    const envelope = decodeEnvelope(text);
    switch (envelope.kind) {
      case 'malformed':
        this.#handlers.malformed(envelope.detail);
        return;
      case 'notification':
        if (this.#options.directNotifications === true) {
          this.#handlers.notification(envelope.method, envelope.params);
          return;
        }
        // The library would act on `$/` notifications by itself; here they are notifications like any other.
        if (envelope.method.startsWith('$/')) {
          this.#handlers.notification(envelope.method, envelope.params);
          return;
        }
        break;
      case 'result':
      case 'error':
        if (
          typeof envelope.id !== 'number' ||
          envelope.id < ID_OFFSET ||
          envelope.id >= this.#sentRequests + ID_OFFSET
        ) {
          this.#handlers.strayAnswer();
          return;
        }
        break;
      case 'request':
        break;
      default:
        envelope satisfies never;
    }
    this.#queued += 1;
    this.#queuedBytes += text.length;
    if (this.#queued >= QUEUE_HIGH_WATER || this.#queuedBytes >= INBOUND_QUEUE_BYTES) this.holdReading('queue');
    const message = this.#toLibrary(envelope, text.length);
    this.#sizes.set(message, text.length);
    if (this.#libraryHasOne) this.#backlog.push(message);
    else this.#giveToLibrary(message);
  }

  #giveToLibrary(message: Message): void {
    this.#libraryHasOne = true;
    this.#reader.deliver(message);
  }

  /** Hands over the message the library has, and those behind it; the close is told when the last one was handed over. */
  async #takeTurn(message: Message, next: (message: Message) => Promise<void>): Promise<void> {
    const handled = [this.#handOver(message, next)];
    for (const behind of this.#backlog.splice(0, MESSAGES_A_TURN - 1)) handled.push(this.#handOver(behind, next));
    const later = this.#backlog.shift();
    if (later === undefined) this.#libraryHasOne = false;
    else this.#giveToLibrary(later);
    this.#finishIfDrained();
    await Promise.all(handled);
  }

  #handOver(message: Message, next: (message: Message) => Promise<void>): Promise<void> {
    this.#queued -= 1;
    this.#queuedBytes -= this.#sizes.get(message) ?? 0;
    if (this.#queued <= QUEUE_LOW_WATER && this.#queuedBytes <= INBOUND_QUEUE_BYTES / 2) this.releaseReading('queue');
    return next(message);
  }

  #toLibrary(envelope: Exclude<Envelope, { kind: 'malformed' }>, bytes: number): Message {
    if (isRequestEnvelope(envelope)) {
      const id = this.#nextInboundId++;
      this.#inbound.set(id, { wireId: envelope.id, bytes });
      this.#inboundBytes += bytes;
      return { jsonrpc: '2.0', id, method: envelope.method, params: envelope.params } as Message;
    }
    if (envelope.kind === 'notification') {
      return { jsonrpc: '2.0', method: envelope.method, params: envelope.params } as Message;
    }
    const id = Number(envelope.id) - ID_OFFSET;
    return envelope.kind === 'result'
      ? ({ jsonrpc: '2.0', id, result: envelope.result ?? null } as Message)
      : ({ jsonrpc: '2.0', id, error: envelope.error } as Message);
  }

  async #handle(method: string, params: unknown): Promise<unknown> {
    try {
      return await this.#handlers.request(method, params);
    } catch (error) {
      if (error instanceof WireError) return new ResponseError(error.code, error.message, error.data);
      this.#handlers.fault(method, error);
      return new ResponseError(ErrorCode.internal, `${method} failed by a fault of the server`, {
        reason: 'internalError',
      });
    }
  }

  #write(message: Message): void {
    if (Message.isRequest(message)) {
      this.#sentRequests += 1;
      const { method, params } = message;
      const encoded = params === undefined ? undefined : this.#encoded.get(params);
      const id = Number(message.id) + ID_OFFSET;
      this.transport.send(
        encoded === undefined
          ? JSON.stringify({ id, method, params })
          : `{"id":${id},"method":${JSON.stringify(method)},"params":${encoded}}`,
      );
      return;
    }
    if (!Message.isResponse(message)) return;
    const asked = this.#inbound.get(Number(message.id));
    if (asked === undefined) return;
    this.#inbound.delete(Number(message.id));
    this.#inboundBytes -= asked.bytes;
    this.#answer(encodeRequestId(asked.wireId), message);
    if (this.#inbound.size === 0) this.#tellAnswered();
  }

  #answer(id: string, message: ResponseMessage): void {
    if (message.error !== undefined) {
      this.transport.send(`{"error":${JSON.stringify(message.error)},"id":${id}}`);
      return;
    }
    const answer = answerText(id, message.result, MAX_REPLY_BYTES);
    this.transport.send(answer.fits ? answer.text : tooLarge(id, answer.length));
    if (typeof message.result === 'object' && message.result !== null)
      this.#afterReply.get(message.result)?.(answer.fits);
  }

  #tellAnswered(): void {
    const waiting = this.#whenAnswered;
    this.#whenAnswered = [];
    for (const tell of waiting) tell();
  }

  #finishIfDrained(): void {
    if (this.#finished || this.#queued > 0) return;
    if (this.#closeReason === undefined) {
      if (this.#inputEnded) {
        this.#inputEnded = false;
        this.#handlers.ended();
      }
      return;
    }
    this.#finished = true;
    this.#inbound.clear();
    this.#inboundBytes = 0;
    this.#tellAnswered();
    this.#handlers.closed(this.#closeReason);
    this.#connection.dispose();
  }
}

/** The error that is sent in the place of a result of this length. */
function tooLarge(id: string, length: number | undefined): string {
  const size = length === undefined ? 'more bytes than a string holds' : `${length} bytes`;
  const { code, message, data } = new WireError(
    'replyTooLarge',
    `the answer has ${size}, at most ${MAX_REPLY_BYTES} are sent`,
    { limitBytes: MAX_REPLY_BYTES },
  );
  return `{"error":${JSON.stringify({ code, message, data })},"id":${id}}`;
}
