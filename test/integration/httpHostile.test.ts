import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createGzip, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Raw, RawMessage } from '../support/raw.js';
import { RawServed } from '../support/rawServed.js';
import { TcpFixture } from '../support/tcpFixture.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
const OK = 'HTTP/1.1 200 OK\r\n';
const hello = Buffer.from('hello').toString('base64');

interface Asking {
  readonly served: RawServed;
  readonly raw: Raw;
  readonly params: (web: TcpFixture, more?: object) => object;
  readonly ask: (web: TcpFixture, more?: object) => Promise<RawMessage>;
}

async function asking(): Promise<Asking> {
  const served = new RawServed('memory', { env: {} });
  const raw = await served.ready();
  const params = (web: TcpFixture, more: object = {}): object => ({
    method: 'GET',
    url: `http://127.0.0.1:${web.port}/`,
    requestId: 'r',
    ...more,
  });
  return { served, raw, params, ask: (web, more) => raw.call('http/request', params(web, more)) };
}

/** The bytes of one stream in all, and what its last delta says. */
async function streamed(raw: Raw): Promise<{ bytes: number; error: unknown }> {
  let bytes = 0;
  for (;;) {
    const { method, params } = await raw.next();
    if (method !== 'http/request/bodyDelta') continue;
    bytes += Buffer.from(String(params?.['deltaBase64']), 'base64').length;
    if (params?.['done'] === true) return { bytes, error: params['error'] };
  }
}

const silent = (): Promise<TcpFixture> => TcpFixture.start(() => {});

/** Bytes of memory in use. */
function memoryMeter(): () => number {
  setFlagsFromString('--expose_gc');
  // V8 gives it to contexts that are made after the flag was set.
  const collect = runInNewContext('gc') as () => void;
  return () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
}

describe('a request that is given up', () => {
  it('leaves no connection that has not come about, whoever gave it up', async () => {
    const web = await silent();
    const url = `https://127.0.0.1:${web.port}/`;
    const timed = await asking();
    expect((await timed.ask(web, { url, timeoutMs: 100 })).error?.data?.['reason']).toBe('httpTimedOut');
    await until(() => web.open.size === 0, 'the connection of the request that timed out to end');
    timed.raw.send({ id: 1, method: 'http/request', params: timed.params(web, { url }) });
    await until(() => web.open.size === 1, 'the host to be called');
    timed.raw.transport.abort();
    await until(() => web.open.size === 0, 'it to end with the connection to the client');
    await timed.served.expectClean();
    const closing = await asking();
    closing.raw.send({ id: 1, method: 'http/request', params: closing.params(web, { url }) });
    await until(() => web.open.size === 1, 'the host to be called');
    await closing.served.expectClean();
    await until(() => web.open.size === 0, 'it to end with the server');
    await web[Symbol.asyncDispose]();
  });

  it('does not call the host again', async () => {
    const begun = await TcpFixture.answering(`${OK}content-length: 9\r\n\r\nbegun`);
    const { served, ask } = await asking();
    expect((await ask(begun, { timeoutMs: 100 })).error?.data?.['reason']).toBe('httpTimedOut');
    await until(() => begun.open.size === 0, 'the connection to end');
    const answered = await TcpFixture.answering(`${OK}content-length: 0\r\n\r\n`);
    expect((await ask(answered)).result).toMatchObject({ status: 200 });
    expect([begun.accepted, begun.open.size]).toEqual([1, 0]);
    await served.expectClean();
    await begun[Symbol.asyncDispose]();
    await answered[Symbol.asyncDispose]();
  });

  it('keeps nothing of its body while it waits for its turn', async () => {
    const used = memoryMeter();
    const web = await silent();
    const { served, raw, params, ask } = await asking();
    for (let id = 0; id < 64; id += 1) raw.send({ id, method: 'http/request', params: params(web) });
    await until(() => web.open.size === 64, 'all places to be taken');
    const bodyBase64 = Buffer.alloc(4 * MIB).toString('base64');
    const before = used();
    for (let count = 0; count < 12; count += 1) {
      const { error } = await ask(web, { method: 'POST', bodyBase64, timeoutMs: 1 });
      expect(error?.data?.['reason']).toBe('httpTimedOut');
    }
    // What the last one held goes in its own time.
    await until(() => used() - before < 24 * MIB, 'the bodies to be let go of');
    raw.transport.abort();
    await until(() => web.open.size === 0, 'the requests to end');
    await served.expectClean();
    await web[Symbol.asyncDispose]();
  });
});

