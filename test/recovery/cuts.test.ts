import { createHash, randomInt } from 'node:crypto';
import { connect, type ProcessEvent, type ProcessHandle } from '@exec-server/client';
import { limits, memoryTransportPair, type Transport } from '@exec-server/protocol';
import { createExecServer } from '@exec-server/server';
import { type FaultyTransport, faultTransport, hasMethod, startFaultProxy } from '@exec-server/testing';
import { describe, expect, it } from 'vitest';
import { joinByProxy } from '../support/proxied.js';
import { scaled } from '../support/scale.js';
import { until } from '../support/until.js';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

interface Taken {
  readonly digest: string;
  readonly bytes: number;
  readonly gaps: readonly Extract<ProcessEvent, { type: 'gap' }>[];
  readonly order: readonly string[];
}

/** Takes everything and checks that no event came twice, out of order or unannounced. */
async function take(handle: ProcessHandle, each: () => void = () => {}): Promise<Taken> {
  const hash = createHash('sha256');
  const gaps: Extract<ProcessEvent, { type: 'gap' }>[] = [];
  const order: string[] = [];
  let bytes = 0;
  let lastSeq = 0;
  for await (const event of handle) {
    const first = event.type === 'gap' ? event.fromSeq : event.seq;
    expect(first).toBe(lastSeq + 1);
    lastSeq = event.type === 'gap' ? event.throughSeq : event.seq;
    if (event.type === 'output') {
      hash.update(event.bytes);
      bytes += event.bytes.length;
    } else {
      if (event.type === 'gap') gaps.push(event);
      order.push(event.type);
    }
    each();
  }
  return { digest: hash.digest('hex'), bytes, gaps, order };
}

const seqArgv = (lines: number): string[] => ['seq', '-f', '%015.0f', '0', String(lines - 1)];

function seqDigest(lines: number): string {
  const hash = createHash('sha256');
  for (let line = 0; line < lines; line += 1) hash.update(`${String(line).padStart(15, '0')}\n`);
  return hash.digest('hex');
}

/** A flood of 16 MB to which the connection is cut after 200,000 bytes, and stays cut until it is over or cannot go on. */
async function cutOff(detached: 'spool' | 'pause' | 'drop'): Promise<{ taken: Taken; lines: number }> {
  const lines = 1_000_000;
  const joined = await joinByProxy();
  const argv = ['sh', '-c', `read go; seq -f %015.0f 0 ${lines - 1}; echo end >&2`];
  const handle = await joined.client.start({ argv, stdin: 'pipe', detached });
  joined.proxy.cutAfterBytes('down', 200_000);
  const taking = take(handle);
  const stopRefusing = joined.client.onState((state) => {
    if (state === 'recovering') joined.proxy.refuse(true);
  });
  await handle.write('go\n');
  const settled = (): boolean => {
    const { runningProcesses, attachedSessions, retainedBytes } = joined.server.gauges();
    const held = detached === 'pause' && attachedSessions === 0 && retainedBytes >= limits.PAUSE_PROCESS_BYTES;
    return runningProcesses === 0 || held;
  };
  await until(settled, 'the flood to end, or to be held, while nobody is attached');
  expect(joined.server.gauges().retainedBytes).toBeLessThanOrEqual(limits.RETAINED_BYTES_PER_PROCESS);
  stopRefusing();
  joined.proxy.refuse(false);
  const taken = await taking;
  await joined.expectClean();
  return { taken, lines };
}

