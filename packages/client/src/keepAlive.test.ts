import { type CloseReason, limits, type Transport, type TransportListener } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { KeepAlive } from './keepAlive.js';
import { LOOK_EVERY_MS } from './liveness.js';
import { connectFake, foreignReply, IDLE_TIMERS, settle, startFake } from './testSupport/connectFake.js';
import { FakeClock } from './testSupport/fakeClock.js';
import { extendedReply, type FakeConnection, readResult } from './testSupport/fakeServer.js';

/** Twice every interval there is. */
const LONG_MS = 2 * limits.IDLE_LIMIT_MS;

describe('a connection without ping frames', () => {
  it.each([
    ['ping', extendedReply('s1')],
    ['environment/status', foreignReply],
  ] as const)('is kept alive by %s, every 10 s', async (method, reply) => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock }, reply });
    for (let passed = 0; passed < LONG_MS; passed += limits.PING_INTERVAL_MS) {
      clock.advance(limits.PING_INTERVAL_MS);
      connection.answer(await connection.next(method), { status: 'ready' });
      await settle();
    }
    expect(connection.count(method)).toBe(LONG_MS / limits.PING_INTERVAL_MS);
    expect(client.state).toBe('ready');
    await client.close();
    expect(clock.pending).toBe(0);
  });

  it('is given up after 25 s of silence, and the session goes on over another one', async () => {
    const clock = new FakeClock();
    const log: string[] = [];
    const onLog = (text: string): void => void log.push(text);
    const { client, connection, server } = await connectFake({ internals: { clock }, options: { onLog } });
    const handle = await startFake(client, connection, 'p');
    for (let passed = LOOK_EVERY_MS; passed < limits.SUSPECT_MS; passed += LOOK_EVERY_MS) {
      clock.advance(LOOK_EVERY_MS);
      await settle();
    }
    expect(client.state).toBe('ready');
    // A question that is not answered is not asked again.
    expect(connection.count('ping')).toBe(1);
    clock.advance(LOOK_EVERY_MS);
    await settle();
    expect(client.state).toBe('recovering');
    expect(log.join('\n')).toContain('no sign of life for 25 s');
    const next = await server.accept();
    await next.handshake(extendedReply('s1', { resumed: true }));
    next.answer(await next.next('process/read'), readResult({ exited: true, exitCode: 3, exitedSeq: 1, nextSeq: 2 }));
    expect(await handle.wait()).toMatchObject({ exitCode: 3 });
    await settle();
    expect(clock.pending).toBe(IDLE_TIMERS);
    await client.close();
  });

  it('has twice the time after a silence, up to 120 s, as an answer may be larger than the link carries in it', async () => {
    const clock = new FakeClock();
    const { client, connection, server } = await connectFake({ internals: { clock } });
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += LOOK_EVERY_MS) {
        clock.advance(LOOK_EVERY_MS);
        await settle();
      }
    };
    const silenceOf = async (): Promise<number> => {
      let silenceMs = 0;
      for (; client.state === 'ready'; silenceMs += LOOK_EVERY_MS) await pass(LOOK_EVERY_MS);
      return silenceMs;
    };
    const follow = async (): Promise<FakeConnection> => {
      const next = await server.accept();
      await next.handshake(extendedReply('s1', { resumed: true }));
      await settle();
      return next;
    };
    let current = connection;
    for (const silenceMs of [25_000, 50_000, 100_000, 120_000, 120_000]) {
      expect(await silenceOf()).toBe(silenceMs);
      current = await follow();
    }
    // One that ends in another way was not silent.
    await pass(60_000);
    current.cut();
    await settle();
    clock.advance(1);
    await follow();
    expect(await silenceOf()).toBe(25_000);
    await client.close();
  });

  it('lives by what is pushed, although no question is answered', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock } });
    await startFake(client, connection, 'p');
    for (let seq = 1; seq * limits.PING_INTERVAL_MS < LONG_MS; seq++) {
      connection.output('p', seq, 'x');
      await settle();
      clock.advance(limits.PING_INTERVAL_MS);
    }
    expect(client.state).toBe('ready');
    await client.close();
  });

  it('is not given up while a foreign server holds everything up for a write, and is when that was answered', async () => {
    const clock = new FakeClock();
    const { client, connection } = await connectFake({ internals: { clock }, reply: foreignReply });
    const handle = await startFake(client, connection, 'p');
    const written = handle.write('to a program that does not read');
    const write = await connection.next('process/write');
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += LOOK_EVERY_MS) {
        clock.advance(LOOK_EVERY_MS);
        await settle();
      }
    };
    await pass(LONG_MS);
    expect(client.state).toBe('ready');
    connection.answer(write, { status: 'accepted' });
    await written;
    await pass(limits.SUSPECT_MS);
    expect(client.state).toBe('recovering');
    await client.close();
  });

  it('lives while this program stands still, since looks are counted and not time', async () => {
    const clock = new FakeClock();
    const { client } = await connectFake({ internals: { clock } });
    // One timer that comes an hour late is one look.
    clock.skip(3_600_000);
    clock.advance(0);
    await settle();
    expect(client.state).toBe('ready');
    await client.close();
  });
});

