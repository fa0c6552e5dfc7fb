import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { byteTransport } from './byteTransport.js';
import { memoryTransportPair } from './memoryTransport.js';
import { type SocketLike, socketTransport } from './socketTransport.js';
import type { TransportListener } from './transport.js';

const listener = (message: (text: string) => void = () => {}): TransportListener => ({
  message,
  drained: () => {},
  ended: () => {},
  closed: () => {},
});
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const openSocket = (): SocketLike => ({
  readyState: 1,
  bufferedAmount: 0,
  binaryType: '',
  onmessage: null,
  onclose: null,
  onerror: null,
  send: () => {},
  close: () => {},
});

describe('what a transport confirms', () => {
  it('is taken by the other end in memory', async () => {
    const [left, right] = memoryTransportPair();
    const told: string[] = [];
    left.start(listener());
    left.send('one');
    left.confirm?.(() => told.push('arrived'));
    await turn();
    expect(told).toEqual([]);
    right.start(listener((text) => told.push(text)));
    await turn();
    expect(told).toEqual(['one', 'arrived']);
    left.confirm?.(() => told.push('still'));
    expect(told).toHaveLength(2);
    await turn();
    expect(told).toEqual(['one', 'arrived', 'still']);
  });

  it('is written, over a pair of byte streams', async () => {
    const written: (() => void)[] = [];
    const sink = new Writable({ write: (_chunk, _encoding, done) => void written.push(done), highWaterMark: 1 });
    const transport = byteTransport(new PassThrough(), sink, { label: 'pipe' });
    transport.start(listener());
    const told: string[] = [];
    transport.send('one');
    transport.confirm?.(() => told.push('one'));
    transport.send(new Uint8Array([0x32]));
    transport.confirm?.(() => told.push('two'));
    await turn();
    const writeNext = async (): Promise<void> => {
      written.shift()?.();
      await turn();
    };
    expect(told).toEqual([]);
    await writeNext();
    expect(told).toEqual(['one']);
    await writeNext();
    await writeNext();
    expect(told).toEqual(['one', 'two']);
    transport.abort();
    transport.confirm?.(() => told.push('late'));
    await turn();
    expect(told).toHaveLength(2);
  });

  it('is covered by a pong that answers its ping or a later one, over a socket', () => {
    const pings: string[] = [];
    let pong = (_payload: string): void => {};
    const transport = socketTransport(openSocket(), {
      label: 'socket',
      pings: { ping: (payload) => pings.push(payload), onPong: (tell) => (pong = tell) },
    });
    const told: string[] = [];
    for (const name of ['one', 'two', 'three']) transport.confirm?.(() => told.push(name));
    expect(pings).toHaveLength(3);
    for (const payload of ['', 'x', '-1', '99', '1e0']) pong(payload);
    expect(told).toEqual([]);
    pong(pings[1] ?? '');
    expect(told).toEqual(['one', 'two']);
    pong(pings[0] ?? '');
    expect(told).toHaveLength(2);
    pong(pings[2] ?? '');
    expect(told).toEqual(['one', 'two', 'three']);
  });

  it('is nothing where the carrier has no pings', () => {
    expect(socketTransport(openSocket(), { label: 'socket' })).toMatchObject({ confirm: undefined });
  });
});
