/** What a client of the base protocol gets, which announces nothing and recovers as the reference does. */
import { limits } from '@exec-server/protocol';
import { createExecServer, type ExecServer, type ExecServerOptions } from '@exec-server/server';
import { type FaultProxy, type FaultRule, hasMethod, startFaultProxy } from '@exec-server/testing';
import { describe, expect, it } from 'vitest';
import { floodArgv, floodBytes, floodDigest, FloodView } from '../support/flood.js';
import { ForeignClient, type ForeignProcess, WAITING_BYTES, WAITING_EVENTS } from '../support/foreignClient.js';
import { FakePlatform } from '../support/fakePlatform.js';
import { behind, Gate } from '../support/gate.js';
import { ManualClock } from '../support/manualClock.js';
import { RawError, startOf } from '../support/rawPeer.js';
import { runClock } from '../support/runClock.js';
import { scaled } from '../support/scale.js';
import { seeded } from '../support/seeded.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
const LINES = scaled(24, 72) * (MIB / 16);
const BYTES = floodBytes(LINES);

interface Served {
  readonly server: ExecServer;
  readonly proxy: FaultProxy;
  readonly client: ForeignClient;
  expectClean(): Promise<void>;
}

async function serve(
  options: Omit<ExecServerOptions, 'clock'> & { readonly clock?: ManualClock } = {},
  rules: readonly FaultRule[] = [],
): Promise<Served> {
  const server = createExecServer(options);
  const { url } = await server.listen();
  const proxy = await startFaultProxy({ target: url, rules });
  const client = await ForeignClient.open(proxy.url);
  return {
    server,
    proxy,
    client,
    expectClean: async () => {
      const stopClock = options.clock === undefined ? () => {} : runClock(options.clock);
      await client.cut();
      await proxy.close();
      await server.close();
      stopClock();
      expect(server.gauges()).toMatchObject({ connections: 0, sessions: 0, processes: 0, pendingRequests: 0 });
      expect(server.gauges()).toMatchObject({ retainedBytes: 0, spooledBytes: 0, spoolPendingBytes: 0 });
    },
  };
}

const ended = ({ server }: Served): Promise<void> =>
  until(() => server.gauges().runningProcesses === 0, 'the process to end on the server', 30_000);

/** Nothing the client got was more than its reference can take. */
function expectTakeable(client: ForeignClient, process: ForeignProcess): void {
  expect(process.failure).toBeUndefined();
  expect(client.largest.bytes).toBeLessThanOrEqual(limits.MAX_REPLY_BYTES);
  expect(client.largest.chunks).toBeLessThanOrEqual(limits.MAX_READ_CHUNKS);
  expect(client.largest.values).toBeLessThanOrEqual(limits.MAX_JSON_VALUES);
  expect(process.waitedEvents).toBeLessThanOrEqual(WAITING_EVENTS);
  expect(process.waitedBytes).toBeLessThanOrEqual(WAITING_BYTES);
}

function expectWhole(client: ForeignClient, process: ForeignProcess, view: FloodView): void {
  expectTakeable(client, process);
  expect(process).toMatchObject({ closed: true, exitCode: 0 });
  expect(view).toMatchObject({ received: BYTES, digest: floodDigest(LINES) });
}

/** Starts a flood that waits for a line. */
async function startFlood({ client }: Served): Promise<{ process: ForeignProcess; view: FloodView }> {
  const view = new FloodView();
  const argv = ['sh', '-c', 'read go; exec "$@"', 'sh', ...floodArgv(LINES)];
  const process = await client.start('flood', argv, { stdin: 'pipe', taken: (bytes) => view.output(bytes) });
  return { process, view };
}