/** A transport that does nothing by itself. */
class Still implements Transport {
  readonly label = 'still';
  readonly queuedBytes = 0;
  listener: TransportListener | undefined;
  aborted: CloseReason | undefined;
  start(listener: TransportListener): void {
    this.listener = listener;
  }
  send(): void {}
  pause(): void {}
  resume(): void {}
  close(): void {}
  abort(reason?: CloseReason): void {
    this.aborted = reason;
  }
}

it('a connection that ends before its handshake leaves the time to the next one', () => {
  const clock = new FakeClock();
  const kept = new KeepAlive({ transport: new Still(), gone: Promise.resolve() }, clock, 2 * limits.SUSPECT_MS);
  expect(kept.nextSilenceMs).toBe(2 * limits.SUSPECT_MS);
  kept.start({ ask: () => Promise.resolve(), isStuck: () => false });
  expect(kept.nextSilenceMs).toBe(limits.SUSPECT_MS);
  kept.stop();
  expect(clock.pending).toBe(0);
});

describe('a connection whose reading is held back here', () => {
  it('is not given up, and is after 25 s of silence once it is read again', () => {
    const clock = new FakeClock();
    const carrier = { transport: new Still(), gone: Promise.resolve() };
    const kept = new KeepAlive(carrier, clock);
    kept.start({ ask: () => new Promise(() => {}), isStuck: () => false });
    kept.transport.pause();
    clock.advance(LONG_MS);
    kept.transport.resume();
    clock.advance(limits.SUSPECT_MS);
    expect(carrier.transport.aborted).toBeUndefined();
    clock.advance(LOOK_EVERY_MS);
    expect(carrier.transport.aborted).toEqual({ kind: 'cut', detail: 'no sign of life for 25 s' });
    expect(clock.pending).toBe(0);
  });
});

describe('a connection with ping frames', () => {
  it('asks nothing else, lives by frames and by moving bytes, and is given up without either', () => {
    const clock = new FakeClock();
    let pings = 0;
    let received = 0;
    let sign = (): void => {};
    const pulse = {
      ping: () => void (pings += 1),
      onSign: (listener: () => void) => void (sign = listener),
      counts: () => ({ received, sent: 0, waiting: 0 }),
    };
    const carrier = { transport: new Still(), gone: Promise.resolve(), pulse };
    const ask = (): Promise<unknown> => Promise.reject(new Error('asked'));
    new KeepAlive(carrier, clock).start({ ask, isStuck: () => true });
    for (let passed = 0; passed < LONG_MS; passed += limits.PING_INTERVAL_MS) {
      clock.advance(limits.PING_INTERVAL_MS);
      if (passed < LONG_MS / 2) sign();
      else received += 1;
    }
    expect(pings).toBe(LONG_MS / limits.PING_INTERVAL_MS);
    expect(carrier.transport.aborted).toBeUndefined();
    clock.advance(limits.SUSPECT_MS + LOOK_EVERY_MS);
    expect(carrier.transport.aborted).toMatchObject({ kind: 'cut' });
  });
});
