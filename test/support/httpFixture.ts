/** An http server on loopback whose every answer a test can foretell. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  /** Name and value in turn, as they came. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

const GZIPPED = gzipSync('hello '.repeat(100));

export class HttpFixture implements AsyncDisposable {
  readonly #server: Server;
  readonly url: string;
  readonly seen: SeenRequest[] = [];
  /** Bytes of `/flood` that its socket has taken, over all requests. */
  floodedBytes = 0;
  /** Answers that were cut before their end. */
  cutShort = 0;
  /** Requests of `/hang`, which is never answered, that are open. */
  hanging = 0;

  private constructor(server: Server) {
    this.#server = server;
    // It listens on TCP.
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => void this.#answer(request, response));
  }

  static async start(): Promise<HttpFixture> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new HttpFixture(server);
  }

  /** Connections that are open. */
  get connections(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.sendDate = false;
    // A peer that leaves is counted below.
    response.on('error', () => {});
    response.once('close', () => {
      if (!response.writableEnded) this.cutShort += 1;
    });
    const { method = '', url = '', rawHeaders } = request;
    let body = '';
    for await (const chunk of request.setEncoding('latin1')) body += String(chunk);
    const seen: SeenRequest = { method, url, rawHeaders, body };
    this.seen.push(seen);
    const [path = '', query = ''] = url.split('?');
    const parameters = new URLSearchParams(query);
    switch (path) {
      case '/hello':
        response.writeHead(200, ['content-type', 'text/plain', 'X-Multi', 'a', 'X-Multi', 'b']).end('hello');
        return;
      case '/echo':
        response.writeHead(200).end(JSON.stringify(seen));
        return;
      case '/redirect':
        response
          .writeHead(Number(parameters.get('status') ?? 302), { location: parameters.get('to') ?? '/hello' })
          .end();
        return;
      case '/circle':
        response.writeHead(302, { location: '/circle' }).end();
        return;
      case '/drip':
        response.writeHead(200);
        for (const piece of ['a', 'b', 'c']) {
          response.write(piece);
          await new Promise((resolve) => setTimeout(resolve, 30));
        }
        response.end();
        return;
      case '/cut':
        response.writeHead(200, { 'content-length': '100' }).write('part', () => response.destroy());
        return;
      case '/gzip':
        response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': String(GZIPPED.length), 'x-a': '1' });
        response.end(method === 'HEAD' ? '' : GZIPPED);
        return;
      case '/gzip-cut':
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(GZIPPED.subarray(0, GZIPPED.length - 12));
        return;
      case '/gzip-empty':
        response.writeHead(200, { 'content-encoding': 'gzip' }).end();
        return;
      case '/latin1':
        response.writeHead(200, ['x-a', 'é', 'x-b', Buffer.from('é').toString('latin1'), 'x-c', ' padded ']).end();
        return;
      case '/big':
        response.writeHead(200).end(Buffer.alloc(Number(parameters.get('bytes')), 'x'));
        return;
      case '/flood':
        await this.#flood(response, Number(parameters.get('bytes')));
        return;
      case '/hang':
        this.hanging += 1;
        response.once('close', () => (this.hanging -= 1));
        return;
      case '/hang-body':
        this.hanging += 1;
        response.once('close', () => (this.hanging -= 1));
        response.writeHead(200).write('begun');
        return;
      default:
        response.writeHead(404).end('nf');
    }
  }

  /** Writes numbered KiBs only while the socket takes them. */
  async #flood(response: ServerResponse, bytes: number): Promise<void> {
    let wake = (): void => {};
    response.on('drain', () => wake()).once('close', () => wake());
    response.writeHead(200);
    for (let at = 0; at < bytes; at += 1024) {
      if (response.destroyed) return;
      const free = response.write(String(at).padEnd(1024, '.'));
      this.floodedBytes += 1024;
      if (!free) await new Promise<void>((resolve) => (wake = resolve));
    }
    response.end();
  }
}

/** What `/flood` answers with. */
export function floodText(bytes: number): string {
  return Array.from({ length: bytes / 1024 }, (_, index) => String(index * 1024).padEnd(1024, '.')).join('');
}
