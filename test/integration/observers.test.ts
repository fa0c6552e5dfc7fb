import { type Client, type CommonOptions, connect, isClientError, type ProcessHandle } from '@exec-server/client';
import { memoryTransportPair, type Transport } from '@exec-server/protocol';
import { createExecServer, type ExecServer } from '@exec-server/server';
import { startFaultProxy } from '@exec-server/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAlive } from '../support/links.js';
import { until } from '../support/until.js';

const decoder = new TextDecoder();
const sh = (script: string): string[] => ['/bin/sh', '-c', script];
/** Writes a number for each line it is given. */
const counter = sh('n=0; while read line; do n=$((n+1)); echo "$n $line"; done; exit 7');

interface Refusal {
  readonly code: string;
  readonly reason: string | undefined;
}

async function refusalOf(promise: Promise<unknown>): Promise<Refusal | undefined> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return isClientError(error) ? { code: error.code, reason: error.data.reason } : undefined;
}

/** Output of a handle from a cursor on, up to and with a text; `through` is the seq of the last event taken. */
async function readUntil(
  handle: ProcessHandle,
  end: string,
  afterSeq?: number,
): Promise<{ text: string; through: number }> {
  let text = '';
  for await (const event of handle.events(afterSeq === undefined ? {} : { afterSeq })) {
    if (event.type === 'output') text += decoder.decode(event.bytes);
    if (text.includes(end) && event.type !== 'gap') return { text, through: event.seq };
  }
  throw new Error(`no ${end} in ${text}`);
}

