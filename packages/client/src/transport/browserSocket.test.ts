import { afterEach, describe, expect, it, vi } from 'vitest';
import { host } from './browserHost.js';

/** What a browser's WebSocket does, as a test tells it. */
class FakeSocket {
  static made: FakeSocket[] = [];
  static refuse: Error | undefined;
  /** Whether the other side answers a close. */
  answers = true;
  readyState = 0;
  bufferedAmount = 0;
  binaryType = 'blob';
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  onerror: ((event: object) => void) | null = null;
  readonly sent: unknown[] = [];
  readonly closes: (readonly [number | undefined, string | undefined])[] = [];
  readonly #closeListeners: (() => void)[] = [];
  readonly url: string;
  readonly protocols: readonly string[];

  constructor(url: string, protocols: readonly string[]) {
    if (FakeSocket.refuse !== undefined) throw FakeSocket.refuse;
    this.url = url;
    this.protocols = protocols;
    FakeSocket.made.push(this);
  }

  addEventListener(_type: 'close', listener: () => void): void {
    this.#closeListeners.push(listener);
  }

  send(message: unknown): void {
    this.sent.push(message);
  }

  /** As the standard has it: of the codes below 3000 a page may say 1000 alone, and the text has at most 123 bytes. */
  close(code?: number, reason?: string): void {
    if (code !== undefined && code !== 1000 && (code < 3000 || code > 4999)) throw new RangeError(`code ${code}`);
    if (Buffer.byteLength(reason ?? '') > 123) throw new RangeError('the text is too long');
    this.closes.push([code, reason]);
    if (this.answers) this.end(1000);
    else this.readyState = 2;
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  end(code: number): void {
    this.readyState = 3;
    this.onclose?.({ code, reason: '' });
    for (const listener of this.#closeListeners) listener();
  }
}

function only(): FakeSocket {
  const [socket] = FakeSocket.made;
  if (socket === undefined || FakeSocket.made.length !== 1) throw new Error('one socket expected');
  return socket;
}

function dial(url: string, token?: string, signal = new AbortController().signal) {
  vi.stubGlobal('WebSocket', FakeSocket);
  return host.openSocket({ url: new URL(url), label: 'the server', token, signal });
}

afterEach(() => {
  vi.unstubAllGlobals();
  FakeSocket.made = [];
  FakeSocket.refuse = undefined;
});

describe('a connection of a page', () => {
  it('offers no subprotocol without a token, since a server that selects none would be refused', async () => {
    const dialing = dial('http://127.0.0.1:7000/');
    only().open();
    await dialing;
    expect(only()).toMatchObject({ url: 'ws://127.0.0.1:7000/', protocols: [] });
  });

  it('carries the token among the subprotocols', async () => {
    const dialing = dial('wss://host/', 'secret');
    only().open();
    await dialing;
    expect(only()).toMatchObject({ url: 'wss://host/', protocols: ['exec-server.v1', 'bearer.c2VjcmV0'] });
  });

  it('carries messages both ways, and tells the close', async () => {
    const dialing = dial('ws://host/');
    only().open();
    const { transport, gone } = await dialing;
    const seen: unknown[] = [];
    // Before anybody listens.
    only().onmessage?.({ data: 'early' });
    transport.start({
      message: (text) => seen.push(text),
      drained: () => {},
      ended: () => {},
      closed: (reason) => seen.push(reason.kind),
    });
    only().onmessage?.({ data: new TextEncoder().encode('binary').buffer });
    transport.send('hello');
    expect(only().sent).toEqual(['hello']);
    only().end(1006);
    await gone;
    expect(seen).toEqual(['early', 'binary', 'cut']);
  });

  it('closes with what a page may say, whatever the reason', async () => {
    const dialing = dial('ws://host/');
    only().open();
    const { transport } = await dialing;
    transport.start({ message: () => {}, drained: () => {}, ended: () => {}, closed: () => {} });
    transport.close({ kind: 'violation', detail: 'ö'.repeat(200) });
    expect(only().closes).toEqual([[4002, 'ö'.repeat(61)]]);
  });

  it('is gone as soon as it is given up, though the browser goes on waiting for the close of the other side', async () => {
    const dialing = dial('ws://host/');
    only().open();
    const { transport, gone } = await dialing;
    only().answers = false;
    const seen: unknown[] = [];
    const message = (text: string): void => void seen.push(text);
    transport.start({ message, drained: () => {}, ended: () => {}, closed: (reason) => seen.push(reason.kind) });
    transport.abort({ kind: 'cut', detail: 'no sign of life' });
    await gone;
    only().onmessage?.({ data: 'late' });
    only().end(1006);
    expect(seen).toEqual(['cut']);
  });

  it('that does not come about says what to look at, and may be tried again', async () => {
    const dialing = dial('ws://host/', 'secret');
    only().end(1006);
    await expect(dialing).rejects.toMatchObject({
      code: 'CONNECT_FAILED',
      data: { url: 'the server', retryable: true },
      message: expect.stringMatching(/the server.*--allow-origin.*token/) as unknown,
    });
  });

  it('that the browser forbids is refused for good', async () => {
    FakeSocket.refuse = new Error('An insecure WebSocket connection may not be initiated');
    await expect(dial('ws://host/')).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(/insecure/) as unknown,
    });
  });

  it('is closed when nobody waits for it any more', async () => {
    const stop = new AbortController();
    const dialing = dial('ws://host/', undefined, stop.signal);
    stop.abort();
    await expect(dialing).rejects.toMatchObject({ code: 'CONNECT_FAILED' });
    expect(only().readyState).toBe(3);
  });

  it('is not there where there is no WebSocket', async () => {
    vi.stubGlobal('WebSocket', undefined);
    const request = { url: new URL('ws://host/'), label: 'x', token: undefined, signal: new AbortController().signal };
    await expect(host.openSocket(request)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
  });
});

describe('what a browser lacks', () => {
  it('is named, with what to do instead', async () => {
    expect(() => host.childDialer({ command: ['exec-server'] })).toThrow(/no server program.*`url`/);
    await expect(host.localDisk()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
  });
});
