/**
 * One connection: handshake, dispatch; detaches its session when the transport closes. Holds no process state; what it pushes
 * is in `Pushes`.
 */
import {
  agreeOnVersion,
  type CloseReason,
  type InitializeParams,
  isRequestMethod,
  limits,
  Peer,
  type RequestMethod,
  requests,
  type Transport,
  WireError,
} from '@exec-server/protocol';
import { ConnectionFiles } from '../files/connectionFiles.js';
import type { HandlerContext } from '../handlerContext.js';
import { handlers, initializeResult } from '../handlers.js';
import { ConnectionHttp } from '../http/connectionHttp.js';
import type { Process } from '../processes/process.js';
import type { ServerContext } from '../serverContext.js';
import type { Attachment, Session } from '../sessions/session.js';
import { type AttachWish, attachWish } from './attachWish.js';
import { BulkReplies } from './bulkReplies.js';
import { decodeAck, decodeParams } from './decodeParams.js';
import { Dispatcher } from './dispatcher.js';
import { gate, type HandshakeEvent, type HandshakeState, handshakeStep } from './handshake.js';
import { Parking } from './parking.js';
import { Pushes } from './pushes.js';

export interface ConnectionOptions {
  /** Begins the answer to a message that does not parse; the parser's text follows after a colon. */
  readonly malformedPrefix: string;
  /** The session ends with this connection: there is no way to come back over such a transport. */
  readonly endsSession: boolean;
  /** Whether the peer may make http requests from here. */
  readonly http: boolean;
  /** Whether the peer may be gone without a word. */
  readonly isSilent: () => boolean;
  readonly onClosed: (connection: Connection, reason: CloseReason) => void;
}

/** How long a peer that lost its session has to take the close before it is cut. */
const CLOSE_PATIENCE_MS = 1_000;

export class Connection implements Attachment {
  readonly label: string;
  readonly #context: ServerContext;
  readonly #options: ConnectionOptions;
  readonly #peer: Peer;
  readonly #pushes: Pushes;
  readonly #dispatcher: Dispatcher;
  readonly #parking = new Parking();
  readonly #bulk: BulkReplies;
  readonly #fileReplies: BulkReplies;
  readonly #files: ConnectionFiles;
  readonly #http: ConnectionHttp | undefined;
  #state: HandshakeState = 'awaitingInitialize';
  #initializing: Promise<unknown> | undefined;
  #session: Session | undefined;
  #flowControl = false;
  #attachId: string | undefined;
  #observes = false;
  /** Why the session is no longer this connection's. */
  #lost: string | undefined;
  #cancelClose: (() => void) | undefined;
  /** The peer broke the protocol; what it sent behind that is not looked at. */
  #broken = false;

