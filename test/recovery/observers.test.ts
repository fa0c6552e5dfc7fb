/** Observers that come and go while a process floods: each sees what is kept, and the controller notices nothing. */
import { connect } from '@exec-server/client';
import { limits } from '@exec-server/protocol';
import { createExecServer, type ExecServer } from '@exec-server/server';
import type { SeededRandom } from '@exec-server/testing';
import { describe, expect, it } from 'vitest';
import { floodArgv, floodBytes, floodDigest, FloodView } from '../support/flood.js';
import { behind, Gate } from '../support/gate.js';
import { Peaks } from '../support/peaks.js';
import { type Members, RawError, RawPeer } from '../support/rawPeer.js';
import { scaled } from '../support/scale.js';
import { seeded } from '../support/seeded.js';
import { FloodTaken, takeFlood } from '../support/takeFlood.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
const LINES = scaled(16, 100) * (MIB / 16);
const BYTES = floodBytes(LINES);
const OBSERVERS = 10;
/** How often each of them leaves and comes back, at most. */
const LIVES = scaled(4, 20);

/** One that follows a process from a cursor on, and checks every event it gets. */
class Observer {
  readonly view = new FloodView();
  readonly order: string[] = [];
  /** The last event that came or was told to be gone. */
  lastSeq = 0;
  /** What is wrong with what it got. */
  failure: Error | undefined;
  readonly #url: string;
  readonly #session: string;
  #peer: RawPeer | undefined;
  #changed: () => void = () => {};

  /** By the session id, or by the one for observers. */
  constructor(url: string, session: string) {
    this.#url = url;
    this.#session = session;
  }

  get peer(): RawPeer {
    if (this.#peer === undefined) throw new Error('the observer has not joined');
    return this.#peer;
  }

  /** Goes on where it left. */
  async join(): Promise<void> {
    this.#peer = await RawPeer.dial(this.#url, { notification: (method, params) => this.#notified(method, params) });
    const { sessionId } = await this.#peer.initialize({
      protocolVersion: 1,
      extensions: { flowControl: true },
      resumeSessionId: this.#session,
      attach: 'observe',
    });
    expect(sessionId).toBe(this.#session);
    await this.#peer.request('process/follow', { processId: 'flood', afterSeq: this.lastSeq });
  }

  async leave(): Promise<void> {
    await this.#peer?.cut();
  }

  /** Waits until it is so far in the flood, or has seen the end of the process. */
  async reach(offset: number): Promise<void> {
    await this.#when(() => this.view.offset >= offset || this.order.at(-1) === 'closed');
  }

  async seeEnd(): Promise<void> {
    await this.#when(() => this.order.at(-1) === 'closed');
  }

  async #when(condition: () => boolean): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#changed = () => {
        if (this.failure !== undefined) reject(this.failure);
        else if (condition()) resolve();
      };
      void this.peer.closed.then(() => reject(new Error('an observer lost its connection')));
      this.#changed();
    });
  }

  #notified(method: string, params: Members): void {
    try {
      this.#take(method, params);
    } catch (error) {
      this.failure ??= error instanceof Error ? error : new Error(String(error));
    }
    this.#changed();
  }

  #take(method: string, params: Members): void {
    const isGap = method === 'process/gap';
    const first = (isGap ? params['fromSeq'] : params['seq']) as number;
    if (first !== this.lastSeq + 1) throw new Error(`event ${first} (${method}) came behind event ${this.lastSeq}`);
    this.lastSeq = (isGap ? params['throughSeq'] : params['seq']) as number;
    if (isGap) this.view.gap(params['bytes'] as number | undefined);
    else if (method === 'process/output') this.view.output(Buffer.from(params['chunk'] as string, 'base64'));
    else this.order.push(method.slice('process/'.length));
  }
}

/** Comes and goes at random until the process has ended; mostly it stays away for longer than what it missed is kept. */
async function observe(observer: Observer, controller: FloodTaken, random: SeededRandom): Promise<Observer> {
  for (let life = 1; life < LIVES; life += 1) {
    if (life > 1) {
      const due = Math.min(BYTES, observer.view.offset + random.integer(BYTES / 2));
      await until(() => controller.view.offset >= due, `the controller to be at byte ${due}`, 60_000);
    }
    await observer.join();
    await observer.reach(observer.view.offset + 1 + random.integer(BYTES / LIVES));
    if (observer.order.at(-1) === 'closed') break;
    await observer.leave();
  }
  if (observer.order.at(-1) !== 'closed') {
    await observer.join();
    await observer.seeEnd();
  }
  await observer.leave();
  return observer;
}

/** The same with a client each time. */
async function observeByClient(url: string, session: string, random: SeededRandom): Promise<FloodTaken> {
  const so = new FloodTaken();
  while (so.order.at(-1) !== 'closed') {
    await using client = await connect({ url, resumeSessionId: session, attach: 'observe' });
    const handle = await client.attach('flood', { afterSeq: so.lastSeq });
    const enough = so.view.offset + 1 + random.integer(BYTES / LIVES);
    await takeFlood(handle, ({ view }) => (view.offset >= enough ? 'leave' : undefined), so);
  }
  return so;
}

/** What an observer has at the end: all of it, or it was told what is gone. */
function expectSeen({ view, order }: Observer): void {
  expect(order).toEqual(['exited', 'closed']);
  expect(view.offset).toBe(BYTES);
  expect(view.received + view.lost).toBe(BYTES);
}