describe('a body that is streamed', () => {
  it('keeps little of the request while it comes', async () => {
    const used = memoryMeter();
    const web = await TcpFixture.start((socket) => {
      let head = '';
      let received = 0;
      socket.on('data', (chunk: Buffer) => {
        received += chunk.length;
        if (head === '') head = chunk.toString('latin1');
        if (received > 8 * MIB) socket.write(`${OK}content-length: 9\r\n\r\nbegun`);
        if (received > 8 * MIB) received = 0;
      });
    });
    const { served, raw, ask } = await asking();
    const bodyBase64 = Buffer.alloc(8 * MIB).toString('base64');
    const before = used();
    for (let id = 0; id < 8; id += 1) {
      const asked = await ask(web, { method: 'POST', bodyBase64, streamResponse: true, requestId: String(id) });
      expect(asked.result).toMatchObject({ status: 200 });
    }
    // What the last one held goes in its own time.
    await until(() => used() - before < 24 * MIB, 'the bodies to be let go of');
    raw.transport.abort();
    await until(() => web.open.size === 0, 'all to end');
    await served.expectClean();
    await web[Symbol.asyncDispose]();
  });
});

describe('the end of a connection in the middle of bodies', () => {
  it('ends them all: compressed or not, streamed or buffered, taken or held back', async () => {
    const piece = gzipSync(randomBytes(4 * MIB));
    const web = await TcpFixture.start((socket) => {
      socket.once('data', (head) => {
        const isGzip = head.includes('/gzip');
        const more = (): void => {
          while (!socket.destroyed && socket.write(piece));
        };
        socket.write(`${OK}${isGzip ? 'content-encoding: gzip\r\n' : ''}content-length: 8388608\r\n\r\n`);
        // Buffered ones are left in the middle.
        if (head.includes('/part')) socket.write(piece.subarray(0, MIB));
        else socket.on('drain', more).write(piece, more);
      });
    });
    for (const how of ['cut', 'server closes'] as const) {
      const { served, raw, params } = await asking();
      const kinds = [
        ['/gzip', true],
        ['/plain', true],
        ['/gzip/part', true],
        ['/gzip/part', false],
        ['/plain/part', false],
      ] as const;
      for (const [id, [path, streamResponse]] of kinds.entries()) {
        const url = `http://127.0.0.1:${web.port}${path}`;
        raw.send({ id, method: 'http/request', params: params(web, { url, streamResponse, requestId: String(id) }) });
      }
      for (let answers = 0; answers < 3; ) if ((await raw.next()).result !== undefined) answers += 1;
      raw.transport.pause();
      await until(() => web.open.size === kinds.length, 'all to be asked');
      if (how === 'cut') raw.transport.abort();
      else raw.transport.resume();
      if (how === 'cut') await until(() => web.open.size === 0, 'all to end');
      await served.expectClean();
      await until(() => web.open.size === 0, 'all to end');
    }
    await web[Symbol.asyncDispose]();
  });

  it('leaves a bounded number of connections for later', async () => {
    const web = await TcpFixture.start((socket) => {
      socket.on('data', () => socket.write(`${OK}content-length: 5\r\n\r\nhello`));
    });
    const served = new RawServed('memory', { env: {} });
    const raws = await Promise.all([served.ready(), served.ready()]);
    for (const raw of raws) {
      for (let id = 0; id < 64; id += 1) {
        const url = `http://127.0.0.1:${web.port}/`;
        raw.send({ id, method: 'http/request', params: { method: 'GET', url, requestId: 'r' } });
      }
    }
    for (const raw of raws) for (let id = 0; id < 64; id += 1) expect((await raw.next()).result).toBeDefined();
    await until(() => web.open.size <= 64, 'the rest to end');
    await served.expectClean();
    await until(() => web.open.size === 0, 'all to end');
    await web[Symbol.asyncDispose]();
  });
});