  constructor(transport: Transport, context: ServerContext, options: ConnectionOptions) {
    this.label = transport.label;
    this.#context = context;
    this.#options = options;
    this.#dispatcher = new Dispatcher({ concurrentRequests: context.concurrentRequests });
    this.#pushes = new Pushes(transport, context.clock);
    this.#bulk = new BulkReplies({
      hasRoom: () => transport.queuedBytes < limits.REPLY_HIGH_WATER_BYTES,
      afterReply: (result, action) => this.#peer.afterReply(result, action),
    });
    this.#fileReplies = new BulkReplies({
      hasRoom: () => transport.queuedBytes < limits.FILE_REPLY_HIGH_WATER_BYTES,
      afterReply: (result, action) => this.#peer.afterReply(result, action),
    });
    this.#files = new ConnectionFiles({
      bulk: this.#fileReplies,
      isFull: () => transport.queuedBytes >= limits.REPLY_HIGH_WATER_BYTES,
      notify: (method, params) => this.#peer.notify(method, params),
      hasRoom: () => transport.queuedBytes < limits.OUTBOX_HIGH_WATER_BYTES,
    });
    this.#http = options.http ? new ConnectionHttp() : undefined;
    this.#peer = new Peer(transport, {
      request: (method, params) => this.#request(method, params),
      notification: (method, params) => this.#notification(method, params),
      malformed: (detail) =>
        this.#peer.answerMalformed(`${options.malformedPrefix}: ${detail}`, { reason: 'malformedMessage' }),
      strayAnswer: () => this.#violation('an answer to a request that was never sent'),
      fault: (method, error) => context.log('error', 'a request failed by a fault of the server', { method, error }),
      ended: () => void this.#inputEnded(),
      closed: (reason) => this.#closed(reason),
    });
    this.#peer.drained = () => this.#drained();
  }

  start(): void {
    this.#peer.start();
  }

  get hasSession(): boolean {
    return this.#session !== undefined;
  }

  get attachId(): string | undefined {
    return this.#attachId;
  }

  get isSilent(): boolean {
    return this.#options.isSilent();
  }

  /** Requests that are not answered yet. */
  get pendingRequests(): number {
    return this.#dispatcher.pending;
  }

  /** The bytes of the messages that carried them. */
  get pendingRequestBytes(): number {
    return this.#peer.unansweredBytes;
  }

  /** Bytes given to the transport that it has not sent yet, and those fetched for it from the disk. */
  get queuedBytes(): number {
    return this.#peer.transport.queuedBytes + this.#pushes.fetchedBytes;
  }

  /** Open file handles. */
  get openFiles(): number {
    return this.#files.handles.size;
  }

  get watches(): number {
    return this.#files.watches.size;
  }

  follow(process: Process, how: { readonly held: boolean }): void {
    this.#pushes.follow(process, how);
  }

  sessionEnded(detail: string, stopping: boolean): void {
    this.#parking.end();
    const kind = stopping ? 'stopped' : 'closed';
    // `answered` never rejects.
    void this.#peer.answered().then(() => this.#peer.close({ kind, detail }));
  }

  replaced(detail: string): void {
    this.#lost = detail;
    this.abort(detail);
  }

  takenOver(detail: string): void {
    this.#lost = detail;
    this.#pushes.end();
    this.#parking.end();
    // Never rejects. The client that has the session now may go on with what is staged.
    void this.#files.end();
    this.#cancelClose = this.#context.clock.after(CLOSE_PATIENCE_MS, () => this.abort(detail));
    // `answered` never rejects.
    void this.#peer.answered().then(() => this.#peer.close({ kind: 'closed', detail }));
  }

  settled(): Promise<void> {
    return this.#dispatcher.idle();
  }

  /** Cuts the connection; its session is detached. */
  abort(detail: string): void {
    this.#peer.abort({ kind: 'closed', detail });
  }

  async #request(method: string, params: unknown): Promise<unknown> {
    if (!isRequestMethod(method)) {
      throw new WireError('unknownMethod', `exec-server stub does not implement \`${method}\` yet`);
    }
    this.#holdReading();
    // Nothing is dispatched before `initialize` has settled; whoever waits here goes on in the order of arrival.
    if (this.#initializing !== undefined && method !== 'initialize') await this.#initializing;
    if (this.#broken) throw new WireError('sessionEnded', 'the connection ended: the peer broke the protocol');
    if (method === 'initialize') return this.#initialize(params);
    const { family, urgent, observers } = requests[method];
    const decoded = decodeParams(method, params);
    const refused = gate(this.#state, family);
    if (refused !== undefined) throw new WireError(refused.reason, refused.message);
    if (this.#observes && !observers) {
      throw new WireError(
        'readOnly',
        `${method} is not for observers, and this connection observes the session; ask the client that controls it`,
      );
    }
    if (!urgent) this.#refuseTooManyBytes();
    return this.#dispatcher.dispatch(urgent, () => this.#handle(method, decoded));
  }

  #refuseTooManyBytes(): void {
    const { unanswered, unansweredBytes } = this.#peer;
    if (unanswered < 2 || unansweredBytes <= limits.PENDING_REQUEST_BYTES) return;
    throw new WireError('tooManyRequests', `the unanswered requests of this connection have ${unansweredBytes} bytes`, {
      limitBytes: limits.PENDING_REQUEST_BYTES,
    });
  }

  #handle(method: Exclude<RequestMethod, 'initialize'>, params: unknown): unknown {
    const session = this.#session;
    if (this.#lost !== undefined) throw new WireError('takenOver', this.#lost);
    if (session === undefined || session.ended) {
      throw new WireError('sessionEnded', 'the session of this connection has ended');
    }
    const context: HandlerContext = {
      server: this.#context,
      session,
      parking: this.#parking,
      pushes: this.#pushes,
      bulk: this.#bulk,
      files: this.#files,
      http: this.#http,
      afterReply: (reply, action) => this.#peer.afterReply(reply, action),
    };
    // `decodeParams` checked the params against the schema of this very method.
    const handler = handlers[method] as (context: HandlerContext, params: unknown) => unknown;
    return handler(context, params);
  }

  async #initialize(params: unknown): Promise<unknown> {
    const decoded = decodeParams('initialize', params);
    this.#advance('initializeReceived');
    const attaching = this.#attach(decoded);
    // Whoever waits goes on in a later turn: the answer leaves first.
    const settled = attaching.then(nextTurn, nextTurn).then(() => {
      if (this.#initializing === settled) this.#initializing = undefined;
    });
    this.#initializing = settled;
    try {
      const result = await attaching;
      this.#advance('initializeAnswered');
      return result;
    } catch (error) {
      this.#advance('initializeFailed');
      throw error;
    }
  }

  async #attach(params: InitializeParams): Promise<object> {
    const { attachId, protocolVersion, extensions } = params;
    const wish = attachWish(params, this.#context.epoch);
    const peer = agreeOnVersion(protocolVersion ?? undefined);
    this.#attachId = attachId ?? undefined;
    this.#flowControl = peer.kind === 'extended' && extensions?.flowControl === true;
    this.#observes = wish.kind === 'observe';
    this.#pushes.servesTo({ controls: !this.#observes, flowControl: this.#flowControl });
    const session = await this.#sessionFor(wish);
    this.#session = session;
    // An observer that is slow to read must hold nobody back.
    if (!this.#observes) this.#files.join(session.files.order);
    if (this.#state === 'closed') this.#leave(session);
    this.#context.log(
      'info',
      { create: 'session created', resume: 'session resumed', observe: 'session observed' }[wish.kind],
      {
        client: params.clientName,
        peer: this.label,
      },
    );
    const id = wish.kind === 'observe' ? wish.id : session.id;
    const http = this.#http !== undefined;
    return initializeResult(this.#context, session, { id, resumed: wish.kind !== 'create', http });
  }

  #sessionFor(wish: AttachWish): Session | Promise<Session> {
    const { sessions } = this.#context;
    switch (wish.kind) {
      case 'create':
        return sessions.create(this, wish.leaseMs);
      case 'resume':
        return sessions.resume(wish.id, this, wish.takeOver);
      case 'observe':
        return sessions.observe(wish.id, this);
      default:
        return wish satisfies never;
    }
  }

  #notification(method: string, params: unknown): void {
    if (method === 'initialized') {
      // Behind an `initialize` that is still being answered it waits; the answer decides.
      if (this.#initializing === undefined) this.#advance('initializedReceived');
      else void this.#initializing.then(() => this.#advance('initializedReceived'));
      return;
    }
    if (method === 'process/ack' && this.#flowControl) {
      const ack = decodeAck(params);
      if (ack === undefined) this.#violation('process/ack with params that do not fit');
      else if (this.#observes) this.#violation('process/ack from an observer');
      else this.#pushes.acked(this.#session?.processes.find(ack.processId), ack.processId, ack.seq);
      return;
    }
    this.#violation(`unexpected notification ${method.slice(0, 100)}`);
  }

  #advance(event: HandshakeEvent): void {
    const step = handshakeStep(this.#state, event);
    switch (step.kind) {
      case 'to':
        this.#state = step.state;
        return;
      case 'ignore':
        return;
      case 'refuse':
        throw new WireError(step.reason, step.message);
      case 'violation':
        this.#violation(step.message);
        return;
      default:
        step satisfies never;
    }
  }

  #violation(detail: string): void {
    if (this.#broken) return;
    this.#broken = true;
    this.#context.log('warn', 'connection ended: the peer broke the protocol', { peer: this.label, detail });
    this.#peer.abort({ kind: 'violation', detail });
  }

  /** Answers that nobody takes hold back further requests. */
  #holdReading(): void {
    if (this.#peer.transport.queuedBytes >= limits.REPLY_HIGH_WATER_BYTES) this.#peer.holdReading('unsent');
  }

  #drained(): void {
    if (this.#peer.transport.queuedBytes < limits.REPLY_HIGH_WATER_BYTES / 2) this.#peer.releaseReading('unsent');
    this.#bulk.roomCame();
    this.#pushes.drained();
    // Output of processes goes first.
    this.#fileReplies.roomCame();
    this.#files.drained();
  }

  async #inputEnded(): Promise<void> {
    this.#parking.end();
    await this.#peer.answered();
    this.#peer.close({ kind: 'ended', detail: 'end of input' });
  }

  #closed(reason: CloseReason): void {
    this.#advance('transportClosed');
    this.#cancelClose?.();
    this.#bulk.end();
    this.#fileReplies.end();
    this.#parking.end();
    this.#pushes.end();
    // Never rejects; a resume waits for the requests, which wait for what is closed here.
    void this.#files.end();
    if (this.#session !== undefined) this.#leave(this.#session);
    this.#options.onClosed(this, reason);
  }

  #leave(session: Session): void {
    if (this.#observes) {
      session.unobserve(this);
      return;
    }
    session.detach(this);
    if (this.#options.endsSession) this.#context.sessions.end(session, 'its connection has ended');
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