describe(`a flood of ${BYTES} bytes for a foreign client`, () => {
  it('arrives whole when the client was away from its beginning to its end', async () => {
    await using gate = await Gate.make();
    const served = await serve();
    const view = new FloodView();
    const argv = behind(gate, floodArgv(LINES));
    const process = await served.client.start('flood', argv, { taken: (bytes) => view.output(bytes) });
    await served.client.cut();
    await until(() => served.server.gauges().attachedSessions === 0, 'the server to notice the cut');
    await gate.open();
    await ended(served);
    expect(served.server.gauges().spooledBytes).toBeGreaterThanOrEqual(BYTES - limits.RETAINED_BYTES_PER_PROCESS);
    await served.client.resume();
    expect(served.client.largest.bytes).toBeGreaterThan(MIB);
    await served.client.ended(process);
    expectWhole(served.client, process, view);
    await served.expectClean();
  });

  it(
    'arrives whole over ten cuts at random bytes',
    seeded(async (random) => {
      const served = await serve();
      const { process, view } = await startFlood(served);
      await served.client.write('flood', 'go\n');
      for (let cut = 1; cut <= 10; cut += 1) {
        const bytes = served.client.receivedBytes + random.integer(Math.floor(BYTES / 10));
        await served.client.until(() => process.over || served.client.receivedBytes >= bytes);
        if (random.integer(2) === 0) {
          // Inside whatever is on its way.
          served.proxy.cut();
          await served.client.peer.closed;
        } else {
          await served.client.cut();
        }
        await served.client.resume();
      }
      await served.client.ended(process);
      expectWhole(served.client, process, view);
      await served.expectClean();
    }),
  );

  it('arrives whole when the client stopped reading its socket, was cut, and came back after the end', async () => {
    const served = await serve();
    const { process, view } = await startFlood(served);
    await served.client.write('flood', 'go\n');
    await served.client.until(() => view.received >= MIB);
    served.client.peer.pause();
    const before = process.last;
    await until(() => served.server.gauges().heldBackProcesses === 1, 'the process to be held back');
    // It was sent, and no pong covers it.
    expect(served.proxy.counters.bytesDown - served.client.receivedBytes).toBeGreaterThan(256 * 1024);
    await served.client.cut();
    expect(process.last).toBe(before);
    await ended(served);
    await served.client.resume();
    await served.client.ended(process);
    expectWhole(served.client, process, view);
    await served.expectClean();
  });

  it('arrives whole after 30 s when the client resumes and only listens', async () => {
    const clock = new ManualClock();
    const served = await serve({ clock });
    const { process, view } = await startFlood(served);
    await served.client.write('flood', 'go\n');
    await served.client.until(() => view.received >= MIB);
    await served.client.cut();
    await ended(served);
    await served.client.resume({ listenOnly: true });
    const before = process.last;
    clock.advance(limits.FIRST_READ_WAIT_MS - 1);
    await served.client.peer.request('environment/status', {});
    expect(process.last).toBe(before);
    clock.advance(1);
    await served.client.ended(process);
    expectWhole(served.client, process, view);
    await served.expectClean();
  });
});

describe('a flood in tiny chunks for a foreign client', () => {
  it('arrives whole, and no answer has more chunks or JSON values than it can take', async () => {
    const lines = 120_000;
    const platform = new FakePlatform();
    const served = await serve({ platform, guard: false });
    const view = new FloodView();
    const process = await served.client.start('flood', ['flood'], { taken: (bytes) => view.output(bytes) });
    await served.client.cut();
    await until(() => served.server.gauges().attachedSessions === 0, 'the server to notice the cut');
    const [child] = platform.children;
    for (let line = 0; line < lines; line += 1) child?.outputs[0]?.emit(`${String(line).padStart(15, '0')}\n`);
    child?.exit();
    child?.endOutputs();
    await served.client.resume();
    expect(served.client.largest.chunks).toBeGreaterThan(10_000);
    await served.client.ended(process);
    expectTakeable(served.client, process);
    expect(process).toMatchObject({ exitCode: 0, last: lines + 2 });
    expect(view).toMatchObject({ received: floodBytes(lines), digest: floodDigest(lines) });
    await served.expectClean();
  });
});

describe(`a flood of ${BYTES} bytes of which the beginning is gone, for a foreign client`, () => {
  it('is a jump behind which little is pushed until it reads, and what it reads says that something is missing', async () => {
    await using gate = await Gate.make();
    const clock = new ManualClock();
    const most = 8 * MIB;
    const spoolLimits = { processBytes: most, sessionBytes: most, serverBytes: most };
    const served = await serve({ clock, spoolLimits });
    const { client } = served;
    const process = await client.start('flood', behind(gate, floodArgv(LINES)));
    const other = await client.start('other', ['sh', '-c', 'read go; echo on'], { stdin: 'pipe' });
    await client.cut();
    await until(() => served.server.gauges().attachedSessions === 0, 'the server to notice the cut');
    await gate.open();
    await until(() => served.server.gauges().runningProcesses === 1, 'the flood to end on the server', 30_000);
    await client.resume({ listenOnly: true });
    clock.advance(limits.FIRST_READ_WAIT_MS);
    await client.until(() => process.waitedBytes >= limits.BYTES_BEHIND_HOLE / 2);
    for (let call = 0; call < 20; call += 1) await client.peer.request('environment/status', {});
    expectTakeable(client, process);
    expect(process.waitedEvents).toBeLessThanOrEqual(limits.EVENTS_BEHIND_HOLE);
    expect(process.waitedBytes).toBeLessThanOrEqual(limits.BYTES_BEHIND_HOLE);
    expect(process.last).toBe(0);
    await client.replay(process);
    expect(process.failure).toMatch('event 1 is no longer retained');
    await client.write('other', 'go\n');
    await client.ended(other);
    await served.expectClean();
  });
});

