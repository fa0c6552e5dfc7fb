/** A server, and raw peers that reach it over each kind of transport on which sessions are resumed. */
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { memoryTransportPair, type SocketLike, socketTransport } from '@exec-server/protocol';
import { createExecServer, type ExecServer, type ExecServerOptions } from '@exec-server/server';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import { Raw } from './raw.js';

export const rawLinks = ['memory', 'websocket'] as const;
export type RawLink = (typeof rawLinks)[number];

export const flowControl = { protocolVersion: 1, extensions: { flowControl: true } } as const;

export class RawServed {
  readonly server: ExecServer;
  readonly #link: RawLink;
  #url: string | undefined;

  constructor(link: RawLink, options: ExecServerOptions = {}) {
    this.server = createExecServer(options);
    this.#link = link;
  }

  async dial(): Promise<Raw> {
    if (this.#link === 'memory') {
      const [mine, theirs] = memoryTransportPair();
      // `accept` never rejects.
      void this.server.accept(theirs);
      return new Raw(mine);
    }
    this.#url ??= (await this.server.listen()).url;
    const socket = new WebSocket(this.#url);
    await once(socket, 'open');
    // `ws` declares its handler properties with its own event classes; the members used are the same.
    return new Raw(socketTransport(socket as unknown as SocketLike, { label: 'raw' }));
  }

  /** A peer that has shaken hands. */
  async ready(params: object = {}): Promise<Raw> {
    const raw = await this.dial();
    await raw.initialize(params);
    return raw;
  }

  async expectClean(): Promise<void> {
    await this.server.close();
    expect(this.server.gauges()).toMatchObject({
      connections: 0,
      sessions: 0,
      observers: 0,
      processes: 0,
      pendingRequests: 0,
      pendingRequestBytes: 0,
      queuedBytes: 0,
      openFiles: 0,
      stages: 0,
      watches: 0,
    });
  }
}

/** Params of `process/start`. */
export const command = (processId: string, argv: readonly string[], changes: object = {}): object => ({
  processId,
  argv,
  cwd: tmpdir(),
  env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
  tty: false,
  ...changes,
});
