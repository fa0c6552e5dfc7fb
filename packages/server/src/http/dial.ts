/** How a connection to an http server comes about: directly, or through a proxy. */
import { request } from 'node:http';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Proxy } from './proxies.js';

/** How long a connection may take to come about: the host of the server would try for minutes. */
const CONNECT_TIMEOUT_MS = 60_000;

export interface Route {
  readonly url: URL;
  readonly proxy: Proxy | undefined;
}

/** The host that requests go to: a proxy passes on those to hosts without encryption. */
export function askedOrigin({ url, proxy }: Route): URL {
  return proxy !== undefined && url.protocol === 'http:' ? proxy.url : url;
}

/** Rejects with the error of the host, of the proxy, or with the reason of `signal`, which leaves nothing open. */
export async function dial(route: Route, signal: AbortSignal): Promise<Socket> {
  const { url, proxy } = route;
  const limit = new AbortController();
  const end = (): void => limit.abort(signal.reason);
  const timer = setTimeout(
    () => limit.abort(new Error('the connection took too long to come about')),
    CONNECT_TIMEOUT_MS,
  );
  signal.addEventListener('abort', end);
  try {
    if (signal.aborted) end();
    if (proxy === undefined || url.protocol === 'http:') return await connectTo(askedOrigin(route), limit.signal);
    const tunnel = await openTunnel(url, proxy, limit.signal);
    return await opened(connectTls({ socket: tunnel, ...tlsOptions(url) }), 'secureConnect', limit.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}

function connectTo(url: URL, signal: AbortSignal): Promise<Socket> {
  const address = { host: hostOf(url), port: portOf(url), noDelay: true, keepAlive: true };
  if (url.protocol === 'http:') return opened(connectTcp(address), 'connect', signal);
  return opened(connectTls({ ...address, ...tlsOptions(url) }), 'secureConnect', signal);
}

async function openTunnel(url: URL, proxy: Proxy, signal: AbortSignal): Promise<Socket> {
  const socket = await connectTo(proxy.url, signal);
  const target = `${url.hostname}:${portOf(url)}`;
  const asking = request({
    method: 'CONNECT',
    path: target,
    headers: {
      host: target,
      connection: 'keep-alive',
      ...(proxy.authorization === undefined ? {} : { 'proxy-authorization': proxy.authorization }),
    },
    createConnection: () => socket,
    signal,
  });
  try {
    return await new Promise<Socket>((resolve, reject) => {
      asking.once('error', (error) => reject(signal.aborted ? reasonOf(signal) : error));
      asking.once('connect', ({ statusCode }, _, head) => {
        if (statusCode !== 200) reject(new Error(`the proxy answered CONNECT with ${statusCode ?? 'nothing'}`));
        else if (head.length > 0) reject(new Error('the proxy sent something before the host could'));
        else resolve(socket);
      });
      asking.end();
    });
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function opened(socket: Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const end = (): void => void socket.destroy(reasonOf(signal));
    const settled = (): void => signal.removeEventListener('abort', end);
    // It stays: a socket that fails before somebody else has it must not end the server.
    socket.on('error', (error) => {
      settled();
      reject(error);
    });
    socket.once('close', () => {
      settled();
      reject(new Error('the connection was closed before it had come about'));
    });
    socket.once(event, () => {
      settled();
      resolve(socket);
    });
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
}

function tlsOptions(url: URL): { host: string; servername?: string; ALPNProtocols: string[] } {
  const host = hostOf(url);
  // An address is no server name; it is checked against the certificate as it is.
  return { host, ALPNProtocols: ['http/1.1'], ...(isIP(host) === 0 ? { servername: host } : {}) };
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
}
