/** Stands in for the model: each request of the agent waits until the test says what the model answers. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CalledTool, callEvents, finalEvents, type ToolCall } from './modelEvents.js';

/** What the agent reports about one call: text, or parts such as images. */
export type ToolOutput = string | readonly Readonly<Record<string, unknown>>[];

interface RequestBody {
  readonly tools?: readonly { readonly name?: string }[];
  readonly input: readonly { readonly type: string; readonly call_id?: string; readonly output?: ToolOutput }[];
}

interface Waiting {
  readonly body: RequestBody;
  readonly response: ServerResponse;
}

export class ScriptedModel {
  /** Names of the tools that the agent offers, once it has asked. */
  tools: readonly string[] = [];
  /** Everything the agent put before the model with its last request, as JSON text. */
  input = '';
  readonly #server: Server;
  readonly #waiting: Waiting[] = [];
  #wakes: (() => void)[] = [];
  #failure: Error | undefined;
  #calls = 0;
  #responses = 0;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#take(request, response).catch((error: unknown) => this.fail(error as Error));
    });
  }

  static async start(): Promise<ScriptedModel> {
    const model = new ScriptedModel();
    await new Promise<void>((resolve) => model.#server.listen(0, '127.0.0.1', resolve));
    return model;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** The model calls these tools at once; the agent's reports on them, in the order of the calls. */
  async turn(...calls: readonly ToolCall[]): Promise<ToolOutput[]> {
    const called = await this.call(...calls);
    return Promise.all(called.map((call) => this.reportOn(call)));
  }

  /** What the agent says about a call of the last answer, with its next request. */
  async reportOn({ callId, name }: CalledTool): Promise<ToolOutput> {
    const { body } = await this.#next();
    const item = body.input.find((item) => item.call_id === callId && item.output !== undefined);
    if (item?.output === undefined) throw new Error(`the agent reports nothing about its call of ${name}`);
    return item.output;
  }

  /** As `turn`, without waiting for the reports. */
  async call(...calls: readonly ToolCall[]): Promise<CalledTool[]> {
    const { response } = await this.#next();
    this.#waiting.shift();
    const called = calls.map((call) => ({ ...call, callId: `call_${(this.#calls += 1)}` }));
    this.#answer(response, (id) => callEvents(id, called));
    return called;
  }

  /** The model says its last words, upon which the agent ends. */
  async finish(text = 'finished'): Promise<void> {
    const { response } = await this.#next();
    this.#waiting.shift();
    this.#answer(response, (id) => finalEvents(id, text));
  }

  /** Whoever waits for the agent, now or later, is told this instead. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#wakeAll();
  }

  async close(): Promise<void> {
    this.fail(new Error('the model is closed'));
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The request that waits for its answer; it stays where it is. */
  async #next(): Promise<Waiting> {
    for (;;) {
      const [first] = this.#waiting;
      if (first !== undefined) return first;
      if (this.#failure !== undefined) throw this.#failure;
      await new Promise<void>((resolve) => this.#wakes.push(resolve));
    }
  }

  #wakeAll(): void {
    for (const wake of this.#wakes.splice(0)) wake();
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    if (request.method !== 'POST' || request.url !== '/v1/responses') {
      response.writeHead(404).end();
      return;
    }
    const body = JSON.parse(Buffer.concat(pieces).toString('utf8')) as RequestBody;
    this.tools = (body.tools ?? []).flatMap(({ name }) => name ?? []);
    this.input = JSON.stringify(body.input);
    this.#waiting.push({ body, response });
    this.#wakeAll();
  }

  #answer(response: ServerResponse, events: (id: string) => string): void {
    this.#responses += 1;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(events(`response_${this.#responses}`));
  }
}