describe('a flood that is cut again and again', () => {
  it(`arrives whole over ${scaled(30, 100)} cuts at random points, some inside a frame`, async () => {
    const seed = randomInt(2 ** 31);
    const cuts = scaled(30, 100);
    const lines = cuts * 65_536;
    const joined = await joinByProxy({
      proxy: { seed, rules: [{ when: { direction: 'down', aboutEveryBytes: 1_000_000 }, do: 'cut', times: cuts }] },
    });
    const handle = await joined.client.start({ argv: seqArgv(lines) });
    const taken = await take(handle);
    expect(joined.proxy.counters.cuts, `seed ${seed}`).toBe(cuts);
    expect(taken, `seed ${seed}`).toMatchObject({ bytes: lines * 16, gaps: [], order: ['exited', 'closed'] });
    expect(taken.digest, `seed ${seed}`).toBe(seqDigest(lines));
    await joined.expectClean();
  });

  it.each(['spool', 'pause'] as const)(
    'loses nothing over a cut in which much more is written than memory holds, under %s',
    async (detached) => {
      const { taken, lines } = await cutOff(detached);
      expect(taken).toMatchObject({ bytes: lines * 16 + 4, gaps: [], order: ['exited', 'closed'] });
    },
  );

  it('says exactly what is gone when that is dropped', async () => {
    const { taken, lines } = await cutOff('drop');
    expect(taken.gaps).toHaveLength(1);
    expect(taken.bytes + (taken.gaps[0]?.bytes ?? 0)).toBe(lines * 16 + 4);
    expect(taken.order).toEqual(['gap', 'exited', 'closed']);
  });
});

describe('a process whose connection is cut', () => {
  it('goes on under the same pid, and no event is missing', async () => {
    const joined = await joinByProxy();
    const handle = await joined.client.start({
      argv: [
        '/bin/sh',
        '-c',
        'echo "ready:$$"; IFS= read -r a; echo "during:$$:$a"; IFS= read -r b; echo "after:$$:$b"; exit 7',
      ],
      stdin: 'pipe',
    });
    const { sessionId } = joined.client;
    let output = '';
    const seen: string[] = [];
    for await (const event of handle) {
      if (event.type === 'output') {
        output += text(event.bytes);
        if (output.endsWith(`ready:${handle.pid}\n`)) {
          // Sent into the cut: it takes effect once, when the connection is back.
          joined.proxy.refuse(3);
          joined.proxy.cut();
          await handle.write('one\n');
          expect(joined.proxy.counters.cuts).toBe(1);
        } else if (output.endsWith(':one\n')) {
          joined.proxy.cut();
          await handle.end('two\n');
        }
      }
      seen.push(event.type);
    }
    expect(output).toBe(`ready:${handle.pid}\nduring:${handle.pid}:one\nafter:${handle.pid}:two\n`);
    expect(seen).toEqual(['output', 'output', 'output', 'exited', 'closed']);
    expect(await handle.wait()).toMatchObject({ exitCode: 7 });
    expect(joined.client.sessionId).toBe(sessionId);
    await joined.expectClean();
  });

  it('has calls wait for the connection to come back', async () => {
    const joined = await joinByProxy();
    joined.proxy.refuse(true);
    joined.proxy.cut();
    await until(() => joined.client.state === 'recovering', 'the loss to be noticed');
    let settled = false;
    const status = joined.client.call('environment/status', null).finally(() => {
      settled = true;
    });
    await until(() => joined.proxy.counters.refused >= 2, 'two refused dials');
    expect(settled).toBe(false);
    joined.proxy.refuse(false);
    expect(await status).toEqual({ status: 'ready' });
    await joined.expectClean();
  });

  it.each(['process/exited', 'process/closed'])(
    'is told of its end once when the cut comes before %s',
    async (method) => {
      const joined = await joinByProxy({
        proxy: { rules: [{ when: { direction: 'down', beforeMessage: hasMethod(method) }, do: 'cut', times: 1 }] },
      });
      const handle = await joined.client.start({ argv: ['sh', '-c', 'echo one; exit 3'] });
      const taken = await take(handle);
      expect(joined.proxy.counters.cuts).toBe(1);
      expect(taken).toMatchObject({ bytes: 4, gaps: [], order: ['exited', 'closed'] });
      await joined.expectClean();
    },
  );

  it.each([
    ['the request has passed', { direction: 'up', afterMessage: hasMethod('process/start') }],
    ['the request has not passed', { direction: 'up', beforeMessage: hasMethod('process/start') }],
    [
      'the answer has not passed',
      { direction: 'down', beforeMessage: (message: string) => message.includes('"sandboxType"') },
    ],
  ] as const)('starts once when the connection is cut and %s', async (_when, when) => {
    const joined = await joinByProxy({ proxy: { rules: [{ when, do: 'cut', times: 1 }] } });
    const result = await joined.client.run(['sh', '-c', 'echo $$']);
    expect(joined.proxy.counters.cuts).toBe(1);
    expect(result.exitCode).toBe(0);
    expect(result.text()).toMatch(/^\d+\n$/);
    expect(joined.server.gauges().processes).toBe(1);
    await joined.expectClean();
  });

  it('takes each of many writes once over cuts in both directions', async () => {
    const seed = randomInt(2 ** 31);
    const joined = await joinByProxy({
      proxy: { seed, rules: [{ when: { direction: 'up', aboutEveryBytes: 150_000 }, do: 'cut', times: 8 }] },
    });
    const handle = await joined.client.start({ argv: ['sha256sum'], stdin: 'pipe' });
    const input = Buffer.alloc(1_500_000, 'every byte once ');
    for (let at = 0; at < input.length; at += 65_536) await handle.write(input.subarray(at, at + 65_536));
    await handle.end();
    let output = '';
    for await (const piece of handle.text()) output += piece;
    expect(output.split(' ')[0], `seed ${seed}`).toBe(createHash('sha256').update(input).digest('hex'));
    expect(joined.proxy.counters.cuts, `seed ${seed}`).toBeGreaterThan(3);
    await joined.expectClean();
  });
});

