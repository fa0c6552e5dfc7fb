import { type CloseReason, memoryTransportPair, type Transport } from '@exec-server/protocol';
import { expect, test, vi } from 'vitest';
import { faultTransport, type FaultTransportOptions } from './faultTransport.js';

/** One end that keeps what it hears. */
function listen(transport: Transport) {
  const messages: string[] = [];
  const closed: CloseReason[] = [];
  const counts = { ended: 0, drained: 0 };
  transport.start({
    message: (text) => messages.push(text),
    drained: () => {
      counts.drained += 1;
    },
    ended: () => {
      counts.ended += 1;
    },
    closed: (reason) => closed.push(reason),
  });
  return { messages, closed, counts };
}

function pairOf(options: FaultTransportOptions = {}) {
  const [inner, far] = memoryTransportPair();
  const near = faultTransport(inner, options);
  return { near, far, nearEnd: listen(near), farEnd: listen(far) };
}

/** Lets every microtask and whatever it queues run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const send = (transport: Transport, ...messages: string[]): void => {
  for (const message of messages) transport.send(message);
};

test('passes everything both ways until something happens', async () => {
  const { near, far, nearEnd, farEnd } = pairOf();
  send(near, 'a', 'b');
  near.send(new TextEncoder().encode('c'));
  send(far, 'd');
  await settled();
  expect(farEnd.messages).toEqual(['a', 'b', 'c']);
  expect(nearEnd.messages).toEqual(['d']);
  expect(near.passed).toEqual({ up: 3, down: 1 });
  near.close();
  await settled();
  expect(nearEnd.closed).toEqual([{ kind: 'closed', detail: 'closed here' }]);
  expect(farEnd.closed).toHaveLength(1);
});

test('a cut closes once, delivers nothing after it, and aborts the inner transport', async () => {
  const { near, far, nearEnd, farEnd } = pairOf();
  send(far, 'in flight');
  near.cut('cable pulled');
  near.cut('again');
  near.abort();
  send(near, 'late');
  await settled();
  expect(nearEnd.messages).toEqual([]);
  expect(nearEnd.closed).toEqual([{ kind: 'cut', detail: 'cable pulled' }]);
  expect(farEnd.closed).toMatchObject([{ kind: 'cut' }]);
  expect(farEnd.messages).toEqual([]);
  expect(near.queuedBytes).toBe(0);
});

test('a cut before the start is told after it', async () => {
  const [inner] = memoryTransportPair();
  const near = faultTransport(inner);
  near.cut();
  const end = listen(near);
  expect(end.closed).toEqual([]);
  await settled();
  expect(end.closed).toMatchObject([{ kind: 'cut' }]);
});

test('cuts before or after the message that matches, and never inside a send', async () => {
  const matches = (text: string): boolean => text === 'b';
  for (const [when, expected] of [
    [{ direction: 'down', beforeMessage: matches }, ['a']],
    [{ direction: 'down', afterMessage: matches }, ['a', 'b']],
  ] as const) {
    const { far, nearEnd } = pairOf({ rules: [{ when, do: 'cut' }] });
    send(far, 'a', 'b', 'c');
    await settled();
    expect(nearEnd.messages).toEqual(expected);
    expect(nearEnd.closed).toMatchObject([{ kind: 'cut' }]);
  }
  const { near, nearEnd } = pairOf({ rules: [{ when: { direction: 'up', beforeMessage: matches }, do: 'cut' }] });
  near.send(new TextEncoder().encode('b'));
  expect(nearEnd.closed).toEqual([]);
  await settled();
  expect(nearEnd.closed).toHaveLength(1);
});

test('counts bytes and messages in the words of the client at a server end too', async () => {
  const faults: string[] = [];
  const { near, far, nearEnd, farEnd } = pairOf({
    end: 'server',
    onFault: (action) => faults.push(action.type),
    rules: [
      { when: { direction: 'down', afterBytes: 4 }, do: { type: 'stall', direction: 'down' } },
      { when: { direction: 'up', afterMessages: 2 }, do: 'cut' },
    ],
  });
  send(near, 'éé', 'held');
  await settled();
  expect(farEnd.messages).toEqual(['éé']);
  send(far, '1');
  await settled();
  expect(nearEnd.closed).toEqual([]);
  send(far, '2');
  await settled();
  expect(nearEnd.messages).toEqual(['1', '2']);
  expect(nearEnd.closed).toHaveLength(1);
  expect(faults).toEqual(['stall', 'cut']);
});

test('a stall holds back, counts what it holds as queued, and a release delivers in order', async () => {
  const { near, far, nearEnd, farEnd } = pairOf();
  near.stall();
  send(near, 'ä', 'b');
  send(far, 'x', 'y');
  await settled();
  expect(near.queuedBytes).toBe(3);
  expect([...nearEnd.messages, ...farEnd.messages]).toEqual([]);
  near.release('up');
  near.pause();
  near.release('down');
  await settled();
  expect(near.queuedBytes).toBe(0);
  expect(farEnd.messages).toEqual(['ä', 'b']);
  expect(nearEnd.messages).toEqual([]);
  near.resume();
  await settled();
  expect(nearEnd.messages).toEqual(['x', 'y']);
});

test('a stall for a time ends by itself and leaves no timer when it is cut first', async () => {
  const timed = pairOf();
  const heard = new Promise<string>((resolve) => {
    const [inner, far] = memoryTransportPair();
    const near = faultTransport(inner);
    near.start({ message: resolve, drained: () => {}, ended: () => {}, closed: () => {} });
    listen(far);
    near.stall('down', 5);
    far.send('later');
  });
  expect(await heard).toBe('later');
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  timed.near.stall('up', 60_000);
  timed.near.cut();
  expect(timers()).toBe(before);
});

test('the end of the other side stays behind a stall and comes after what was held', async () => {
  const { near, far, nearEnd } = pairOf();
  near.delay('down', 5);
  send(far, 'last words');
  await settled();
  near.stall('down');
  far.close();
  await settled();
  expect(nearEnd.closed).toEqual([]);
  near.release();
  await settled();
  expect(nearEnd.messages).toEqual(['last words']);
  expect(nearEnd.closed).toMatchObject([{ kind: 'ended' }]);
});

test('a delay keeps the newest messages back', async () => {
  const { near, farEnd } = pairOf();
  near.delay('up', 2);
  send(near, 'a', 'b', 'c');
  await settled();
  expect(farEnd.messages).toEqual(['a']);
  expect(near.queuedBytes).toBe(2);
  near.close();
  await settled();
  expect(farEnd.messages).toEqual(['a', 'b', 'c']);
});

test('an orderly close waits for what a stall holds', async () => {
  const { near, nearEnd, farEnd } = pairOf();
  near.stall('up');
  send(near, 'a');
  near.close();
  await settled();
  expect(nearEnd.closed).toEqual([]);
  near.release('up');
  await settled();
  expect(farEnd.messages).toEqual(['a']);
  expect(nearEnd.closed).toMatchObject([{ kind: 'closed' }]);
});

test('silence takes everything, passes nothing, and neither end learns that the other has gone', async () => {
  const { near, far, nearEnd, farEnd } = pairOf();
  near.stall('up');
  send(near, 'held and then lost');
  near.silence();
  send(near, 'lost');
  send(far, 'lost too');
  await settled();
  expect(near.queuedBytes).toBe(0);
  expect(nearEnd.counts.drained).toBe(1);
  near.abort({ kind: 'cut', detail: 'watchdog' });
  await settled();
  expect(nearEnd.closed).toEqual([{ kind: 'cut', detail: 'watchdog' }]);
  expect(nearEnd.messages).toEqual([]);
  expect(farEnd.messages).toEqual([]);
  expect(farEnd.closed).toEqual([]);
  near.cut();
  await settled();
  expect(farEnd.closed).toHaveLength(1);
  expect(nearEnd.closed).toHaveLength(1);

  const other = pairOf();
  other.near.silence();
  other.far.close();
  await settled();
  expect(other.nearEnd.closed).toEqual([]);
  other.near.close();
  await settled();
  expect(other.nearEnd.closed).toHaveLength(1);
});

test('a half close ends one direction and leaves the other', async () => {
  const { near, far, nearEnd, farEnd } = pairOf();
  send(far, 'a');
  await settled();
  near.halfClose('down');
  send(far, 'b');
  send(near, 'c');
  await settled();
  expect(nearEnd.messages).toEqual(['a']);
  expect(nearEnd.counts.ended).toBe(1);
  expect(farEnd.messages).toEqual(['c']);
  near.halfClose('up');
  send(near, 'd');
  await settled();
  expect(farEnd.messages).toEqual(['c']);
  expect(nearEnd.closed).toEqual([]);
});

test.each([
  ['before', { direction: 'down', beforeMessage: (text: string) => text === 'b' }],
  ['after', { direction: 'down', afterMessage: (text: string) => text === 'b' }],
] as const)('a direction that ends right %s a message ends behind it', async (_, when) => {
  const { near, far, nearEnd } = pairOf({ rules: [{ when, do: { type: 'halfClose', direction: 'down' } }] });
  near.stall('down');
  send(far, 'a', 'b');
  await settled();
  near.release('down');
  send(far, 'c');
  await settled();
  expect(nearEnd.messages).toEqual(['a', 'b']);
  expect(nearEnd.counts.ended).toBe(1);
});

test('a listener that closes when it hears of an end in the middle of its own message has closed', async () => {
  const [inner, far] = memoryTransportPair();
  const farEnd = listen(far);
  const near = faultTransport(inner, {
    rules: [
      {
        when: { direction: 'up', beforeMessage: (text) => text === 'b' },
        do: { type: 'halfClose', direction: 'down' },
      },
    ],
  });
  const closed = new Promise<CloseReason>((resolve) => {
    near.start({ message: () => {}, drained: () => {}, ended: () => near.close(), closed: resolve });
  });
  send(near, 'a', 'b');
  expect(await closed).toEqual({ kind: 'closed', detail: 'closed here' });
  await settled();
  expect(farEnd.messages).toEqual(['a', 'b']);
});

test('a silence that ends with a cut ends so for the far side too when the near one closes before', async () => {
  const { near, far, nearEnd, farEnd } = pairOf({
    rules: [{ when: { direction: 'up', afterMessages: 1 }, do: { type: 'cut', silentMs: 5 } }],
  });
  send(near, 'a');
  near.close();
  await settled();
  expect(nearEnd.closed).toHaveLength(1);
  expect(farEnd.closed).toEqual([]);
  await vi.waitUntil(() => farEnd.closed.length > 0);
  send(far, 'b');
  expect(farEnd.messages).toEqual(['a']);
  expect(nearEnd.closed).toHaveLength(1);
});
