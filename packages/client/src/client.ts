/** What callers hold: the public calls of a session. */
import {
  type EnvironmentInfo,
  isRequestMethod,
  type ParamsOf,
  type ResultOf,
  type SessionId,
  sessionId,
} from '@exec-server/protocol';
import { listReply, type ProcessList } from './callGuards.js';
import { type CallableMethod, type CallOptions, notSupported } from './calls.js';
import { ClientError } from './errors.js';
import { FileCalls } from './files/fileCalls.js';
import { FileSystem } from './files/fileSystem.js';
import { WatchHub } from './files/watching.js';
import type { ClientGauges } from './gauges.js';
import { type HttpOptions, httpRequest, type HttpResponse } from './http/httpRequest.js';
import { BODY_DELTA, HttpResponses } from './http/responses.js';
import { type ClientState, type CommonOptions, publicState, type ServerInfo } from './options.js';
import { attachAll, attachProcess } from './process/attachProcess.js';
import { ProcessHandle } from './process/processHandle.js';
import { type RunHost, type RunOptions, runProcess, type RunResult } from './process/run.js';
import { type SpawnedProcess, type SpawnOptions, spawnProcess } from './process/spawn.js';
import { type StartOptions, startParams } from './process/startParams.js';
import { repeatStart, startProcess } from './process/startProcess.js';
import { StdinQueues } from './process/stdinQueues.js';
import type { ProcessRecord } from './registry/processRecord.js';
import { roundTrip } from './roundTrip.js';
import { isObject } from './shapes.js';
import type { Session, StateListener } from './session.js';
import { randomId } from './randomId.js';

/**
 * A session on an exec server. Calls and starts wait while a lost connection is being restored; processes and their output
 * are not affected by a cut. When recovery fails, or after `close`, every handle and every later call fails with the reason.
 */
export class Client implements AsyncDisposable {
  readonly #session: Session;
  readonly #errorOnGap: boolean;
  #closing: Promise<void> | undefined;
  readonly #stdin: StdinQueues;
  readonly #fs: FileSystem;
  readonly #responses = new HttpResponses();