describe('a connection whose end only the client has noticed', () => {
  it('is replaced by the first dial that follows', async () => {
    const server = createExecServer();
    const dialed: { readonly serverEnd: FaultyTransport; readonly clientEnd: Transport }[] = [];
    const transport = (): Transport => {
      const [inner, clientEnd] = memoryTransportPair();
      const serverEnd = faultTransport(inner, { end: 'server' });
      dialed.push({ serverEnd, clientEnd });
      void server.accept(serverEnd);
      return clientEnd;
    };
    const client = await connect({ transport });
    const handle = await client.start({ argv: ['cat'], stdin: 'pipe' });
    // The server hears nothing more of it, its end included.
    dialed[0]?.serverEnd.silence();
    dialed[0]?.clientEnd.abort({ kind: 'cut', detail: 'cut by the test' });
    await handle.end('after the cut');
    let output = '';
    for await (const piece of handle.text()) output += piece;
    expect(output).toBe('after the cut');
    expect(dialed).toHaveLength(2);
    await client.close();
    await server.close();
  });
});

describe('a session whose connection has gone silent without an end', () => {
  it('is resumed by the next one, which goes on where the first one was', async () => {
    const server = createExecServer();
    let silent = false;
    const [serverEnd, clientEnd] = memoryTransportPair();
    void server.accept(serverEnd, { isSilent: () => silent });
    const first = await connect({ transport: clientEnd });
    const { processId } = await first.start({ argv: ['sh', '-c', 'echo one; read go; echo two'], stdin: 'pipe' });
    const { url } = await server.listen();
    const resume = { url, resumeSessionId: first.sessionId };
    await expect(connect(resume)).rejects.toMatchObject({ data: { reason: 'attachedElsewhere' } });
    silent = true;
    const second = await connect(resume);
    const handle = await second.attach(processId);
    await handle.end('go\n');
    expect(await take(handle)).toMatchObject({ bytes: 8, gaps: [], order: ['exited', 'closed'] });
    expect(first.state).toBe('failed');
    await second.close();
    await server.close();
  });
});