describe.each(['memory', 'websocket'] as const)('over %s', (link) => {
  let server: ExecServer;
  let url: string;
  const clients: Client[] = [];

  beforeEach(async () => {
    server = createExecServer();
    url = link === 'websocket' ? (await server.listen()).url : '';
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) {
      await client.close();
      expect(client.gauges()).toMatchObject({ processes: 0, pendingCalls: 0, stdinQueuedBytes: 0, queuedBytes: 0 });
    }
    await server.close();
    expect(server.gauges()).toMatchObject({
      connections: 0,
      sessions: 0,
      processes: 0,
      observers: 0,
      pendingRequests: 0,
    });
  });

  /** Dials as often as the client wants to. */
  function dial(): Transport {
    const [serverEnd, clientEnd] = memoryTransportPair();
    void server.accept(serverEnd);
    return clientEnd;
  }

  async function open(options: CommonOptions = {}): Promise<Client> {
    const client = await (link === 'memory' ? connect({ ...options, transport: dial }) : connect({ ...options, url }));
    clients.push(client);
    return client;
  }

  const observe = (session: string, options: CommonOptions = {}): Promise<Client> =>
    open({ ...options, resumeSessionId: session, attach: 'observe' });

  /** A controller with a process that counts lines, which has counted one. */
  async function counting(options: CommonOptions = {}): Promise<{ controller: Client; job: ProcessHandle }> {
    const controller = await open(options);
    const job = await controller.start({ argv: counter, processId: 'job', stdin: 'pipe' });
    await job.write('a\n');
    await readUntil(job, '1 a\n');
    return { controller, job };
  }

  it('an observer gets no file, and is told whom to ask', async () => {
    const { controller } = await counting();
    const observer = await observe(controller.sessionId);
    const refused = {
      data: { reason: 'readOnly' },
      message: expect.stringContaining('is not for observers') as unknown,
    };
    await expect(observer.fs.readFile('/etc/hostname')).rejects.toMatchObject(refused);
    await expect(observer.fs.upload('/etc/hostname', '/nowhere')).rejects.toMatchObject(refused);
  });

  it('two observers see what the controller sees, each from its own cursor', async () => {
    const { controller, job } = await counting();
    const early = await (await observe(controller.sessionId)).attach('job');
    expect(await readUntil(early, '1 a\n')).toEqual({ text: '1 a\n', through: 1 });
    await job.write('b\n');
    await readUntil(job, '2 b\n', 1);
    const late = await (await observe(controller.sessionId)).attach('job', { afterSeq: 1 });
    await job.end('c\n');
    expect((await readUntil(late, '3 c\n')).text).toBe('2 b\n3 c\n');
    expect((await readUntil(early, '3 c\n')).text).toBe('1 a\n2 b\n3 c\n');
    for (const handle of [job, early, late]) {
      expect(await handle.wait()).toEqual({ exitCode: 7, signal: undefined, reason: 'exited' });
      await handle.closed();
    }
    expect(server.gauges()).toMatchObject({ attachedSessions: 1, observers: 2 });
  });

  it('an observer gets the output of a process that was started after it came', async () => {
    const controller = await open();
    const observer = await observe(controller.sessionId);
    const job = await controller.start({ argv: sh('echo hello; exec cat'), processId: 'later', stdin: 'pipe' });
    await readUntil(job, 'hello\n');
    const seen = await observer.attach('later');
    await job.end('bye\n');
    expect((await readUntil(seen, 'bye\n')).text).toBe('hello\nbye\n');
    await job.closed();
  });

  it('an observer changes nothing: each call that would is refused as read-only', async () => {
    const { controller, job } = await counting();
    const observer = await observe(controller.sessionId);
    const seen = await observer.attach('job');
    const refused = {
      write: () => seen.write('x\n'),
      end: () => seen.end(),
      signal: () => seen.signal('SIGTERM'),
      interrupt: () => seen.signal('SIGINT'),
      terminate: () => seen.terminate(),
      kill: () => seen.terminate({ graceMs: 1, leftovers: 'kill' }),
      resize: () => seen.resize({ cols: 1, rows: 1 }),
      release: () => seen.release(),
      start: () => observer.start({ argv: ['true'], processId: 'other' }),
      run: () => observer.run(['true']),
      adopt: () => observer.start({ argv: counter, processId: 'other', ifExists: 'adopt' }),
      close: () => observer.call('session/close', {}),
    };
    for (const [name, call] of Object.entries(refused)) {
      expect(await refusalOf(call()), name).toEqual({ code: 'SERVER_ERROR', reason: 'readOnly' });
    }
    expect(observer.state).toBe('ready');
    await job.write('b\n');
    expect((await readUntil(job, '2 b\n')).text).toBe('1 a\n2 b\n');
    expect((await controller.list()).processes).toMatchObject([{ processId: 'job', state: 'running', stdinBytes: 4 }]);
    expect(await observer.list()).toEqual(await controller.list());
  });

  it('an observer that leaves, in whatever way, takes nothing with it', async () => {
    const { controller, job } = await counting();
    for (const leave of ['close', 'detach'] as const) {
      const observer = await observe(controller.sessionId);
      await observer.attach('job');
      await observer[leave]();
      await until(() => server.gauges().observers === 0, 'the observer to be gone');
    }
    expect(isAlive(job.pid ?? 0)).toBe(true);
    await job.end('b\n');
    expect(await job.wait()).toMatchObject({ exitCode: 7 });
    expect((await readUntil(job, '2 b\n')).text).toBe('1 a\n2 b\n');
    expect(controller.state).toBe('ready');
  });

  it('an observer stays when the controller leaves, and sees what is written meanwhile', async () => {
    const controller = await open();
    const script = 'read go; echo one; while ! [ -e "$FLAG" ]; do sleep 0.02; done; rm "$FLAG"; echo two; exec cat';
    const flag = `/tmp/exec-server-observers-${process.pid}-${link}`;
    const options = { argv: sh(script), processId: 'job', stdin: 'pipe', env: { FLAG: flag } } as const;
    const job = await controller.start(options);
    const observer = await observe(controller.sessionId);
    const seen = await observer.attach('job');
    await job.write('go\n');
    await readUntil(seen, 'one\n');
    await controller.detach();
    await until(() => server.gauges().attachedSessions === 0, 'the session to be detached');
    const toucher = await open();
    await toucher.run(['touch', flag]);
    expect((await readUntil(seen, 'two\n')).text).toBe('one\ntwo\n');
    expect(observer.state).toBe('ready');
    // Nobody has acknowledged what the observer has seen: the next controller gets it all.
    const next = await open({ resumeSessionId: controller.sessionId });
    expect((await readUntil(await next.attach('job'), 'two\n')).text).toBe('one\ntwo\n');
  });

  it('the observe id admits observers, and gives no control', async () => {
    const { controller } = await counting();
    const { observeId = '' } = controller;
    expect(observeId).not.toBe('');
    expect(observeId).not.toBe(controller.sessionId);
    const observer = await observe(observeId);
    expect([observer.sessionId, observer.observeId]).toEqual([observeId, observeId]);
    expect((await readUntil(await observer.attach('job'), '1 a\n')).text).toBe('1 a\n');
    const observeOnly = { code: 'SERVER_ERROR', reason: 'observeOnly' };
    expect(await refusalOf(open({ resumeSessionId: observeId }))).toEqual(observeOnly);
    expect(await refusalOf(open({ resumeSessionId: observeId, takeOver: true }))).toEqual(observeOnly);
    expect(controller.state).toBe('ready');
  });

  it('a second controller is refused while the first is there', async () => {
    const { controller } = await counting();
    const refused = await refusalOf(open({ resumeSessionId: controller.sessionId }));
    expect(refused).toEqual({ code: 'SERVER_ERROR', reason: 'attachedElsewhere' });
    expect(controller.state).toBe('ready');
  });

  it('a take-over ends the recovery of the loser, and the winner goes on at the right cursor', async () => {
    const log: string[] = [];
    const { controller: loser, job } = await counting({ onLog: (line) => log.push(line) });
    const waiting = refusalOf(job.wait());
    const states: string[] = [];
    loser.onState((state) => states.push(state));
    const observer = await observe(loser.sessionId);
    const seen = await observer.attach('job');
    const winner = await open({ resumeSessionId: loser.sessionId, takeOver: true });
    const taken = await winner.attach('job', { afterSeq: job.cursor });
    expect(await waiting).toEqual({ code: 'TAKEN_OVER', reason: 'takenOver' });
    expect(loser.failure).toMatchObject({ code: 'TAKEN_OVER' });
    expect(states).toEqual(['recovering', 'failed']);
    expect(log.filter((line) => line.includes('-> redialing'))).toHaveLength(1);
    await taken.end('b\n');
    expect(await readUntil(taken, '2 b\n')).toMatchObject({ text: '2 b\n' });
    expect((await readUntil(seen, '2 b\n')).text).toBe('1 a\n2 b\n');
    expect(await taken.wait()).toMatchObject({ exitCode: 7 });
    expect(winner.state).toBe('ready');
    expect(server.gauges()).toMatchObject({ attachedSessions: 1, observers: 1 });
  });

  it('a session that was taken over can be taken back, by a new client', async () => {
    const { controller: first } = await counting();
    const session = { resumeSessionId: first.sessionId, takeOver: true };
    const second = await open(session);
    await until(() => first.state === 'failed', 'the first to give up');
    const third = await open(session);
    await until(() => second.state === 'failed', 'the second to give up');
    expect([first.failure?.code, second.failure?.code]).toEqual(['TAKEN_OVER', 'TAKEN_OVER']);
    expect((await third.list()).processes).toMatchObject([{ processId: 'job', state: 'running' }]);
  });

  it('the end of a session ends the observers too', async () => {
    const { controller } = await counting();
    const observer = await observe(controller.sessionId);
    const seen = await observer.attach('job');
    const end = refusalOf(seen.closed());
    await controller.close();
    // The last events may arrive before the connection goes.
    expect([undefined, 'SESSION_EXPIRED']).toContain((await end)?.code);
    await until(() => observer.state === 'failed', 'the observer to give up');
    expect(observer.failure).toMatchObject({ code: 'SESSION_EXPIRED' });
  });

  it('an observer that does not read holds back nothing, and is told what it missed', async () => {
    const controller = await open();
    const bytes = 24 * 1024 * 1024;
    const argv = sh(`read go; head -c ${bytes} /dev/zero; echo end`);
    const job = await controller.start({ argv, processId: 'flood', stdin: 'pipe' });
    const observer = await observe(controller.sessionId);
    const seen = (await observer.attach('flood')).events();
    const first = seen.next();
    await job.write('go\n');
    await job.closed();
    // It has taken one event and asked for no other; nothing of it is acknowledged, and little of it is here.
    expect((await first).value).toMatchObject({ type: 'output', seq: 1 });
    expect(observer.gauges().tailBytes).toBeLessThanOrEqual(2 * 1024 * 1024);
    let taken = 0;
    let missed = 0;
    let last = 1;
    for await (const event of { [Symbol.asyncIterator]: () => seen }) {
      expect(event.type === 'gap' ? event.fromSeq : event.seq).toBe(last + 1);
      last = event.type === 'gap' ? event.throughSeq : event.seq;
      if (event.type === 'output') taken += event.bytes.byteLength;
      if (event.type === 'gap') missed += event.bytes ?? 0;
    }
    expect(taken).toBeGreaterThan(0);
    expect(missed).toBeGreaterThan(0);
    expect(taken + missed).toBeLessThanOrEqual(bytes + 4);
  });

  it('a flush brings everything there was, for the controller and for an observer', async () => {
    const { controller, job } = await counting();
    const observer = await observe(controller.sessionId);
    const seen = await observer.attach('job');
    for (let line = 0; line < 50; line++) await job.write('x\n');
    // 1 to 9 in lines of four bytes, 10 to 51 in lines of five.
    await until(async () => (await controller.list()).processes[0]?.outputBytes === 9 * 4 + 42 * 5, 'all lines');
    const nextSeq = (await controller.list()).processes[0]?.nextSeq ?? 0;
    await Promise.all([job.flush(), seen.flush()]);
    for (const handle of [job, seen]) expect((await readUntil(handle, '51 x\n')).through).toBe(nextSeq - 1);
    await job.end();
    await job.closed();
    await job.flush();
  });

  it('a ping takes some time, for an observer too', async () => {
    const controller = await open();
    for (const client of [controller, await observe(controller.sessionId)]) {
      expect(await client.ping()).toBeGreaterThan(0);
      expect(await client.ping({ timeoutMs: 5_000 })).toBeLessThan(5_000);
    }
  });
});

