/** Connections that go silent without an end are given up by both sides in the stated time; those that are merely full are not. */
import { createHash } from 'node:crypto';
import { connect } from '@exec-server/client';
import { limits, memoryTransportPair, type Transport } from '@exec-server/protocol';
import { createExecServer } from '@exec-server/server';
import { type FaultyTransport, faultTransport } from '@exec-server/testing';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manualClock.js';
import { joinByProxy, type Proxied } from '../support/proxied.js';
import { until } from '../support/until.js';

/** How far apart the looks of both sides at each other are. */
const LOOK_MS = 5_000;
const DATA_BYTES = 64 * 1024 * 1024;

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe('a connection that has gone silent', () => {
  it('is given up by the client after 25 s and one look, and the session goes on over another one', async () => {
    const clock = new ManualClock();
    const log: string[] = [];
    const client = { clock, onLog: (text: string) => void log.push(text) };
    const joined = await joinByProxy({ server: { clock }, client });
    const handle = await joined.client.start({ argv: ['cat'], stdin: 'pipe' });
    joined.proxy.silence();
    const written = handle.write('into the void');
    for (let passed = 0; passed < limits.SUSPECT_MS; passed += LOOK_MS) {
      expect(joined.client.state).toBe('ready');
      clock.advance(LOOK_MS);
      await turns();
    }
    clock.advance(LOOK_MS);
    await until(() => joined.client.state === 'ready' && joined.proxy.counters.connections === 2, 'the way back');
    expect(log.join('\n')).toContain('no sign of life for 25 s');
    await written;
    await handle.end();
    let output = '';
    for await (const piece of handle.text()) output += piece;
    expect(output).toBe('into the void');
    await joined.expectClean();
  });

  it('is suspect to the server after 25 s, so that another client resumes without taking over', async () => {
    const clock = new ManualClock();
    const joined = await joinByProxy({ server: { clock } });
    const { client, server, proxy } = joined;
    const { processId } = await client.start({ argv: ['sh', '-c', 'echo one; read go; echo two'], stdin: 'pipe' });
    const { url } = await server.listen();
    const resume = { url, resumeSessionId: client.sessionId, epoch: client.serverInfo?.epoch };
    proxy.silence();
    // The first look finds what came before.
    clock.advance(LOOK_MS);
    clock.advance(limits.SUSPECT_MS - LOOK_MS);
    await expect(connect(resume)).rejects.toMatchObject({ data: { reason: 'attachedElsewhere', retryable: true } });
    clock.advance(LOOK_MS);
    const second = await connect(resume);
    const handle = (await second.attachAll()).get(processId);
    const reading = handle?.text();
    await handle?.end('go\n');
    let output = '';
    for await (const piece of reading ?? []) output += piece;
    expect(output).toBe('one\ntwo\n');
    // The first one learns of it when it dials again, and leaves the session to the second.
    proxy.cut();
    await until(() => client.state === 'failed', 'the first client to give up');
    expect(client.failure).toMatchObject({ code: 'TAKEN_OVER' });
    await second.close();
    await joined.expectClean();
  });

  it('is noticed over a transport without ping frames as well', async () => {
    const clock = new ManualClock();
    const server = createExecServer();
    const dialed: FaultyTransport[] = [];
    const transport = (): Transport => {
      const [serverEnd, clientEnd] = memoryTransportPair();
      void server.accept(serverEnd);
      const faulty = faultTransport(clientEnd);
      dialed.push(faulty);
      return faulty;
    };
    const client = await connect({ transport, clock });
    const handle = await client.start({ argv: ['cat'], stdin: 'pipe' });
    // Quiet for minutes, and alive: the server answers what it is asked.
    for (let passed = 0; passed < 2 * limits.IDLE_LIMIT_MS; passed += LOOK_MS) {
      clock.advance(LOOK_MS);
      await turns();
    }
    expect([client.state, dialed.length]).toEqual(['ready', 1]);
    dialed[0]?.silence();
    for (let passed = 0; passed < limits.SUSPECT_MS + LOOK_MS; passed += LOOK_MS) {
      clock.advance(LOOK_MS);
      await turns();
    }
    await until(() => client.state === 'ready' && dialed.length === 2, 'the way back');
    await handle.end('after the silence');
    let output = '';
    for await (const piece of handle.text()) output += piece;
    expect(output).toBe('after the silence');
    await client.close();
    dialed[0]?.cut();
    await server.close();
  });
});