describe('a process of a foreign client', () => {
  it.each(['process/exited', 'process/closed'])(
    'is told of its end once when the connection is cut before %s',
    async (method) => {
      const served = await serve({}, [
        { when: { direction: 'down', beforeMessage: hasMethod(method) }, do: 'cut', times: 1 },
      ]);
      let output = '';
      const process = await served.client.start('p', ['sh', '-c', 'read go; echo one; exit 3'], {
        stdin: 'pipe',
        taken: (bytes) => (output += bytes.toString()),
      });
      // The answer may get lost in the cut.
      await Promise.allSettled([served.client.write('p', 'go\n'), served.client.peer.closed]);
      expect(served.proxy.counters.cuts).toBe(1);
      expect(process.closed).toBe(false);
      await served.client.resume();
      await served.client.ended(process);
      expectTakeable(served.client, process);
      expect(output).toBe('one\n');
      expect(process).toMatchObject({ exitCode: 3, last: 3 });
      await served.expectClean();
    },
  );

  it('has its exit in its place when a descendant wrote on after it, and all of that came while nobody was there', async () => {
    await using gate = await Gate.make();
    const served = await serve({}, [
      { when: { direction: 'down', beforeMessage: hasMethod('process/exited') }, do: 'cut', times: 1 },
    ]);
    const { client, server } = served;
    const seen: string[] = [];
    const argv = ['sh', '-c', '(read go < "$0"; echo late) & echo early; exit 3', gate.path];
    const process = client.follow('p', (bytes) => seen.push(bytes.toString()));
    // The answer may get lost in the cut.
    await Promise.allSettled([client.peer.request('process/start', startOf('p', argv)), client.peer.closed]);
    await until(() => server.gauges().attachedSessions === 0, 'the server to notice the cut');
    await gate.open();
    await client.resume();
    await client.ended(process);
    expectTakeable(client, process);
    expect(seen).toEqual(['early\n', 'late\n']);
    expect(process).toMatchObject({ exitCode: 3, exitedSeq: 2, last: 4 });
    await served.expectClean();
  });

  const startCuts = [
    ['did take place', 'the answer has not passed', { direction: 'down', beforeMessage: isStartAnswer }],
    [
      'did not take place',
      'the request has not passed',
      { direction: 'up', beforeMessage: hasMethod('process/start') },
    ],
  ] as const;
  it.each(startCuts)(
    '%s, as a read after the resume tells, when the start was cut off and %s',
    async (_, _when, when) => {
      const served = await serve({}, [{ when, do: 'cut', times: 1 }]);
      let output = '';
      const process = served.client.follow('p', (bytes) => (output += bytes.toString()));
      const argv = ['sh', '-c', 'echo ran; read go'];
      await expect(served.client.start('p', argv, { stdin: 'pipe' })).rejects.toThrow('the connection was lost');
      expect(served.proxy.counters.cuts).toBe(1);
      expect(process.over).toBe(false);
      await served.client.resume({ listenOnly: true });
      const { processes } = served.server.gauges();
      const read = served.client.peer.request('process/read', { processId: 'p', afterSeq: 0, waitMs: 10_000 });
      if ('up' === when.direction) {
        await expect(read).rejects.toThrow(RawError);
        expect(processes).toBe(0);
      } else {
        expect(await read).toMatchObject({ chunks: [{ seq: 1 }], nextSeq: 2, closed: false });
        expect(processes).toBe(1);
        await expect(served.client.start('p', argv)).rejects.toThrow(RawError);
      }
      await served.expectClean();
      expect(output).toBe('');
    },
  );
});

function isStartAnswer(message: string): boolean {
  return message.includes('"sandboxType"');
}