async function expectClosed(server: ExecServer): Promise<void> {
  await until(() => server.gauges().observers === 0, 'the observers to be gone');
  await server.close();
  expect(server.gauges()).toMatchObject({ connections: 0, sessions: 0, processes: 0, pendingRequests: 0 });
  expect(server.gauges()).toMatchObject({ retainedBytes: 0, spooledBytes: 0, queuedBytes: 0 });
}

describe(`a flood of ${BYTES} bytes`, () => {
  it(
    `reaches its controller whole while ${OBSERVERS} observers come and go, each of whom gets what is kept`,
    seeded(async (random) => {
      await using gate = await Gate.make();
      const server = createExecServer();
      const { url } = await server.listen();
      const client = await connect({ url });
      const observeId = await observeIdOf(url, client.sessionId);
      const peaks = new Peaks({ server });
      const handle = await client.start({ processId: 'flood', argv: behind(gate, floodArgv(LINES)) });
      const controller = new FloodTaken();
      const observing = Array.from({ length: OBSERVERS }, (_, index) => {
        const observer = new Observer(url, index % 2 === 0 ? client.sessionId : observeId);
        return observe(observer, controller, random.fork(`observer ${index}`));
      });
      const taking = takeFlood(handle, () => {}, controller);
      await until(() => server.gauges().observers === OBSERVERS, 'the observers to join');
      await gate.open();
      const taken = await taking;
      expect(taken.order).toEqual(['exited', 'closed']);
      expect(taken.view).toMatchObject({ received: BYTES, lost: 0, digest: floodDigest(LINES) });
      for (const observer of await Promise.all(observing)) expectSeen(observer);
      const { retainedBytes, spooledBytes, queuedBytes } = peaks.stop();
      expect(retainedBytes).toBeLessThanOrEqual(limits.RETAINED_BYTES_PER_PROCESS);
      expect(spooledBytes).toBe(0);
      expect(queuedBytes).toBeLessThanOrEqual((1 + OBSERVERS) * (limits.OUTBOX_HIGH_WATER_BYTES + 128 * 1024));
      await client.close();
      await expectClosed(server);
    }),
  );

  it(
    'reaches its controller whole while observers with clients come and go, each of whom gets what is kept',
    seeded(async (random) => {
      await using gate = await Gate.make();
      const server = createExecServer();
      const { url } = await server.listen();
      const client = await connect({ url });
      const handle = await client.start({ processId: 'flood', argv: behind(gate, floodArgv(LINES)) });
      const observing = Array.from({ length: 3 }, (_, index) =>
        observeByClient(url, client.sessionId, random.fork(`observer ${index}`)),
      );
      const taking = takeFlood(handle);
      await until(() => server.gauges().observers === 3, 'the observers to join');
      await gate.open();
      const taken = await taking;
      expect(taken.view).toMatchObject({ received: BYTES, lost: 0, digest: floodDigest(LINES) });
      for (const { view, order } of await Promise.all(observing)) {
        expect(order.filter((type) => type !== 'gap')).toEqual(['exited', 'closed']);
        expect(view.received + view.lost).toBe(BYTES);
      }
      await client.close();
      await expectClosed(server);
    }),
  );

  it('reaches its controller whole beside an observer that never reads its socket', async () => {
    await using gate = await Gate.make();
    const server = createExecServer();
    const { url } = await server.listen();
    const client = await connect({ url });
    const handle = await client.start({ processId: 'flood', argv: behind(gate, floodArgv(LINES)) });
    const observer = new Observer(url, client.sessionId);
    await observer.join();
    observer.peer.pause();
    const taking = takeFlood(handle);
    await gate.open();
    const taken = await taking;
    expect(taken.view).toMatchObject({ received: BYTES, lost: 0, digest: floodDigest(LINES) });
    expect(observer.lastSeq).toBe(0);
    expect(server.gauges().retainedBytes).toBeLessThanOrEqual(limits.RETAINED_BYTES_PER_PROCESS);
    // Now it looks: what was on its way, a gap, and what is kept.
    observer.peer.resume();
    await observer.seeEnd();
    expectSeen(observer);
    expect(observer.view.lost).toBeGreaterThan(0);
    await observer.leave();
    await client.close();
    await expectClosed(server);
  });

  it('is there for an observer while no controller is, and keeps nothing from the next controller', async () => {
    await using gate = await Gate.make();
    const server = createExecServer();
    const { url } = await server.listen();
    const first = await connect({ url });
    await first.start({ processId: 'flood', argv: behind(gate, floodArgv(LINES)) });
    const { sessionId } = first;
    await first.detach();
    const observer = new Observer(url, sessionId);
    await observer.join();
    await gate.open();
    await observer.seeEnd();
    expectSeen(observer);
    await expect(observer.peer.request('process/terminate', { processId: 'flood' })).rejects.toThrow(RawError);
    const second = await connect({ url, resumeSessionId: sessionId });
    const taken = await takeFlood(await second.attach('flood'));
    expect(taken.view).toMatchObject({ received: BYTES, lost: 0, digest: floodDigest(LINES) });
    const { closed } = observer.peer;
    await second.close();
    await closed;
    await expectClosed(server);
  });
});

/** The id that admits observers only; whoever knows the session gets it. */
async function observeIdOf(url: string, sessionId: string): Promise<string> {
  const peer = await RawPeer.dial(url);
  const { observeId } = await peer.initialize({ protocolVersion: 1, resumeSessionId: sessionId, attach: 'observe' });
  await peer.cut();
  expect(observeId).toEqual(expect.any(String));
  return observeId as string;
}
