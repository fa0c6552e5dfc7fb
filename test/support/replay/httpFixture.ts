/** The small HTTP server that the transcripts of `http/request` were recorded against. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface HttpFixture {
  /** Without a slash at the end. */
  readonly url: string;
  close(): Promise<void>;
}

const PAUSE_MS = 120;
const CUT_MS = 100;
const SLOW_MS = 2_000;

export async function startHttpFixture(): Promise<HttpFixture> {
  const over = new AbortController();
  const server = createServer((request, response) => {
    response.sendDate = false;
    response.shouldKeepAlive = false;
    answer(request, response, over.signal).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  // A server on an IP address has one of this shape.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve, reject) => {
        over.abort();
        server.close((error) => (error === undefined ? resolve() : reject(error)));
        server.closeAllConnections();
      }),
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
  const body = Buffer.concat((await request.toArray()) as Buffer[]).toString();
  switch (request.url) {
    case '/hello':
      response.writeHead(
        200,
        [
          ['content-type', 'text/plain'],
          ['x-multi', 'a'],
          ['x-multi', 'b'],
        ].flat(),
      );
      return end(response, 'hello');
    case '/echo':
      response.writeHead(200);
      return end(response, JSON.stringify({ method: request.method, body }));
    case '/redirect':
      response.writeHead(302, { location: '/hello' });
      response.flushHeaders();
      response.end();
      return undefined;
    case '/slow':
      await sleep(SLOW_MS, undefined, { signal });
      response.writeHead(200);
      return end(response, 'late');
    case '/drip':
      response.writeHead(200);
      for (const piece of ['a', 'b', 'c']) {
        response.write(piece);
        await sleep(PAUSE_MS, undefined, { signal });
      }
      response.end();
      return undefined;
    case '/cut':
      response.writeHead(200, { 'content-length': 100 });
      response.write('part');
      await sleep(CUT_MS, undefined, { signal });
      response.destroy();
      return undefined;
    default:
      response.writeHead(404);
      return end(response, 'nf');
  }
}

/** In a chunk of its own: the length is not told. */
function end(response: ServerResponse, body: string): void {
  response.write(body);
  response.end();
}
