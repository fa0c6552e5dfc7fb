/**
 * One connection: handshake, dispatch, pumps; detaches its session when the transport closes. Holds no process state.
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
  type Seq,
  type Transport,
  WireError,
} from '@exec-server/protocol';
import type { HandlerContext } from '../handlerContext.js';
import { handlers, initializeResult } from '../handlers.js';
import type { Process } from '../processes/process.js';
import { Pump } from '../processes/pump.js';
import type { ServerContext } from '../serverContext.js';
import type { Attachment, Session } from '../sessions/session.js';
import { decodeAck, decodeParams } from './decodeParams.js';
import { Dispatcher } from './dispatcher.js';
import { gate, type HandshakeEvent, type HandshakeState, handshakeStep } from './handshake.js';
import { Outbox } from './outbox.js';
import { Parking } from './parking.js';

export interface ConnectionOptions {
  /** Begins the answer to a message that does not parse; the parser's text follows after a colon. */
  readonly malformedPrefix: string;
  /** The session ends with this connection: there is no way to come back over such a transport. */
  readonly endsSession: boolean;
  /** Whether the peer may be gone without a word. */
  readonly isSilent: () => boolean;
  readonly onClosed: (connection: Connection, reason: CloseReason) => void;
}

export class Connection implements Attachment {
  readonly label: string;
  readonly #context: ServerContext;
  readonly #options: ConnectionOptions;
  readonly #peer: Peer;
  readonly #outbox: Outbox;
  readonly #dispatcher: Dispatcher;
  readonly #parking = new Parking();
  readonly #pumps = new Map<Process, Pump>();
  #state: HandshakeState = 'awaitingInitialize';
  #initializing: Promise<unknown> | undefined;
  #session: Session | undefined;
  #flowControl = false;
  #attachId: string | undefined;
  #cancelFirstReadWait: (() => void) | undefined;
  /** The peer broke the protocol; what it sent behind that is not looked at. */
  #broken = false;

  constructor(transport: Transport, context: ServerContext, options: ConnectionOptions) {
    this.label = transport.label;
    this.#context = context;
    this.#options = options;
    this.#dispatcher = new Dispatcher({ concurrentRequests: context.concurrentRequests });
    this.#outbox = new Outbox(
      { send: (frame) => transport.send(frame), queuedBytes: () => transport.queuedBytes },
      limits.OUTBOX_HIGH_WATER_BYTES,
    );
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

  follow(process: Process, { held }: { readonly held: boolean }): void {
    if (this.#state === 'closed' || this.#pumps.has(process)) return;
    const creditBytes = this.#flowControl ? limits.CREDIT_BYTES_PER_PROCESS : undefined;
    const pump = new Pump(process, {
      creditBytes,
      held,
      ready: (ready) => this.#outbox.ready(ready),
      over: (over) => this.#drop(over),
    });
    this.#pumps.set(process, pump);
    if (!held || this.#cancelFirstReadWait !== undefined) return;
    // A client that resumes and only listens gets its output after this wait.
    this.#cancelFirstReadWait = this.#context.clock.after(limits.FIRST_READ_WAIT_MS, () => {
      for (const waiting of this.#pumps.values()) waiting.goOnFrom();
    });
  }

  sessionEnded(detail: string): void {
    this.#parking.end();
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
    const { family, urgent } = requests[method];
    const decoded = decodeParams(method, params);
    const refused = gate(this.#state, family);
    if (refused !== undefined) throw new WireError(refused.reason, refused.message);
    return this.#dispatcher.dispatch(urgent, () => this.#handle(method, decoded));
  }

  #handle(method: Exclude<RequestMethod, 'initialize'>, params: unknown): unknown {
    const session = this.#session;
    if (session === undefined || session.ended) {
      throw new WireError('sessionEnded', 'the session of this connection has ended');
    }
    const context: HandlerContext = {
      server: this.#context,
      session,
      parking: this.#parking,
      readThrough: (process, afterSeq, throughSeq, reply) => this.#readThrough(process, afterSeq, throughSeq, reply),
    };
    // `decodeParams` checked the params against the schema of this very method.
    const handler = handlers[method] as (context: HandlerContext, params: unknown) => unknown;
    return handler(context, params);
  }

  async #initialize(params: unknown): Promise<unknown> {
    const decoded = decodeParams('initialize', params);
    this.#advance('initializeReceived');
    const attaching = this.#attach(decoded);
    this.#initializing = attaching.catch(() => undefined);
    try {
      const result = await attaching;
      this.#advance('initializeAnswered');
      return result;
    } catch (error) {
      this.#advance('initializeFailed');
      throw error;
    } finally {
      this.#initializing = undefined;
    }
  }

  async #attach(params: InitializeParams): Promise<object> {
    const { sessions } = this.#context;
    const resumeId = params.resumeSessionId ?? undefined;
    const peer = agreeOnVersion(params.protocolVersion ?? undefined);
    this.#attachId = params.attachId ?? undefined;
    this.#flowControl = peer.kind === 'extended' && params.extensions?.flowControl === true;
    const session =
      resumeId === undefined
        ? await sessions.create(this, params.leaseMs ?? undefined)
        : await sessions.resume(resumeId, this);
    this.#session = session;
    if (this.#state === 'closed') this.#leave(session);
    this.#context.log('info', resumeId === undefined ? 'session created' : 'session resumed', {
      client: params.clientName,
      peer: this.label,
    });
    return initializeResult(this.#context, session, resumeId !== undefined);
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
      else this.#acked(ack.processId, ack.seq);
      return;
    }
    this.#violation(`unexpected notification ${method.slice(0, 100)}`);
  }

  #acked(processId: string, seq: Seq): void {
    const process = this.#session?.processes.find(processId);
    if (process !== undefined) {
      this.#pumps.get(process)?.acked(seq);
      return;
    }
    // Expired, and its last output is still on its way.
    for (const pump of this.#pumps.values()) if (pump.process.id === processId) pump.acked(seq);
  }

  /** The client has read this process through `seq`: once the reply has left, held pushes go on behind it. */
  #readThrough(process: Process, afterSeq: Seq, throughSeq: Seq, reply: object): void {
    const pump = this.#pumps.get(process);
    if (pump?.held === true) this.#peer.afterReply(reply, () => pump.goOnFrom(throughSeq, afterSeq));
  }

  #drop(pump: Pump): void {
    this.#outbox.remove(pump);
    this.#pumps.delete(pump.process);
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
    this.#outbox.flush();
  }

  async #inputEnded(): Promise<void> {
    this.#parking.end();
    await this.#peer.answered();
    this.#peer.close({ kind: 'ended', detail: 'end of input' });
  }

  #closed(reason: CloseReason): void {
    this.#advance('transportClosed');
    this.#cancelFirstReadWait?.();
    this.#parking.end();
    for (const pump of this.#pumps.values()) {
      this.#outbox.remove(pump);
      pump.end();
    }
    this.#pumps.clear();
    if (this.#session !== undefined) this.#leave(this.#session);
    this.#options.onClosed(this, reason);
  }

  #leave(session: Session): void {
    session.detach(this);
    if (this.#options.endsSession) this.#context.sessions.end(session, 'its connection has ended');
  }
}
