/** What many processes, requests and answers may take of the server's memory together. */
import { limits } from '@exec-server/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import type { Raw } from '../support/raw.js';
import { command, flowControl, RawServed } from '../support/rawServed.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
const opened: RawServed[] = [];
function open(options?: ConstructorParameters<typeof RawServed>[1]): RawServed {
  const served = new RawServed('memory', options);
  opened.push(served);
  return served;
}
afterEach(async () => {
  for (const served of opened.splice(0)) await served.expectClean();
});

/** Everything that is kept of a process, in as many reads as it takes: bytes and what is said to be gone. */
async function readAll(raw: Raw, processId: string): Promise<{ bytes: number; lost: number }> {
  let [bytes, lost] = [0, 0];
  for (let afterSeq = 0; ; ) {
    const result = await raw.result('process/read', { processId, afterSeq });
    const { chunks, nextSeq, closed, gap } = result as {
      chunks: { chunk: string }[];
      nextSeq: number;
      closed: boolean;
      gap?: { bytes: number };
    };
    for (const { chunk } of chunks) bytes += Buffer.from(chunk, 'base64').length;
    lost += gap?.bytes ?? 0;
    afterSeq = nextSeq - 1;
    if (closed) return { bytes, lost };
  }
}

describe('the windows of many processes', () => {
  const perProcess = 2.5 * MIB;

  it.each(['session', 'server'] as const)(
    'hold no more together than a %s may, and nothing that was not delivered is lost for it',
    async (scope) => {
      const served = open({
        retainedBytesPerProcess: perProcess,
        ...(scope === 'session' ? { retainedBytesPerSession: 4 * MIB } : { retainedBytesPerServer: 4 * MIB }),
      });
      const { server } = served;
      const first = await served.dial();
      const { sessionId } = await first.result('initialize', { clientName: 'first', ...flowControl });
      first.send({ method: 'initialized' });
      const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
      for (const id of ids)
        await first.result('process/start', command(id, ['head', '-c', String(2 * MIB), '/dev/zero']));
      first.transport.abort();
      let most = 0;
      await until(() => {
        most = Math.max(most, server.gauges().retainedBytes);
        return server.gauges().runningProcesses === 0;
      }, 'the processes to end');
      expect(most).toBeLessThanOrEqual(4 * MIB);
      expect(server.gauges().spooledBytes).toBeGreaterThan(0);
      const second = await served.ready({ ...flowControl, resumeSessionId: sessionId });
      for (const id of ids) expect(await readAll(second, id), id).toEqual({ bytes: 2 * MIB, lost: 0 });
    },
  );

  it('are not limited to less than what one process may hold', () => {
    const options = { retainedBytesPerProcess: perProcess, retainedBytesPerSession: MIB };
    expect(() => new RawServed('memory', options)).toThrow('retainedBytesPerSession');
  });
});

describe('large answers', () => {
  it('do not pile up, however many are asked for by a client that reads none', async () => {
    const served = open();
    const raw = await served.ready(flowControl);
    const bytes = 3 * MIB;
    await raw.result('process/start', command('p', ['sh', '-c', `head -c ${bytes} /dev/zero`]));
    const ack = setInterval(() => raw.send({ method: 'process/ack', params: { processId: 'p', seq: 1e9 } }), 5);
    await until(() => served.server.gauges().runningProcesses === 0, 'the process to end');
    clearInterval(ack);
    raw.transport.pause();
    for (let id = 1; id <= 40; id += 1)
      raw.send({ id: `read ${id}`, method: 'process/read', params: { processId: 'p' } });
    for (let turn = 0; turn < 300; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      expect(served.server.gauges().queuedBytes).toBeLessThan(limits.REPLY_HIGH_WATER_BYTES + 2 * bytes);
    }
    expect(served.server.gauges().pendingRequests).toBeGreaterThan(20);
    raw.transport.resume();
    await raw.answerTo('read 40');
    const answers = raw.received.filter(({ id }) => typeof id === 'string' && id.startsWith('read'));
    expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: 40 }, (_, index) => `read ${index + 1}`));
  });

  it('are not made for a client that has gone', async () => {
    const served = open();
    const raw = await served.ready(flowControl);
    await raw.result('process/start', command('p', ['head', '-c', String(MIB / 2), '/dev/zero']));
    raw.transport.pause();
    for (let id = 1; id <= 200; id += 1)
      raw.send({ id: `read ${id}`, method: 'process/read', params: { processId: 'p' } });
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    raw.transport.abort();
    await until(() => served.server.gauges().pendingRequests === 0, 'the requests to be dropped');
  });
});

describe('the bytes of unanswered requests', () => {
  it('have a limit, which no urgent request meets', async () => {
    const served = open();
    const raw = await served.ready();
    await raw.result('process/start', command('p', ['sleep', '600'], { pipeStdin: true }));
    const chunk = Buffer.alloc(12 * MIB).toString('base64');
    // The first is taken, those after it wait or are refused.
    for (let id = 1; id <= 8; id += 1) {
      raw.send({ id, method: 'process/write', params: { processId: 'p', writeId: String(id), chunk } });
    }
    const refused = (await raw.until(8)).filter(({ error }) => error !== undefined);
    expect(refused.length).toBeGreaterThan(0);
    for (const { error } of refused) expect(['stdinQueueFull', 'tooManyRequests']).toContain(error?.data?.['reason']);
    expect(served.server.gauges().pendingRequestBytes).toBeLessThanOrEqual(limits.PENDING_REQUEST_BYTES + 17 * MIB);
    expect(await raw.result('process/terminate', { processId: 'p' })).toEqual({ running: true });
  });
});