  /** @internal Use `connect`. */
  constructor(session: Session, options: Pick<CommonOptions, 'errorOnGap'>) {
    this.#session = session;
    this.#stdin = new StdinQueues(session.calls);
    this.#errorOnGap = options.errorOnGap ?? false;
    const watches = new WatchHub();
    session.notices.register('fs/changed', watches);
    const label = session.dialer.label;
    const calls = new FileCalls({ calls: session.calls, server: session.server, label });
    this.#fs = new FileSystem(calls, watches, session.clock);
    session.notices.register(BODY_DELTA, this.#responses);
  }

  /** The files of the server's host. */
  get fs(): FileSystem {
    return this.#fs;
  }

  /**
   * A secret: whoever knows it can take up the session. Pass it as `resumeSessionId` to go on in another program. That of an
   * observer is the id it came with.
   */
  get sessionId(): SessionId {
    return sessionId(this.#session.server.sessionId);
  }

  /**
   * Gives read-only access to the session, and nothing more: hand it to those who shall only look. They pass it as
   * `resumeSessionId` with `attach: 'observe'`. Undefined where the server has no observers.
   */
  get observeId(): string | undefined {
    return this.#session.server.observeId;
  }

  /** Name, version and limits of the server; undefined on a foreign server. */
  get serverInfo(): ServerInfo | undefined {
    return this.#session.server.extended;
  }

  /** What the server says about its host; absent members are unknown. `call('environment/info')` asks again. */
  get environmentInfo(): Partial<EnvironmentInfo> {
    return this.#session.server.environmentInfo ?? {};
  }

  /**
   * Where the client stands: `recovering` while a lost connection is being restored, in which calls wait; `failed` and
   * `closed` are final.
   */
  get state(): ClientState {
    return publicState(this.#session.state);
  }

  /** Why the client failed; undefined unless `state` is `failed`. */
  get failure(): ClientError | undefined {
    const { state } = this.#session;
    return state.name === 'failed' ? state.error : undefined;
  }

  /** Tells each change of `state` from now on, with the error when it is `failed`; the returned function ends that. */
  onState(listener: StateListener): () => void {
    return this.#session.onState(listener);
  }

  /**
   * Starts a process. A start whose answer is lost in a cut takes place once: it is sent again, and answered with the
   * process if that is there. Rejects with DUPLICATE_PROCESS for an id in use, SERVER_ERROR (`data.reason`, as
   * `programNotFound`) when the server refuses. A start that is aborted or runs out of time is terminated: at once
   * without a `processId`, else as soon as it is known that the process of this id is its own. Iterate an adopted process
   * at once to get all that the server has kept.
   *
   * @example
   * ```ts
   * const job = await client.start({ argv: ['sh', '-c', 'echo one; echo two >&2; exit 3'] });
   * for await (const event of job) {
   *   if (event.type === 'output') console.log(event.stream, event.seq, event.bytes.length);
   *   if (event.type === 'exited') console.log('exit code', event.exitCode);
   * }
   * ```
   */
  async start(options: StartOptions, call: CallOptions = {}): Promise<ProcessHandle> {
    const processId = options.processId ?? randomId();
    const params = startParams(options, processId, options.cwd ?? (await this.#defaultCwd(call)));
    const known = options.ifExists === 'adopt' ? this.#session.registry.get(processId) : undefined;
    if (known !== undefined) {
      await repeatStart(this.#session.calls, params, call);
      return this.#handle(known, known.afterSeq);
    }
    const record = this.#session.newRecord(processId);
    const wanted = { params, freshId: options.processId === undefined };
    const release = await startProcess(this.#session, record, wanted, call);
    if (release !== undefined) this.#session.clock.timer(0, release);
    return this.#handle(record, 0);
  }

  /**
   * Runs a command to its end. A non-zero exit is a result, and so is a timeout of its own (`timedOut`). Rejects when the
   * command cannot start, when the client fails while it runs, and with ABORTED.
   *
   * @example
   * ```ts
   * const result = await client.run(['git', 'status', '--short'], { cwd: '/srv/repo', timeoutMs: 30_000 });
   * if (result.exitCode === 0) console.log(result.text());
   * else console.error(result.text('stderr'));
   * ```
   */
  run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    const { clock } = this.#session;
    const host: RunHost = {
      clock,
      start: (start, call) => this.start(start, call),
      isConnected: () => this.#session.state.name === 'ready',
      isExtended: this.serverInfo !== undefined,
      requireExtended: (what) => this.#requireExtended(what),
    };
    return runProcess(host, argv, options);
  }

  /**
   * Starts a process as an object in the manner of Node's `spawn` or Bun's: web streams, `exited`, `kill`. Its stdin is a
   * pipe unless `stdin: 'none'`. Resolves when the program runs; rejects as `start` does.
   *
   * @example
   * ```ts
   * const child = await client.spawn(['sort']);
   * const writer = child.stdin!.getWriter();
   * await writer.write('pear\napple\n');
   * await writer.close();
   * console.log(await new Response(child.stdout).text(), (await child.exited).exitCode);
   * ```
   */
  async spawn(argv: readonly string[], options: SpawnOptions = {}): Promise<SpawnedProcess> {
    return await spawnProcess((start, call) => this.start(start, call), argv, options);
  }

  /**
   * The processes of the session, also those of other clients before this one, as long as the server keeps them.
   * `leftovers`: look for what exited ones left running. NOT_SUPPORTED on foreign servers.
   */
  async list(options: { readonly leftovers?: boolean | undefined } & CallOptions = {}): Promise<ProcessList> {
    const { leftovers, ...call } = options;
    const params = leftovers === undefined ? {} : { leftovers };
    return await this.#session.calls.call({ method: 'process/list', params, guard: listReply }, call);
  }

  /**
   * A handle for a process this session already has, beginning after `afterSeq` (default 0: from its first event). Rejects
   * with SERVER_ERROR when the session does not have it. Iterate it at once to get all that the server has kept.
   */
  async attach(processId: string, options: { readonly afterSeq?: number } & CallOptions = {}): Promise<ProcessHandle> {
    const { afterSeq = 0, ...call } = options;
    const { record, release } = await attachProcess(this.#session, processId, afterSeq, call);
    this.#session.clock.timer(0, release);
    return this.#handle(record, afterSeq);
  }

  /**
   * Handles for all processes of the session, by id, each beginning after its entry in `after` (default 0: from its first
   * event): with stored cursors another program goes on where the last one was. Nothing is skipped in silence: a process
   * of `after` that the server has let go of is there too, its events reject with OUTPUT_LOST, and `wait` says how it
   * ended where that is known. Iterate the handles at once and side by side, to get all that the server has kept.
   * NOT_SUPPORTED on foreign servers.
   *
   * @example
   * ```ts
   * const client = await connect({ url, resumeSessionId, epoch });
   * for (const [id, handle] of await client.attachAll({ after: cursors })) void readToTheEnd(id, handle);
   * ```
   */
  async attachAll(
    options: { readonly after?: Readonly<Record<string, number>> | undefined } & CallOptions = {},
  ): Promise<Map<string, ProcessHandle>> {
    const { after = {}, ...call } = options;
    const attached = await attachAll(this.#session, after, call);
    this.#session.clock.timer(0, () => {
      for (const { release } of attached) release();
    });
    return new Map(attached.map(({ record, afterSeq }) => [record.processId, this.#handle(record, afterSeq)]));
  }

  /**
   * An http request made by the server, from where it stands. Resolves with status and headers; any status is a result.
   * Rejects with HTTP_FAILED where there is no answer, REQUEST_TIMEOUT, ABORTED, OUTCOME_UNKNOWN when the connection is
   * lost before the answer (the request is not repeated), SERVER_ERROR when the server refuses it, and NOT_SUPPORTED
   * where it makes none. A cut ends the body with HTTP_FAILED. Foreign servers answer nothing else until the request has
   * an answer: pass `timeoutMs` there.
   *
   * @example
   * ```ts
   * const response = await client.http('http://127.0.0.1:8080/health', { timeoutMs: 5_000 });
   * console.log(response.status, await response.text());
   * ```
   */
  http(url: string | URL, options: HttpOptions = {}): Promise<HttpResponse> {
    return httpRequest(this.#session, this.#responses, url, options);
  }

  /**
   * How long the server takes to answer, in ms: from the moment the question goes out, the time of a recovery not
   * included. Rejects as any call does.
   */
  ping(options?: CallOptions): Promise<number> {
    return roundTrip(this.#session, options);
  }

  /** What this client holds in memory at the moment, and what waits in it. */
  gauges(): ClientGauges {
    return {
      ...this.#session.gauges(),
      stdinQueuedBytes: this.#stdin.queuedBytes,
      httpQueuedBytes: this.#responses.queuedBytes,
    };
  }

  /**
   * Any method of the protocol, for what has no method here. Results are passed on as the server gave them; foreign
   * servers lack members of ours. A process started this way has no handle until `attach`, and is held back when 2 MiB of
   * its output wait for one. INVALID_ARGUMENT for what is no method of the protocol.
   */
  async call<M extends CallableMethod>(method: M, params: ParamsOf<M>, options?: CallOptions): Promise<ResultOf<M>> {
    // What a program without types asks for.
    const asked: string = method;
    if (!isRequestMethod(asked) || asked === 'initialize') {
      const message = `method cannot be used: the protocol has no ${asked} to call; nothing was sent`;
      throw new ClientError('INVALID_ARGUMENT', message, { argument: 'method' });
    }
    // The method table says what the server answers; what the client itself computes with has guards.
    const guard = (value: unknown): ResultOf<M> | undefined => (value ?? undefined) as ResultOf<M> | undefined;
    return await this.#session.calls.call({ method, params, guard, ...waiting(method, params) }, options);
  }

  /**
   * Ends the session: its processes are killed, and the server program too where this client started it. Over a transport
   * that was lost the session ends with its lease. An observer only leaves: the session and its processes are not touched.
   * Handles, and calls that no answer has reached, fail with CLOSED. Never rejects; resolves when nothing of the connection is
   * left.
   */
  close(): Promise<void> {
    this.#closing ??= this.#session.end('close');
    return this.#closing;
  }

  /**
   * Leaves the session as it is: its processes go on until its lease ends, and `resumeSessionId` takes it up again. Where
   * this client started the server, that ends with it. Handles and pending calls fail with CLOSED. Never rejects.
   */
  detach(): Promise<void> {
    this.#closing ??= this.#session.end('detach');
    return this.#closing;
  }

  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #handle(record: ProcessRecord, afterSeq: number): ProcessHandle {
    const { calls, clock } = this.#session;
    const requireExtended = (what: string): void => this.#requireExtended(what);
    const host = { calls, clock, errorOnGap: this.#errorOnGap, requireExtended };
    return new ProcessHandle(record, this.#stdin.make(record.processId), host, afterSeq);
  }

  /** Decided by the first answer to `initialize`: every later one is of the same life of the server. */
  #requireExtended(what: string): void {
    if (this.serverInfo === undefined) throw notSupported(this.#session.dialer.label, what);
  }

  async #defaultCwd(call: CallOptions): Promise<string> {
    await this.#session.ready(call, 'process/start');
    const known = this.environmentInfo.cwd;
    if (typeof known === 'string') return known;
    const { cwd }: { readonly cwd?: unknown } = await this.call('environment/info', {}, call);
    if (typeof cwd === 'string') return cwd;
    throw new ClientError(
      'NOT_SUPPORTED',
      `${this.#session.dialer.label} does not say its working directory; pass cwd`,
    );
  }
}

/** A foreign server answers nothing else while a read waits. */
function waiting(method: CallableMethod, params: unknown): { readonly extension?: string } {
  const waits = method === 'process/read' && isObject(params) && Number(params['waitMs'] ?? 0) > 0;
  return waits ? { extension: 'a read that waits beside other calls (waitMs)' } : {};
}
