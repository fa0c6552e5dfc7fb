/** A client connected to a scripted server. */
import type { Client } from '../client.js';
import { connectWith } from '../connect.js';
import type { CommonOptions } from '../options.js';
import type { ProcessHandle } from '../process/processHandle.js';
import type { ClientInternals } from '../session.js';
import { extendedReply, type FakeConnection, FakeServer } from './fakeServer.js';

export interface Connected {
  readonly server: FakeServer;
  readonly client: Client;
  readonly connection: FakeConnection;
}

export interface ConnectFakeOptions {
  readonly options?: CommonOptions;
  readonly internals?: ClientInternals;
  /** Answer to `initialize`. Default: an extended server with session `s1`. */
  readonly reply?: unknown;
  /** Give the client one transport instead of a way to make them. */
  readonly once?: boolean;
}

export async function connectFake({
  options = {},
  internals = {},
  reply = extendedReply('s1'),
  once = false,
}: ConnectFakeOptions = {}): Promise<Connected> {
  const server = new FakeServer();
  // No jitter: the next attempt of a recovery begins at once.
  const connecting = connectWith(
    { ...options, transport: once ? server.dial() : server.dial },
    { random: () => 0, ...internals },
  );
  const connection = await server.accept();
  await connection.handshake(reply);
  return { server, client: await connecting, connection };
}

/** Timers of a client that is ready and has nothing to do: the next look at its connection. */
export const IDLE_TIMERS = 1;

/** The session id alone, as the oldest servers answer. */
export const foreignReply = { sessionId: 's1', environmentInfo: { cwd: 'file:///srv' } };

/** Starts a process with a stdin and answers the start. */
export async function startFake(client: Client, connection: FakeConnection, processId: string): Promise<ProcessHandle> {
  const starting = client.start({ argv: ['x'], processId, stdin: 'pipe' });
  const [handle] = await Promise.all([starting, connection.start()]);
  return handle;
}

/** Lets everything that is ready run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
}
