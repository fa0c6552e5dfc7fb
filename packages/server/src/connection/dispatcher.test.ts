import { limits, WireError } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { Dispatcher } from './dispatcher.js';
import { Parked } from './parking.js';

class Gate {
  readonly opened: Promise<void>;
  open: () => void = () => {};
  constructor() {
    this.opened = new Promise((resolve) => {
      this.open = resolve;
    });
  }
}

/** Lets everything run that waits for nothing but promises. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('dispatch', () => {
  it('begins requests in the order of arrival', async () => {
    const dispatcher = new Dispatcher({ concurrentRequests: undefined });
    const begun: number[] = [];
    await Promise.all(Array.from({ length: 300 }, (_, index) => dispatcher.dispatch(false, () => begun.push(index))));
    expect(begun).toEqual(Array.from({ length: 300 }, (_, index) => index));
  });

  it('begins a request in the turn of its arrival when there is a place', () => {
    const dispatcher = new Dispatcher({ concurrentRequests: undefined });
    let begun = false;
    void dispatcher.dispatch(false, () => {
      begun = true;
    });
    expect(begun).toBe(true);
  });

  it('runs as many requests at a time as there are places', async () => {
    const dispatcher = new Dispatcher({ concurrentRequests: 2 });
    const gates = [new Gate(), new Gate(), new Gate()];
    const begun: number[] = [];
    const all = gates.map((gate, index) =>
      dispatcher.dispatch(false, async () => {
        begun.push(index);
        await gate.opened;
      }),
    );
    await turn();
    expect(begun).toEqual([0, 1]);
    gates[1]?.open();
    await turn();
    expect(begun).toEqual([0, 1, 2]);
    for (const gate of gates) gate.open();
    await Promise.all(all);
  });

  it('gives the place of a parked request away', async () => {
    const dispatcher = new Dispatcher({ concurrentRequests: 2 });
    const gate = new Gate();
    const parked = Array.from({ length: 10 }, () => dispatcher.dispatch(false, () => new Parked(gate.opened)));
    expect(await dispatcher.dispatch(false, () => 'passed')).toBe('passed');
    expect(dispatcher.pending).toBe(10);
    gate.open();
    await Promise.all(parked);
    expect(dispatcher.pending).toBe(0);
  });

  it('waits on when a wait ends in another wait', async () => {
    const dispatcher = new Dispatcher({ concurrentRequests: undefined });
    const answer = dispatcher.dispatch(false, () => new Parked(Promise.resolve(new Parked(Promise.resolve('late')))));
    expect(await answer).toBe('late');
  });

  it('lets urgent requests pass those that wait for a place', async () => {
    const dispatcher = new Dispatcher({ concurrentRequests: 2 });
    const gate = new Gate();
    const busy = [1, 2, 3].map(() => dispatcher.dispatch(false, () => gate.opened));
    expect(await dispatcher.dispatch(true, () => 'urgent')).toBe('urgent');
    gate.open();
    await Promise.all(busy);
  });

  it('with a concurrency of one is strictly serial, waits and urgent requests included', async () => {
    const dispatcher = new Dispatcher({ concurrentRequests: 1 });
    const gate = new Gate();
    const order: string[] = [];
    const note = (text: string) => () => void order.push(text);
    const all = [
      dispatcher.dispatch(false, () => new Parked(gate.opened.then(note('poll')))),
      dispatcher.dispatch(true, note('terminate')),
      dispatcher.dispatch(false, note('read')),
    ];
    await turn();
    expect(order).toEqual([]);
    gate.open();
    await Promise.all(all);
    expect(order).toEqual(['poll', 'terminate', 'read']);
  });

  it('goes on after a request that fails, now or later', async () => {
    const dispatcher = new Dispatcher({ concurrentRequests: 1 });
    const fail = (): never => {
      throw new WireError('unknownProcess', 'gone');
    };
    await expect(dispatcher.dispatch(false, fail)).rejects.toThrow('gone');
    await expect(dispatcher.dispatch(true, fail)).rejects.toThrow('gone');
    await expect(
      dispatcher.dispatch(false, () => new Parked(Promise.reject(new WireError('unknownProcess', 'late')))),
    ).rejects.toThrow('late');
    expect(await dispatcher.dispatch(false, () => 'fine')).toBe('fine');
    expect(dispatcher.pending).toBe(0);
  });

  it('refuses one request more than may be unanswered, and takes requests again when some are answered', async () => {
    const dispatcher = new Dispatcher({ concurrentRequests: undefined });
    const gate = new Gate();
    const most = limits.PENDING_REQUESTS_PER_CONNECTION;
    const waiting = Array.from({ length: most }, () => dispatcher.dispatch(false, () => new Parked(gate.opened)));
    await expect(dispatcher.dispatch(true, () => 'one more')).rejects.toMatchObject({
      reason: 'tooManyRequests',
      data: { limit: most },
    });
    gate.open();
    await Promise.all(waiting);
    expect(await dispatcher.dispatch(false, () => 'again')).toBe('again');
  });

  it('is idle at once when nothing is pending', async () => {
    await expect(new Dispatcher({ concurrentRequests: undefined }).idle()).resolves.toBeUndefined();
  });

  it('is idle once the last request was answered, parked ones included', async () => {
    const dispatcher = new Dispatcher({ concurrentRequests: undefined });
    const gate = new Gate();
    const parked = dispatcher.dispatch(false, () => new Parked(gate.opened));
    let idle = false;
    const idles = [dispatcher.idle(), dispatcher.idle()];
    void idles[0]?.then(() => {
      idle = true;
    });
    await dispatcher.dispatch(false, () => 1);
    await turn();
    expect(idle).toBe(false);
    gate.open();
    await Promise.all([parked, ...idles]);
    expect(idle).toBe(true);
  });
});