describe('a session that cannot be resumed', () => {
  it('is a typed outcome when its lease is over', async () => {
    const joined = await joinByProxy({ server: { sessionLeaseMs: 30 } });
    const handle = await joined.client.start({ argv: ['sleep', '600'] });
    joined.proxy.refuse(true);
    joined.proxy.cut();
    await until(() => joined.server.gauges().sessions === 0, 'the lease to run out');
    joined.proxy.refuse(false);
    await expect(handle.wait()).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
    await expect(joined.client.start({ argv: ['true'] })).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
    await joined.expectClean();
  });

  it('is a typed outcome when the server was restarted', async () => {
    const first = createExecServer();
    const { url } = await first.listen();
    const proxy = await startFaultProxy({ target: url });
    const client = await connect({ url: proxy.url });
    const handle = await client.start({ argv: ['sleep', '600'] });
    const second = createExecServer();
    proxy.setTarget((await second.listen()).url);
    proxy.cut();
    await expect(handle.wait()).rejects.toMatchObject({ code: expect.stringMatching(/SESSION_EXPIRED|SERVER_GONE/) });
    await client.close();
    await proxy.close();
    await first.close();
    await second.close();
  });

  it('is a typed outcome when the server is gone', async () => {
    const joined = await joinByProxy({ client: { recoveryMs: 100 } });
    const handle = await joined.client.start({ argv: ['sleep', '600'] });
    joined.proxy.stopListening();
    joined.proxy.cut();
    await expect(handle.wait()).rejects.toMatchObject({ code: 'RECOVERY_FAILED', data: { cursor: 0 } });
    await joined.expectClean();
  });

  it('is refused to a second controller while the first one is there', async () => {
    const joined = await joinByProxy();
    await expect(
      connect({ url: joined.proxy.url, resumeSessionId: joined.client.sessionId, recoveryMs: 100 }),
    ).rejects.toMatchObject({ data: { reason: 'attachedElsewhere' } });
    await joined.expectClean();
  });
});

describe('a process that another client takes over', () => {
  it('gives it everything that was written while nobody was attached, much more than memory holds', async () => {
    const lines = 1_000_000;
    await using server = createExecServer();
    const { url } = await server.listen();
    const first = await connect({ url });
    const argv = ['sh', '-c', `read go; exec seq -f %015.0f 0 ${lines - 1}`];
    // Without a handle nothing is acknowledged.
    const { processId } = await first.call('process/start', {
      processId: 'job',
      argv,
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
      tty: false,
      pipeStdin: true,
    });
    await first.call('process/write', { processId, chunk: Buffer.from('go\n').toString('base64'), writeId: '1' });
    const { sessionId } = first;
    await first.detach();
    await until(() => server.gauges().runningProcesses === 0, 'the flood to end while nobody is attached');
    const second = await connect({ url, resumeSessionId: sessionId });
    const taken = await take(await second.attach(processId));
    expect(taken).toMatchObject({ bytes: lines * 16, gaps: [], order: ['exited', 'closed'] });
    expect(taken.digest).toBe(seqDigest(lines));
    await second.close();
  });

  it('goes on behind a cursor that lies far beyond what the first one acknowledged', async () => {
    await using server = createExecServer();
    const { url } = await server.listen();
    const first = await connect({ url });
    // Without a handle nothing is acknowledged.
    const { processId } = await first.call('process/start', {
      processId: 'job',
      argv: ['sh', '-c', 'head -c 1500000 /dev/zero; cat'],
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
      tty: false,
      pipeStdin: true,
    });
    let cursor = 0;
    for (let bytes = 0; bytes < 1_500_000; ) {
      const { chunks } = await first.call('process/read', { processId, afterSeq: cursor, waitMs: 10_000 });
      for (const { chunk } of chunks) bytes += Buffer.from(chunk, 'base64').length;
      cursor = chunks.at(-1)?.seq ?? cursor;
    }
    const { sessionId } = first;
    await first.detach();
    const second = await connect({ url, resumeSessionId: sessionId });
    const handle = await second.attach(processId, { afterSeq: cursor });
    await handle.end('three more lines\n');
    let output = '';
    for await (const piece of handle.text()) output += piece;
    expect(output).toBe('three more lines\n');
    await second.close();
  });
});
