/** A client in memory whose server says something else than it did: a foreign one, or one that means harm. */
import { type Client, connect } from '@exec-server/client';
import { memoryTransportPair, type Transport } from '@exec-server/protocol';
import { createExecServer, type ExecServer } from '@exec-server/server';
import { expect } from 'vitest';

type Members = Record<string, unknown>;

/** Gives the result that the client gets for a call. */
export type Rewrite = (method: string, result: Members, params: Members) => Members;

export interface Rewritten {
  readonly client: Client;
  readonly server: ExecServer;
  expectClean(): Promise<void>;
}

/** As the oldest servers answer: the session alone. */
export const asForeign: Rewrite = (method, { sessionId, ...result }) =>
  method === 'initialize' ? { sessionId } : { sessionId, ...result };

export async function joinRewritten(rewrite: Rewrite): Promise<Rewritten> {
  const server = createExecServer();
  const dial = (): Transport => {
    const [serverEnd, clientEnd] = memoryTransportPair();
    // `accept` never rejects.
    void server.accept(serverEnd);
    return rewriting(clientEnd, rewrite);
  };
  const client = await connect({ transport: dial });
  return {
    client,
    server,
    expectClean: async () => {
      await client.close();
      await server.close();
      expect(server.gauges()).toMatchObject({ connections: 0, sessions: 0, pendingRequests: 0 });
    },
  };
}

function rewriting(transport: Transport, rewrite: Rewrite): Transport {
  const calls = new Map<unknown, { readonly method: string; readonly params: Members }>();
  const sent = (message: string | Uint8Array): void => {
    const text = typeof message === 'string' ? message : Buffer.from(message).toString();
    const { id, method, params } = JSON.parse(text) as { id?: unknown; method?: string; params?: Members };
    if (id !== undefined && method !== undefined) calls.set(id, { method, params: params ?? {} });
  };
  const came = (text: string): string => {
    const message = JSON.parse(text) as { id?: unknown; result?: Members };
    const call = calls.get(message.id);
    if (call === undefined || message.result === undefined) return text;
    calls.delete(message.id);
    return JSON.stringify({ ...message, result: rewrite(call.method, message.result, call.params) });
  };
  const handler: ProxyHandler<Transport> = {
    get(target, member) {
      if (member === 'start') {
        const start: Transport['start'] = (listener) =>
          target.start({ ...listener, message: (text) => listener.message(came(text)) });
        return start;
      }
      if (member === 'send') {
        const send: Transport['send'] = (message) => {
          sent(message);
          target.send(message);
        };
        return send;
      }
      const value: unknown = Reflect.get(target, member, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  };
  return new Proxy(transport, handler);
}
