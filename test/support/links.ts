/** A server and a client joined by each kind of transport, so that the same bodies run over all of them. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Client, connect, type ConnectOptions } from '@exec-server/client';
import { memoryTransportPair } from '@exec-server/protocol';
import { createExecServer, type ExecServer, type ExecServerOptions } from '@exec-server/server';
import { expect } from 'vitest';

export const links = ['memory', 'stdio', 'websocket'] as const;
export type Link = (typeof links)[number];

export interface Joined {
  readonly client: Client;
  /** Undefined over stdio, where the server is a program of its own. */
  readonly server: ExecServer | undefined;
  /** Closes both sides and checks that nothing is left: sessions, connections, children. */
  expectClean(): Promise<void>;
}

export const serverProgram = fileURLToPath(new URL('../../packages/cli/bin/exec-server.js', import.meta.url));
export const stdioCommand = [process.execPath, serverProgram, '--listen', 'stdio'] as const;

export type ClientOptions = Partial<Omit<ConnectOptions, 'url' | 'command' | 'transport'>>;

export async function join(
  link: Link,
  options: { server?: ExecServerOptions; client?: ClientOptions } = {},
): Promise<Joined> {
  const childrenBefore = new Set(childrenOf(process.pid));
  const expectNoChildren = (): void =>
    expect(childrenOf(process.pid).filter((pid) => !childrenBefore.has(pid))).toEqual([]);
  if (link === 'stdio') {
    const client = await connect({ ...options.client, command: [...stdioCommand] });
    return {
      client,
      server: undefined,
      expectClean: async () => {
        await client.close();
        expectNoChildren();
      },
    };
  }
  const server = createExecServer(options.server);
  let client: Client;
  if (link === 'memory') {
    const [serverEnd, clientEnd] = memoryTransportPair();
    void server.accept(serverEnd);
    client = await connect({ ...options.client, transport: clientEnd });
  } else {
    const { url } = await server.listen();
    client = await connect({ ...options.client, url });
  }
  return {
    client,
    server,
    expectClean: async () => {
      await client.close();
      await server.close();
      const files = { openFiles: 0, stages: 0, watches: 0 };
      const nothing = { connections: 0, sessions: 0, processes: 0, pendingRequests: 0, ...files };
      expect(server.gauges()).toMatchObject(nothing);
      expectNoChildren();
    },
  };
}

/** Live children of a process, zombies included. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((candidate) => parentOf(candidate) === pid);
}

/** Undefined when there is no such process. */
export function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    // It ended between the listing and the read.
    return undefined;
  }
}

/** Whether a process exists and is no zombie. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
  } catch {
    // No such process.
    return false;
  }
}

/** Program and arguments of a process, blank between them; empty when it has ended. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').join(' ').trim();
  } catch {
    // No such process.
    return '';
  }
}