it('an observer whose connection is cut again and again comes back as one, and gets each event once', async () => {
  await using server = createExecServer();
  const { url } = await server.listen();
  const rules = [{ when: { direction: 'down', aboutEveryBytes: 300_000 }, do: 'cut', times: 4 }] as const;
  await using proxy = await startFaultProxy({ target: url, rules });
  await using controller = await connect({ url });
  const lines = 150_000;
  const argv = sh(`read go; seq -f %015.0f 0 ${lines - 1}`);
  const job = await controller.start({ argv, processId: 'flood', stdin: 'pipe' });
  await using observer = await connect({ url: proxy.url, resumeSessionId: controller.sessionId, attach: 'observe' });
  const seen = await observer.attach('flood');
  await job.write('go\n');
  let last = 0;
  let text = '';
  for await (const event of seen) {
    if (event.type === 'gap') throw new Error(`a gap up to ${event.throughSeq}, which the window could hold`);
    expect(event.seq).toBe(last + 1);
    last = event.seq;
    if (event.type === 'output') text += decoder.decode(event.bytes);
  }
  expect(text.length).toBe(lines * 16);
  expect(text.endsWith(`${String(lines - 1).padStart(15, '0')}\n`)).toBe(true);
  expect(proxy.counters.cuts).toBeGreaterThan(0);
  expect(controller.state).toBe('ready');
});
