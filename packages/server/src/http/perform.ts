/** A request with its redirects: from the first hop to the answer that is the result. */
import { limits } from '@exec-server/protocol';
import type { HttpAgents } from './agents.js';
import { type Answer, exchange, type ReceivedHeader } from './exchange.js';
import { type Hop, redirectOf } from './hop.js';
import { decodeAnswer, type ResponseBody } from './responseBody.js';

export interface HttpReply {
  readonly status: number;
  readonly headers: readonly ReceivedHeader[];
  readonly body: ResponseBody;
}

/** There is no answer. */
export class HopFailed extends Error {
  /** The address that was asked last. */
  readonly url: string;

  constructor(url: string, cause: unknown) {
    super('the http request has no answer', { cause });
    this.url = url;
  }
}

export class TooManyRedirects extends Error {}

/** Rejects with HopFailed or TooManyRedirects. */
export async function perform(
  agents: HttpAgents,
  first: Hop,
  { follow, signal }: { readonly follow: boolean; readonly signal: AbortSignal },
): Promise<HttpReply> {
  let hop = first;
  for (let redirects = 0; ; redirects += 1) {
    const answer = await ask(agents, hop, signal);
    const next = follow ? redirectOf(hop, answer.status, locationOf(answer.headers)) : undefined;
    if (next === undefined) return { status: answer.status, ...decodeAnswer(answer, hop.method) };
    answer.body.destroy();
    if (redirects === limits.MAX_HTTP_REDIRECTS) throw new TooManyRedirects();
    hop = next;
  }
}

async function ask(agents: HttpAgents, hop: Hop, signal: AbortSignal): Promise<Answer> {
  try {
    return await exchange(agents, hop, signal);
  } catch (error) {
    throw new HopFailed(hop.url.href, error);
  }
}

function locationOf(headers: readonly ReceivedHeader[]): string | undefined {
  return headers.find(({ name }) => name === 'location')?.value;
}
