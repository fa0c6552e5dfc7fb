/** Starts whose answer is lost, late or unwanted: each takes place once, and nobody else's process is touched. */
import { connect, type ProcessHandle } from '@exec-server/client';
import { createExecServer } from '@exec-server/server';
import { hasMethod, startFaultProxy } from '@exec-server/testing';
import { describe, expect, it } from 'vitest';
import { joinByProxy } from '../support/proxied.js';
import { until } from '../support/until.js';

/** More than client and server keep in memory together. */
const BYTES = 30_000_000;

async function countOutput(handle: ProcessHandle): Promise<{ bytes: number; gaps: number }> {
  let bytes = 0;
  let gaps = 0;
  for await (const event of handle) {
    if (event.type === 'output') bytes += event.bytes.length;
    if (event.type === 'gap') gaps += 1;
  }
  return { bytes, gaps };
}

describe('a start whose answer is lost in a cut', () => {
  it('gives its caller everything that was written before the connection was back', async () => {
    const joined = await joinByProxy({
      proxy: {
        rules: [{ when: { direction: 'down', beforeMessage: (text) => text.includes('"sandboxType"') }, do: 'cut' }],
      },
    });
    const stopRefusing = joined.client.onState((state) => {
      if (state === 'recovering') joined.proxy.refuse(true);
    });
    const running = joined.client.run(['head', '-c', String(BYTES), '/dev/zero']);
    const isOver = (): boolean =>
      joined.server.gauges().processes === 1 && joined.server.gauges().runningProcesses === 0;
    await until(isOver, 'the flood to end while nobody is attached');
    stopRefusing();
    joined.proxy.refuse(false);
    expect(await running).toMatchObject({ exitCode: 0, stdoutBytes: BYTES, truncated: false, gaps: [] });
    expect(joined.proxy.counters.cuts).toBe(1);
    await joined.expectClean();
  });

  it('is a duplicate when the answer was that the id has another process', async () => {
    await using server = createExecServer();
    const { url } = await server.listen();
    const first = await connect({ url });
    await first.start({ argv: ['sh', '-c', 'echo OLD; exec sleep 600'], processId: 'job' });
    const { sessionId } = first;
    await first.detach();
    const proxy = await startFaultProxy({
      target: url,
      rules: [{ when: { direction: 'down', beforeMessage: (text) => text.includes('duplicateProcess') }, do: 'cut' }],
    });
    const second = await connect({ url: proxy.url, resumeSessionId: sessionId });
    await expect(second.start({ argv: ['echo', 'NEW'], processId: 'job' })).rejects.toMatchObject({
      code: 'DUPLICATE_PROCESS',
    });
    expect(proxy.counters.cuts).toBe(1);
    expect((await second.list()).processes).toMatchObject([{ processId: 'job', state: 'running' }]);
    await second.close();
    await proxy.close();
  });
});

describe('a start that is given up', () => {
  it('leaves alone the process that another program started under its id', async () => {
    await using server = createExecServer();
    const { url } = await server.listen();
    const first = await connect({ url });
    await first.start({ argv: ['sleep', '600'], processId: 'job' });
    const { sessionId } = first;
    await first.detach();
    const abort = new AbortController();
    // The refusal is on its way when the caller gives up.
    const proxy = await startFaultProxy({
      target: url,
      rules: [
        {
          when: { direction: 'up', afterMessage: hasMethod('process/start') },
          do: { type: 'stall', direction: 'down' },
        },
      ],
      onEvent: ({ type }) => {
        if (type === 'fault') abort.abort();
      },
    });
    const logs: string[] = [];
    const second = await connect({ url: proxy.url, resumeSessionId: sessionId, onLog: (text) => logs.push(text) });
    const starting = second.start({ argv: ['echo', 'x'], processId: 'job' }, { signal: abort.signal });
    await expect(starting).rejects.toMatchObject({ code: 'ABORTED' });
    proxy.release('down');
    // Answered behind whatever the refusal led to.
    await second.ping();
    await second.ping();
    expect((await second.list()).processes).toMatchObject([{ processId: 'job', state: 'running' }]);
    expect(logs.filter((text) => text.includes('abandoned'))).toEqual([]);
    await second.close();
    await proxy.close();
  });

  it('is ended when it took place and a cut swallowed the answer', async () => {
    const abort = new AbortController();
    const joined = await joinByProxy({
      proxy: { rules: [{ when: { direction: 'up', afterMessage: hasMethod('process/start') }, do: 'cut' }] },
    });
    const stop = joined.client.onState((state) => {
      if (state === 'recovering') abort.abort();
    });
    const starting = joined.client.start({ argv: ['sleep', '600'], processId: 'job' }, { signal: abort.signal });
    await expect(starting).rejects.toMatchObject({ code: 'ABORTED' });
    stop();
    const { client, server } = joined;
    await until(() => client.state === 'ready', 'the connection to be back');
    await until(() => server.gauges().runningProcesses === 0, 'the abandoned process to end');
    await joined.expectClean();
  });
});

describe('a start that adopts in a second program', () => {
  it('gives it everything that was written meanwhile, much more than memory holds', async () => {
    await using server = createExecServer();
    const { url } = await server.listen();
    const start = {
      argv: ['head', '-c', String(BYTES), '/dev/zero'],
      processId: 'job',
      ifExists: 'adopt',
    } as const;
    const first = await connect({ url });
    const { sessionId } = first;
    const handle = await first.start(start);
    // Begun and not gone on with: the first program takes nothing.
    const reading = handle[Symbol.asyncIterator]();
    await reading.next();
    await first.detach();
    await until(() => server.gauges().runningProcesses === 0, 'the flood to end while nobody is attached');
    const second = await connect({ url, resumeSessionId: sessionId });
    expect(await countOutput(await second.start(start))).toEqual({ bytes: BYTES, gaps: 0 });
    await second.close();
  });
});