describe('an odd answer', () => {
  it('has no body with a status that has none, whatever its headers say', async () => {
    const { served, raw, ask } = await asking();
    for (const [status, header] of [
      [304, 'content-length: 44'],
      [204, 'content-length: 44'],
      [304, 'transfer-encoding: chunked'],
    ] as const) {
      const web = await TcpFixture.answering(`HTTP/1.1 ${status} X\r\ncontent-encoding: gzip\r\n${header}\r\n\r\n`);
      expect((await ask(web)).result).toMatchObject({ status, bodyBase64: '' });
      const other = await TcpFixture.answering(`HTTP/1.1 ${status} X\r\ncontent-encoding: gzip\r\n${header}\r\n\r\n`);
      expect((await ask(other, { streamResponse: true })).result).toMatchObject({ status });
      expect(await streamed(raw)).toEqual({ bytes: 0, error: null });
      await web[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
    }
    await served.expectClean();
  });

  it('ends with its compressed data, whatever comes behind them', async () => {
    const zeros = Buffer.alloc(64 * 1024);
    const web = await TcpFixture.start((socket) => {
      const more = (): void => {
        while (!socket.destroyed && socket.write(zeros));
      };
      socket.on('drain', more).once('data', () => {
        socket.write(`${OK}content-encoding: gzip\r\n\r\n`);
        socket.write(gzipSync('hello'), more);
      });
    });
    const { served, raw, ask } = await asking();
    expect((await ask(web)).result).toMatchObject({ bodyBase64: hello });
    await until(() => web.open.size === 0, 'the connection to end');
    await ask(web, { streamResponse: true });
    expect(await streamed(raw)).toEqual({ bytes: 5, error: null });
    await until(() => web.open.size === 0, 'the connection to end');
    await served.expectClean();
    await web[Symbol.asyncDispose]();
  });

  it('is never taken for whole when it was cut, wherever that was', async () => {
    const zipped = gzipSync('hello');
    const answers = [
      Buffer.from(`${OK}content-length: 5\r\n\r\nhello`),
      Buffer.from(`${OK}transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n`),
      Buffer.concat([Buffer.from(`${OK}content-encoding: gzip\r\ncontent-length: ${zipped.length}\r\n\r\n`), zipped]),
      // Ends with its connection; the compressed data tell where they end.
      Buffer.concat([Buffer.from(`${OK}content-encoding: gzip\r\n\r\n`), zipped]),
    ];
    const web = await TcpFixture.start((socket) => {
      socket.once('data', (head: Buffer) => {
        const [, which, length] = /^GET \/(\d+)\/(\d+)/.exec(head.toString('latin1')) ?? [];
        socket.end(answers[Number(which)]?.subarray(0, Number(length)) ?? '');
      });
    });
    const { served, raw, ask } = await asking();
    for (const [which, answer] of answers.entries()) {
      const bodyAt = answer.indexOf('\r\n\r\n') + 4;
      for (let length = 0; length <= answer.length; length += 1) {
        const url = `http://127.0.0.1:${web.port}/${which}/${length}`;
        const { result, error } = await ask(web, { url });
        // Nothing compressed at all is an empty body.
        const isWhole = length === answer.length || (which === 3 && length === bodyAt);
        expect([which, length, error?.data?.['reason']]).toEqual([which, length, isWhole ? undefined : 'httpFailed']);
        if (length === answer.length) expect(result?.['bodyBase64']).toBe(hello);
        if (length < bodyAt) continue;
        expect((await ask(web, { url, streamResponse: true })).result).toMatchObject({ status: 200 });
        const { error: cut } = await streamed(raw);
        expect([which, length, cut]).toEqual([which, length, isWhole ? null : 'error decoding response body']);
      }
    }
    await served.expectClean();
    await web[Symbol.asyncDispose]();
  });

  it('is bounded as what it unpacks to', async () => {
    const total = 48 * MIB;
    const gzip = createGzip();
    const bomb: Buffer[] = [];
    gzip.on('data', (chunk: Buffer) => bomb.push(chunk));
    const zeros = Buffer.alloc(MIB);
    for (let written = 0; written < total; written += MIB) gzip.write(zeros);
    gzip.end();
    await once(gzip, 'end');
    const web = await TcpFixture.start((socket) => {
      socket.on('data', () =>
        socket.write(Buffer.concat([Buffer.from(`${OK}content-encoding: gzip\r\n\r\n`), ...bomb])),
      );
    });
    const { served, raw, ask, params } = await asking();
    expect((await ask(web)).error?.data).toMatchObject({ reason: 'replyTooLarge' });
    await until(() => web.open.size === 0, 'the connection to end');
    raw.send({ id: 1, method: 'http/request', params: params(web, { streamResponse: true }) });
    await raw.answerTo(1);
    raw.transport.pause();
    expect(served.server.gauges().queuedBytes).toBeLessThan(2 * MIB);
    raw.transport.resume();
    for (const socket of web.open) socket.end();
    expect(await streamed(raw)).toEqual({ bytes: total, error: null });
    await served.expectClean();
    await web[Symbol.asyncDispose]();
  });

  it('is refused where it is no http, has endless headers, or two lengths', async () => {
    const endless = Array.from({ length: 30 }, (_, at) => `a${at}: ${'x'.repeat(10_000)}\r\n`);
    for (const pieces of [
      ['hello\r\n\r\n'],
      [OK, ...endless],
      [`${OK}x: a\rb: c\r\ncontent-length: 0\r\n\r\n`],
      [`${OK}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`],
      ['HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ]) {
      const web = await TcpFixture.answering(...pieces);
      const { served, ask } = await asking();
      expect((await ask(web)).error?.data?.['reason']).toBe('httpFailed');
      await until(() => web.open.size === 0, 'the connection to end');
      await served.expectClean();
      await web[Symbol.asyncDispose]();
    }
  });

  it('may be preceded by others, and be followed by the end of its connection', async () => {
    const web = await TcpFixture.start((socket) => {
      socket.on('data', () => {
        socket.write('HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n');
        socket.end(`${OK}content-length: 5\r\n\r\nhello`);
      });
    });
    const { served, ask } = await asking();
    for (let count = 0; count < 20; count += 1) expect((await ask(web)).result).toMatchObject({ bodyBase64: hello });
    await served.expectClean();
    await web[Symbol.asyncDispose]();
  });
});

describe('a body that the host does not take', () => {
  it('does not hold up its answer, nor the next request', async () => {
    const web = await TcpFixture.start((socket) => {
      socket.once('data', () => {
        socket.pause();
        socket.write(`HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\n\r\nhello`);
      });
    });
    const { served, ask } = await asking();
    const bodyBase64 = Buffer.alloc(24 * MIB).toString('base64');
    for (let count = 0; count < 2; count += 1) {
      expect((await ask(web, { method: 'POST', bodyBase64 })).result).toMatchObject({ status: 413, bodyBase64: hello });
    }
    expect(web.accepted).toBe(2);
    expect((await ask(web, { method: 'POST', bodyBase64: '' })).result).toMatchObject({ status: 413 });
    await served.expectClean();
    await web[Symbol.asyncDispose]();
  });
});

describe('headers that would be misread', () => {
  it('are refused: lengths that are not the one of the body, and a second host', async () => {
    const web = await TcpFixture.answering(`${OK}content-length: 0\r\n\r\n`);
    const { served, ask } = await asking();
    const header = (...values: readonly string[]): object => ({
      headers: values.map((value) => ({ name: 'Content-Length', value })),
    });
    for (const more of [
      { method: 'POST', ...header('5') },
      { method: 'POST', bodyBase64: hello, ...header('4') },
      { method: 'GET', bodyBase64: hello, ...header('9') },
      { method: 'POST', bodyBase64: hello, ...header('5', '5') },
      { method: 'POST', bodyBase64: hello, ...header('5', '0') },
      {
        headers: [
          { name: 'host', value: 'a' },
          { name: 'Host', value: 'b' },
        ],
      },
    ]) {
      expect([more, (await ask(web, more)).error?.data?.['reason']]).toEqual([more, 'httpInvalid']);
    }
    expect((await ask(web, { method: 'POST', bodyBase64: hello, ...header('5') })).result).toMatchObject({
      status: 200,
    });
    await served.expectClean();
    await web[Symbol.asyncDispose]();
  });
});
