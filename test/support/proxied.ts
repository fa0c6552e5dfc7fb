/** A WebSocket server behind a fault proxy, and a client that reaches it through the proxy. */
import { type Client, connect } from '@exec-server/client';
import { createExecServer, type ExecServer, type ExecServerOptions } from '@exec-server/server';
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from '@exec-server/testing';
import { expect } from 'vitest';
import type { ClientOptions } from './links.js';

export interface Proxied {
  readonly client: Client;
  readonly server: ExecServer;
  readonly proxy: FaultProxy;
  expectClean(): Promise<void>;
}

export async function joinByProxy(
  options: { server?: ExecServerOptions; client?: ClientOptions; proxy?: Omit<FaultProxyOptions, 'target'> } = {},
): Promise<Proxied> {
  const server = createExecServer(options.server);
  const { url } = await server.listen();
  const proxy = await startFaultProxy({ target: url, ...options.proxy });
  const client = await connect({ ...options.client, url: proxy.url });
  return {
    client,
    server,
    proxy,
    expectClean: async () => {
      await client.close();
      await proxy.close();
      await server.close();
      expect(server.gauges()).toMatchObject({ connections: 0, sessions: 0, processes: 0, pendingRequests: 0 });
    },
  };
}