/** Minutes go by in which both sides are asked for a sign of life and give one. */
async function passMinutes({ proxy }: Proxied, clock: ManualClock): Promise<void> {
  for (let passed = 0; passed < 2 * limits.IDLE_LIMIT_MS; passed += limits.PING_INTERVAL_MS) {
    const { bytesUp, bytesDown } = proxy.counters;
    clock.advance(limits.PING_INTERVAL_MS);
    await until(() => proxy.counters.bytesUp > bytesUp && proxy.counters.bytesDown > bytesDown, 'signs of life');
  }
}

describe('a connection whose data does not move', () => {
  it('is kept while a reader of 64 MiB stands still: pings pass what waits for it', async () => {
    const clock = new ManualClock();
    const joined = await joinByProxy({ server: { clock }, client: { clock } });
    const handle = await joined.client.start({ argv: ['head', '-c', String(DATA_BYTES), '/dev/zero'] });
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const event of handle) {
      if (event.type !== 'output') continue;
      hash.update(event.bytes);
      // Once at the start, with as much under way as there may be.
      if (bytes === 0) {
        await until(() => joined.server.gauges().heldBackProcesses === 1, 'the process to be held back');
        await passMinutes(joined, clock);
      }
      bytes += event.bytes.length;
    }
    expect(bytes).toBe(DATA_BYTES);
    expect(hash.digest('hex')).toBe(createHash('sha256').update(Buffer.alloc(DATA_BYTES)).digest('hex'));
    expect(joined.proxy.counters).toMatchObject({ connections: 1, cuts: 0 });
    await joined.expectClean();
  });

  it('is kept while a program does not read the 64 MiB that are written to it', async () => {
    const clock = new ManualClock();
    const joined = await joinByProxy({ server: { clock }, client: { clock } });
    const argv = ['sh', '-c', 'trap "exec sha256sum" USR1; echo ready; while :; do sleep 0.05; done'];
    const handle = await joined.client.start({ argv, stdin: 'pipe' });
    const output = handle.text();
    expect((await output.next()).value).toBe('ready\n');
    const input = Buffer.alloc(DATA_BYTES, 'held ');
    const written = handle.end(input);
    await until(() => joined.server.gauges().stdinQueuedBytes >= limits.STDIN_QUEUE_BYTES / 2, 'stdin to be full');
    await passMinutes(joined, clock);
    await handle.signal('SIGUSR1');
    await written;
    expect((await output.next()).value).toContain(createHash('sha256').update(input).digest('hex'));
    expect(joined.proxy.counters).toMatchObject({ connections: 1, cuts: 0 });
    await joined.expectClean();
  });

  it('is kept while one message takes minutes on a slow link, in whose shadow no ping arrives', async () => {
    const clock = new ManualClock();
    const joined = await joinByProxy({ server: { clock }, client: { clock } });
    const { processId } = await joined.client.start({ argv: ['sh', '-c', 'exec wc -c'], stdin: 'pipe' });
    joined.proxy.setShape('up', { drip: { bytes: 65_536, pauseMs: 5 } });
    const chunk = Buffer.alloc(24 * 1024 * 1024, 'slow').toString('base64');
    const progress = { isDone: false };
    const writing = joined.client
      .call('process/write', { processId, chunk, writeId: 'one', eof: true })
      .finally(() => (progress.isDone = true));
    let looks = 0;
    for (; !progress.isDone; looks++) {
      const { bytesUp } = joined.proxy.counters;
      clock.advance(LOOK_MS);
      await until(() => progress.isDone || joined.proxy.counters.bytesUp > bytesUp + 1_000_000, 'the message to move');
    }
    expect(await writing).toMatchObject({ status: 'accepted', acceptedOffset: 24 * 1024 * 1024 });
    expect(looks * LOOK_MS).toBeGreaterThan(3 * limits.SUSPECT_MS);
    expect(joined.proxy.counters).toMatchObject({ connections: 1, cuts: 0 });
    await joined.expectClean();
  });
});
