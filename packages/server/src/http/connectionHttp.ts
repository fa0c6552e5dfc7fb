/** The http requests of one connection: how many at a time, the ids of those that stream, and their end with it. */
import {
  clampTimerMs,
  encodeBase64,
  limits,
  type ParamsOf,
  type ResultOf,
  WireError,
  withPayload,
} from '@exec-server/protocol';
import PQueue from 'p-queue';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import { BodyStream } from './bodyStream.js';
import { Collector } from './collector.js';
import type { Hop } from './hop.js';
import { httpInput, invalid } from './httpInput.js';
import { HttpJob } from './httpJob.js';
import { type HttpReply, perform } from './perform.js';

type HttpParams = ParamsOf<'http/request'>;
type HttpResult = ResultOf<'http/request'>;

/** A request on its way. */
interface Order {
  readonly context: HandlerContext;
  /** The request; what is waited for holds nothing of its body any more once it has gone out. */
  readonly take: () => Hop;
  readonly follow: boolean;
  readonly requestId: string;
  readonly job: HttpJob;
  /** Lets go of everything the connection holds for it. */
  readonly finish: () => void;
}

export class ConnectionHttp {
  /** Requests that wait for their answer, buffered bodies included. */
  readonly #requests = new PQueue({ concurrency: limits.HTTP_REQUESTS_PER_CONNECTION });
  /** Large bodies in memory, from their first byte to their answer. */
  readonly #bodies = new PQueue({ concurrency: limits.CONCURRENT_FILE_REQUESTS });
  /** Request ids of the streams that have not sent their last message. */
  readonly #streams = new Set<string>();

  /** Throws, or answers with, WireError. */
  request(context: HandlerContext, params: HttpParams): Parked<HttpResult> {
    const { files, server, parking } = context;
    if (files.ended) throw new WireError('sessionEnded', 'the connection of this request has ended');
    const hop = httpInput(params, server.serverEnv);
    const { requestId, streamResponse: isStreamed = false, timeoutMs, redirectPolicy } = params;
    if (isStreamed) this.#reserve(requestId);
    const job = new HttpJob({
      url: hop.url.href,
      timeoutMs: typeof timeoutMs === 'number' ? clampTimerMs(timeoutMs) : undefined,
      clock: server.clock,
    });
    const disown = files.own(job);
    const finish = (): void => {
      job.finish();
      disown();
      if (isStreamed) this.#streams.delete(requestId);
    };
    const order: Order = { context, take: once(hop), follow: redirectPolicy !== 'stop', requestId, job, finish };
    const answer = isStreamed ? this.#streamed(order) : this.#buffered(order);
    const told = answer.catch((error: unknown) => {
      const wireError = job.wireError(error);
      finish();
      throw wireError;
    });
    return parking.park(told, () => void job.end());
  }

  #buffered(order: Order): Promise<HttpResult> {
    const { job, finish, context } = order;
    const whole = async (): Promise<HttpResult> => {
      const reply = await this.#reply(order);
      const collector = new Collector(reply.body);
      const check = (): void => {
        const failure = reply.body.failure();
        if (failure !== undefined) throw failure;
        // An answer that is made has to be sent, or the line of large answers stands still.
        job.signal.throwIfAborted();
        job.finish();
      };
      const result = (): HttpResult => {
        check();
        finish();
        return withPayload({ ...headOf(reply), bodyBase64: encodeBase64(collector.bytes) }, 'bodyBase64');
      };
      if (await collector.readSmall()) return result();
      return await this.#bodies.add(async () => {
        await collector.readAll();
        // From here on it waits for the client alone, which is not what the time is for.
        check();
        return await unparked(context.files.host.bulk.make(result));
      });
    };
    return job.race(this.#requests.add(whole, { signal: job.signal }));
  }

  async #streamed(order: Order): Promise<HttpResult> {
    const { context, job, requestId, finish } = order;
    const { pushes, afterReply } = context;
    const { body, ...head } = await job.race(this.#requests.add(() => this.#reply(order), { signal: job.signal }));
    // Its failure is told by the last message.
    body.stream.on('error', () => {});
    const stream = new BodyStream(requestId, body, { ready: (source) => pushes.ready(source), over: finish });
    const abandon = (): void => {
      if (!job.abandoned) return;
      pushes.remove(stream);
      body.cancel();
    };
    job.signal.addEventListener('abort', abandon);
    const result = { ...headOf(head), bodyBase64: '' };
    afterReply(result, (sent) => {
      if (sent) return stream.start();
      body.cancel();
      finish();
    });
    return result;
  }

  async #reply({ context, take, follow, job }: Order): Promise<HttpReply> {
    const reply = await perform(context.server.httpAgents, take(), { follow, signal: job.signal });
    job.headCame();
    return reply;
  }

  #reserve(requestId: string): void {
    if (this.#streams.has(requestId)) {
      throw invalid('requestId', `http/request streamResponse requestId \`${requestId}\` is already active`);
    }
    if (this.#streams.size >= limits.HTTP_STREAMS_PER_CONNECTION) {
      const message = `${this.#streams.size} http responses of this connection are streamed`;
      throw new WireError('tooManyRequests', message, { limit: limits.HTTP_STREAMS_PER_CONNECTION });
    }
    this.#streams.add(requestId);
  }
}

/** Gives it once, and holds it no longer then. */
function once(hop: Hop): () => Hop {
  let held: Hop | undefined = hop;
  return () => {
    const given = held;
    held = undefined;
    if (given === undefined) throw new Error('the http request was taken twice');
    return given;
  };
}

function headOf({ status, headers }: Pick<HttpReply, 'status' | 'headers'>): Pick<HttpResult, 'status' | 'headers'> {
  return { status, headers: [...headers] };
}

async function unparked<T>(made: T | Parked<T>): Promise<T> {
  let settled = made;
  while (settled instanceof Parked) settled = await settled.answer;
  return settled;
}
