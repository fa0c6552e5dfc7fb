/** Who may attach to a session, and what each of them gets, as raw messages see it. */
import { limits } from '@exec-server/protocol';
import type { ExecServerOptions } from '@exec-server/server';
import { afterEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../support/manualClock.js';
import type { Raw, RawMessage } from '../support/raw.js';
import { command, flowControl, type RawLink, rawLinks, RawServed } from '../support/rawServed.js';
import { until } from '../support/until.js';

const opened: RawServed[] = [];
function open(link: RawLink, options?: ExecServerOptions): RawServed {
  const served = new RawServed(link, options);
  opened.push(served);
  return served;
}
afterEach(async () => {
  for (const served of opened.splice(0)) await served.expectClean();
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const reasonOf = ({ error }: RawMessage): unknown => error?.data?.['reason'];

/** Takes messages up to the notification `method` of the process. */
async function untilPushed(raw: Raw, method: string, processId = 'p'): Promise<RawMessage[]> {
  const seen: RawMessage[] = [];
  for (;;) {
    const message = await raw.next();
    seen.push(message);
    if (message.method === method && message.params?.['processId'] === processId) return seen;
  }
}

function outputOf(messages: readonly RawMessage[]): string {
  const pieces = messages
    .filter(({ method }) => method === 'process/output')
    .map(({ params }) => Buffer.from(String(params?.['chunk']), 'base64'));
  return Buffer.concat(pieces).toString('latin1');
}

interface Shared {
  readonly controller: Raw;
  readonly sessionId: string;
  readonly observeId: string;
}

async function share(served: RawServed, params: object = {}): Promise<Shared> {
  const controller = await served.dial();
  const result = await controller.result('initialize', { clientName: 'controller', ...flowControl, ...params });
  controller.send({ method: 'initialized' });
  return { controller, sessionId: String(result['sessionId']), observeId: String(result['observeId']) };
}

const observing = (id: string): object => ({ ...flowControl, attach: 'observe', resumeSessionId: id });

describe.each(rawLinks)('an observer over %s', (link) => {
  it('is admitted by either id, gets back the one it came with, and never learns the other', async () => {
    const served = open(link);
    const { sessionId, observeId } = await share(served);
    expect(observeId).not.toBe(sessionId);
    for (const id of [sessionId, observeId]) {
      const observer = await served.dial();
      const result = await observer.result('initialize', { clientName: 'observer', ...observing(id) });
      expect(result).toMatchObject({ sessionId: id, observeId, resumed: true });
    }
    expect(served.server.gauges()).toMatchObject({ sessions: 1, attachedSessions: 1, observers: 2 });
  });

  it('gets what is kept behind its own cursor, and what comes', async () => {
    const served = open(link);
    const { controller, observeId } = await share(served);
    await controller.result(
      'process/start',
      command('p', ['sh', '-c', 'echo one; read go; echo two'], { pipeStdin: true }),
    );
    await untilPushed(controller, 'process/output');
    const observer = await served.ready(observing(observeId));
    expect(await observer.result('process/list')).toMatchObject({ processes: [{ processId: 'p', state: 'running' }] });
    const followed = await observer.result('process/follow', { processId: 'p' });
    expect(followed).toMatchObject({ firstRetainedSeq: 1, nextSeq: 2 });
    await untilPushed(observer, 'process/output');
    await controller.result('process/write', { processId: 'p', writeId: '1', chunk: base64('go\n') });
    await untilPushed(observer, 'process/closed');
    expect(outputOf(observer.received)).toBe('one\ntwo\n');
    // The controller has acknowledged nothing, and what the observer had is not delivered.
    await untilPushed(controller, 'process/closed');
    expect(await observer.result('process/read', { processId: 'p' })).toMatchObject({ closed: true, nextSeq: 5 });
  });

  it('gets a process that is started later at once, and one that was there not before it asks', async () => {
    const served = open(link);
    const { controller, observeId } = await share(served);
    await controller.result('process/start', command('old', ['sh', '-c', 'echo old; read go'], { pipeStdin: true }));
    await untilPushed(controller, 'process/output', 'old');
    const observer = await served.ready(observing(observeId));
    await controller.result('process/start', command('new', ['echo', 'new']));
    const seen = await untilPushed(observer, 'process/closed', 'new');
    expect(seen.every(({ params }) => params?.['processId'] === 'new')).toBe(true);
    expect(await observer.result('process/read', { processId: 'old' })).toMatchObject({ nextSeq: 2 });
    await controller.result('process/write', { processId: 'old', writeId: '1', chunk: base64('go\n') });
    const rest = await untilPushed(observer, 'process/closed', 'old');
    expect(rest.map(({ params }) => params?.['seq'])).toEqual([2, 3]);
  });

  it.each([
    ['process/start', command('q', ['true'])],
    ['process/write', { processId: 'p', writeId: '1', chunk: base64('x') }],
    ['process/signal', { processId: 'p', signal: 'SIGKILL' }],
    ['process/terminate', { processId: 'p' }],
    ['process/resize', { processId: 'p', cols: 1, rows: 1 }],
    ['process/release', { processId: 'p' }],
    ['session/close', undefined],
  ])('may not call %s', async (method, params) => {
    const served = open(link);
    const { controller, observeId } = await share(served);
    await controller.result('process/start', command('p', ['cat'], { pipeStdin: true }));
    const observer = await served.ready(observing(observeId));
    expect(await observer.call(method, params)).toMatchObject({
      error: { code: -32600, data: { reason: 'readOnly' } },
    });
    expect(await observer.result('process/list')).toMatchObject({
      processes: [{ processId: 'p', state: 'running', stdinBytes: 0 }],
    });
  });

  it('loses its connection when it acknowledges, and nobody else does', async () => {
    const served = open(link);
    const { controller, observeId } = await share(served);
    const observer = await served.ready(observing(observeId));
    observer.send({ method: 'process/ack', params: { processId: 'p', seq: 1 } });
    await observer.closed;
    expect(await controller.result('ping')).toEqual({});
  });

  it('stays when the controller goes, keeps no session alive, and ends with it', async () => {
    const clock = new ManualClock();
    const served = open(link, { clock, sessionLeaseMs: 1000 });
    const { controller, observeId } = await share(served);
    await controller.result('process/start', command('p', ['cat'], { pipeStdin: true }));
    const observer = await served.ready(observing(observeId));
    controller.transport.abort();
    await controller.closed;
    while (served.server.gauges().attachedSessions > 0) await observer.result('ping');
    expect(await observer.result('process/list')).toMatchObject({ processes: [{ state: 'running' }] });
    clock.advance(1000);
    expect((await observer.closed).kind).toBe('ended');
    const late = await served.dial();
    expect(reasonOf(await late.call('initialize', { clientName: 'late', ...observing(observeId) }))).toBe(
      'expiredSession',
    );
  });

  it('is told the range that is gone, and the controller has lost nothing', async () => {
    const served = open(link, { retainedBytesPerProcess: limits.PAUSE_PROCESS_BYTES + 256 * 1024 });
    const { controller, observeId } = await share(served);
    const bytes = 4_000_000;
    await controller.result(
      'process/start',
      command('p', ['sh', '-c', `head -c ${bytes} /dev/zero; read go`], { pipeStdin: true }),
    );
    let received = 0;
    while (received < bytes) {
      const { method, params } = await controller.next();
      if (method !== 'process/output') continue;
      received += Buffer.from(String(params?.['chunk']), 'base64').length;
      controller.send({ method: 'process/ack', params: { processId: 'p', seq: params?.['seq'] } });
    }
    const observer = await served.ready(observing(observeId));
    // Behind the acknowledgements.
    await controller.result('ping');
    await observer.result('process/follow', { processId: 'p' });
    const { throughSeq } = await observer.result('process/flush', { processId: 'p' });
    const [gap, first] = observer.received.filter(({ method }) => method !== undefined);
    expect(gap).toMatchObject({ method: 'process/gap', params: { processId: 'p', fromSeq: 1 } });
    expect(first?.params?.['seq']).toBe(Number(gap?.params?.['throughSeq']) + 1);
    expect(Number(gap?.params?.['bytes']) + outputOf(observer.received).length).toBe(bytes);
    expect(throughSeq).toBe(observer.received.findLast(({ method }) => method === 'process/output')?.params?.['seq']);
  });
});

describe('params of initialize that do not go together', () => {
  it.each([
    ['attach', { attach: 'observe' }],
    ['takeOver', { takeOver: true }],
    ['takeOver', { takeOver: true, attach: 'observe', resumeSessionId: 'x' }],
    ['attach', { attach: 'watch' }],
  ])('are refused by the name %s', async (field, params) => {
    const raw = await open('memory').dial();
    const { error } = await raw.call('initialize', { clientName: 'raw', ...params });
    expect(error).toMatchObject({ code: -32602, data: { reason: 'invalidParams', field } });
  });

  it('leave the connection to be used for something else', async () => {
    const served = open('memory');
    const raw = await served.dial();
    expect(reasonOf(await raw.call('initialize', { clientName: 'raw', attach: 'observe', resumeSessionId: 'x' }))).toBe(
      'unknownSession',
    );
    await raw.initialize();
    expect(await raw.result('process/start', command('p', ['true']))).toMatchObject({ processId: 'p' });
  });
});

describe.each(rawLinks)('a take-over over %s', (link) => {
  it('gives the session to the one that says so; the other is closed, and is told so when it comes back', async () => {
    const served = open(link);
    const { controller, sessionId } = await share(served, { attachId: 'first' });
    await controller.result('process/start', command('p', ['cat'], { pipeStdin: true }));
    const poll = controller.call('process/read', { processId: 'p', waitMs: 600_000 });
    const second = await served.ready({
      ...flowControl,
      attachId: 'second',
      resumeSessionId: sessionId,
      takeOver: true,
    });
    // The long poll was settled before.
    expect(await poll).toMatchObject({ result: { chunks: [] } });
    expect(await controller.closed).toMatchObject({ kind: 'ended' });
    const back = await served.dial();
    const refused = await back.call('initialize', {
      clientName: 'back',
      attachId: 'first',
      resumeSessionId: sessionId,
    });
    expect(refused).toMatchObject({ error: { code: -32010, data: { reason: 'takenOver' } } });
    await second.result('process/read', { processId: 'p' });
    await second.result('process/write', { processId: 'p', offset: 0, chunk: base64('mine'), eof: true });
    expect(outputOf(await untilPushed(second, 'process/closed'))).toBe('mine');
  });

  it('is not possible with an id that admits observers', async () => {
    const served = open(link);
    const { observeId } = await share(served);
    const raw = await served.dial();
    const refused = await raw.call('initialize', { clientName: 'raw', resumeSessionId: observeId, takeOver: true });
    expect(reasonOf(refused)).toBe('observeOnly');
  });
});

describe.each(rawLinks)('a cursor that is followed over %s', (link) => {
  it('has pushes start again behind it', async () => {
    const served = open(link);
    const { controller } = await share(served);
    await controller.result('process/start', command('p', ['sh', '-c', 'echo one; echo two >&2; exit 3']));
    await untilPushed(controller, 'process/closed');
    controller.send({ method: 'process/ack', params: { processId: 'p', seq: 4 } });
    await controller.result('process/follow', { processId: 'p', afterSeq: 2 });
    const again = await untilPushed(controller, 'process/closed');
    expect(again.map(({ params }) => params?.['seq'])).toEqual([3, 4]);
  });

  it('is refused when it lies beyond the last event, and when it is of another life of the server', async () => {
    const served = open(link);
    const { controller } = await share(served);
    await controller.result('process/start', command('p', ['cat'], { pipeStdin: true }));
    expect(await controller.call('process/follow', { processId: 'p', afterSeq: 1 })).toMatchObject({
      error: { code: -32602, data: { reason: 'invalidParams', field: 'afterSeq', nextSeq: 1 } },
    });
    const { epoch } = await controller.result('process/list');
    expect(await controller.call('process/follow', { processId: 'p', epoch: 'another' })).toMatchObject({
      error: { data: { reason: 'otherEpoch', epoch } },
    });
    expect(await controller.result('process/follow', { processId: 'p', epoch })).toMatchObject({ epoch });
    expect(reasonOf(await controller.call('process/follow', { processId: 'none' }))).toBe('unknownProcess');
  });
});

describe.each(rawLinks)('a flush over %s', (link) => {
  it('is answered behind the last push there was, however much is on its way', async () => {
    const served = open(link);
    const { controller } = await share(served);
    const bytes = 900_000;
    await controller.result(
      'process/start',
      command('p', ['sh', '-c', `head -c ${bytes} /dev/zero; read go`], { pipeStdin: true }),
    );
    for (;;) {
      const { processes } = await controller.result('process/list');
      if (Array.isArray(processes) && (processes[0] as { outputBytes: number }).outputBytes === bytes) break;
    }
    const { throughSeq } = await controller.result('process/flush', { processId: 'p' });
    const pushed = controller.received.filter(({ method }) => method === 'process/output');
    expect(pushed.at(-1)?.params?.['seq']).toBe(throughSeq);
    expect(outputOf(controller.received)).toHaveLength(bytes);
  });

  it('waits for acknowledgements where the credit is used up', async () => {
    const served = open(link);
    const { controller } = await share(served);
    await controller.result(
      'process/start',
      command('p', ['head', '-c', String(limits.CREDIT_BYTES_PER_PROCESS * 1.5), '/dev/zero']),
    );
    let flushed: RawMessage | undefined;
    const flush = async (): Promise<RawMessage> => {
      const id = 'flush';
      for (;;) {
        const { processes } = await controller.result('process/list');
        if (Array.isArray(processes) && (processes[0] as { state: string }).state === 'closed') break;
      }
      controller.send({ id, method: 'process/flush', params: { processId: 'p' } });
      await controller.result('ping');
      flushed = controller.received.find((message) => message.id === id);
      expect(flushed).toBeUndefined();
      const last = controller.received.findLast(({ method }) => method === 'process/output');
      controller.send({ method: 'process/ack', params: { processId: 'p', seq: last?.params?.['seq'] } });
      return controller.answerTo(id);
    };
    const { result } = await flush();
    const closed = controller.received.find(({ method }) => method === 'process/closed');
    expect(result?.['throughSeq']).toBe(closed?.params?.['seq']);
  });

  it('is answered at once where nothing is pushed before a read', async () => {
    const served = open(link);
    const { controller, sessionId } = await share(served);
    await controller.result('process/start', command('p', ['sh', '-c', 'echo one; read go'], { pipeStdin: true }));
    await untilPushed(controller, 'process/output');
    controller.transport.abort();
    await controller.closed;
    while (served.server.gauges().attachedSessions > 0) await new Promise((resolve) => setImmediate(resolve));
    const again = await served.ready({ ...flowControl, resumeSessionId: sessionId });
    expect(await again.result('process/flush', { processId: 'p' })).toEqual({ throughSeq: 0 });
  });
});

describe.each(rawLinks)('a client with flow control that resumes and asks for nothing, over %s', (link) => {
  it('holds no process back for longer than the wait for its first read, and finds everything when it asks', async () => {
    const clock = new ManualClock();
    const served = open(link, { clock });
    const { server } = served;
    const { controller, sessionId } = await share(served);
    const bytes = 6_000_000;
    const argv = ['sh', '-c', `read go; head -c ${bytes} /dev/zero`];
    await controller.result('process/start', command('p', argv, { pipeStdin: true }));
    controller.transport.abort();
    await controller.closed;
    await until(() => server.gauges().attachedSessions === 0, 'the loss to be noticed');
    const again = await served.ready({ ...flowControl, resumeSessionId: sessionId });
    await again.result('process/write', { processId: 'p', writeId: '1', chunk: base64('go\n') });
    await until(() => server.gauges().heldBackProcesses === 1, 'the process to be held back');
    clock.advance(limits.FIRST_READ_WAIT_MS);
    await until(() => server.gauges().runningProcesses === 0, 'the process to run on');
    expect(again.received.filter(({ method }) => method !== undefined)).toEqual([]);
    await again.result('process/follow', { processId: 'p' });
    let received = 0;
    for (let seq = 0; received < bytes; ) {
      const { method, params } = await again.next();
      if (method !== 'process/output') continue;
      expect(params?.['seq']).toBe((seq += 1));
      received += Buffer.from(String(params?.['chunk']), 'base64').length;
      again.send({ method: 'process/ack', params: { processId: 'p', seq } });
    }
    expect(received).toBe(bytes);
  });
});

describe.each(rawLinks)('a client that comes back on a second connection, over %s', (link) => {
  it('finds what its first one brought about, and nothing is brought about later', async () => {
    const served = open(link);
    const { controller, sessionId } = await share(served, { attachId: 'mine' });
    for (let index = 0; index < 300; index += 1) {
      controller.send({ id: `start ${index}`, method: 'process/start', params: command(`p${index}`, ['true']) });
    }
    const second = await served.ready({ ...flowControl, attachId: 'mine', resumeSessionId: sessionId });
    const known = async (): Promise<unknown> => {
      const { processes } = (await second.result('process/list')) as { processes: { processId: string }[] };
      return processes.map(({ processId }) => processId);
    };
    const first = await known();
    await until(() => served.server.gauges().runningProcesses === 0, 'the processes to end');
    await controller.closed;
    expect(await known()).toEqual(first);
  });
});

describe('a list of processes with very long arguments', () => {
  it('fits an answer, and says what it left out', async () => {
    const served = open('memory');
    const { controller } = await share(served);
    const long = '\u0001'.repeat(100_000);
    const argv = ['true', ...Array.from({ length: 10 }, () => long)];
    for (let index = 0; index < 20; index += 1) {
      await controller.result('process/start', command(`p${index}`, argv));
    }
    const { processes } = (await controller.result('process/list')) as { processes: Record<string, unknown>[] };
    expect(processes).toHaveLength(20);
    expect(processes[0]).toMatchObject({ argv: ['true', long.slice(0, 4091)], argvCut: true });
    await controller.result('process/start', command('short', ['true', 'x']));
    const again = (await controller.result('process/list')) as { processes: Record<string, unknown>[] };
    expect(again.processes.at(-1)).toMatchObject({ argv: ['true', 'x'] });
    expect(again.processes.at(-1)).not.toHaveProperty('argvCut');
  });
});
