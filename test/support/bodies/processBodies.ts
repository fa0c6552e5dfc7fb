/** What a client does with processes, on whatever server it is joined to. */
import type { ProcessEvent, ProcessHandle } from '@exec-server/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Joined } from '../links.js';
import type { Subject } from './subject.js';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

async function collect(handle: ProcessHandle): Promise<ProcessEvent[]> {
  const events: ProcessEvent[] = [];
  for await (const event of handle) events.push(event);
  return events;
}

export function processBodies({ extended, join }: Subject): void {
  /** What a foreign server does not tell. */
  const told = <T>(value: T): T | undefined => (extended ? value : undefined);
  let joined: Joined;
  beforeEach(async () => {
    joined = await join();
  });
  afterEach(() => joined.expectClean());

  it('starts a program and tells its exit', async () => {
    const handle = await joined.client.start({ argv: ['true'], processId: 'proc-1' });
    expect(handle.processId).toBe('proc-1');
    if (extended) expect(handle.pid).toBeGreaterThan(0);
    else expect(handle.pid).toBeUndefined();
    expect(await handle.wait()).toEqual({ exitCode: 0, signal: undefined, reason: told('exited') });
    await handle.closed();
  });

  it('streams what a program prints', async () => {
    const result = await joined.client.run(['/bin/sh', '-c', "sleep 0.05; printf 'session output\\n'"]);
    expect(result.text()).toBe('session output\n');
    expect(result).toMatchObject({ exitCode: 0, truncated: false, closed: true });
  });

  it('pushes output, exit and close under one sequence', async () => {
    const handle = await joined.client.start({
      argv: ['/bin/sh', '-c', "printf 'event output\\n'; sleep 0.1; printf 'event err\\n' >&2; sleep 0.1; exit 7"],
    });
    const events = await collect(handle);
    expect(events.map((event) => (event.type === 'output' ? { ...event, bytes: text(event.bytes) } : event))).toEqual([
      { type: 'output', seq: 1, stream: 'stdout', bytes: 'event output\n' },
      { type: 'output', seq: 2, stream: 'stderr', bytes: 'event err\n' },
      { type: 'exited', seq: 3, exitCode: 7, reason: told('exited') },
      { type: 'closed', seq: 4, reason: told('ended') },
    ]);
  });

  it('replays every event to an iterator that comes after the close', async () => {
    const handle = await joined.client.start({ argv: ['/bin/sh', '-c', "printf 'late one\\n'; printf 'late two\\n'"] });
    await handle.closed();
    const once = await collect(handle);
    const again = await collect(handle);
    expect(once).toEqual(again);
    expect(once.map((event) => (event.type === 'output' ? text(event.bytes) : '')).join('')).toBe(
      'late one\nlate two\n',
    );
    expect(once.at(-1)?.type).toBe('closed');
  });

  it('keeps events that arrive before anybody iterates', async () => {
    const handle = await joined.client.start({ argv: ['/bin/sh', '-c', "printf 'queued output\\n'"] });
    await handle.wait();
    const types = (await collect(handle)).map(({ type }) => type);
    if (extended) expect(types).toEqual(['output', 'exited', 'closed']);
    else expect([types.toSorted(), types.at(-1)]).toEqual([['closed', 'exited', 'output'], 'closed']);
  });

  it('delivers output that a descendant writes after the exit, and closes only then', async () => {
    const handle = await joined.client.start({
      argv: ['/bin/sh', '-c', '(sleep 0.3; echo late) & echo early; exit 4'],
    });
    const events = await collect(handle);
    const outputs = events.flatMap((event) => (event.type === 'output' ? [text(event.bytes)] : []));
    expect(outputs).toEqual(['early\n', 'late\n']);
    // A foreign server may tell the exit before output that was written earlier.
    const types = events.map(({ type }) => type);
    if (extended) expect(types).toEqual(['output', 'exited', 'output', 'closed']);
    expect(types.at(-1)).toBe('closed');
    expect(events[types.indexOf('exited')]).toMatchObject({ exitCode: 4 });
  });

  it('carries stdin to a program and its answer back', async () => {
    const handle = await joined.client.start({
      argv: ['/bin/sh', '-c', 'IFS= read -r line; printf "from-stdin:%s\\n" "$line"'],
      stdin: 'pipe',
    });
    await handle.write('hello\n');
    const events = await collect(handle);
    const output = events.find(({ type }) => type === 'output');
    expect(output?.type === 'output' && text(output.bytes)).toBe('from-stdin:hello\n');
  });

  it.runIf(extended)('ends a reader with EOF', async () => {
    const result = await joined.client.run(['cat'], { input: 'all of it' });
    expect(result.text()).toBe('all of it');
  });

  it('refuses a write to a program that was started without stdin', async () => {
    const handle = await joined.client.start({ argv: ['/bin/sh', '-c', 'sleep 0.3'] });
    await expect(handle.write('ignored\n')).rejects.toMatchObject({ code: 'STDIN_CLOSED', data: { acceptedBytes: 0 } });
    expect((await handle.wait()).exitCode).toBe(0);
  });

  it('interrupts a program', async () => {
    const handle = await joined.client.start({
      argv: ['/bin/sh', '-c', 'trap "echo interrupted; exit 42" INT; echo ready; while :; do sleep 0.05; done'],
    });
    const events: ProcessEvent[] = [];
    for await (const event of handle) {
      events.push(event);
      if (event.type === 'output' && text(event.bytes) === 'ready\n') {
        expect(await handle.signal('SIGINT')).toEqual({ delivered: told(true) });
      }
    }
    const seen = events.map((event) => (event.type === 'output' ? text(event.bytes) : event.type));
    const expected = ['ready\n', 'interrupted\n', 'exited', 'closed'];
    // A foreign server may tell the exit before output that was written earlier.
    if (extended) expect(seen).toEqual(expected);
    else expect([seen.toSorted(), seen.at(-1)]).toEqual([expected.toSorted(), 'closed']);
    expect(await handle.wait()).toEqual({ exitCode: 42, signal: undefined, reason: told('exited') });
    expect(await handle.signal('SIGINT')).toEqual({ delivered: told(false) });
  });

  it.runIf(extended)('names the signal of a death and tells it from an exit code', async () => {
    const killed = await joined.client.run(['sh', '-c', 'kill -9 $$']);
    expect(killed).toMatchObject({ exitCode: 137, signal: 'SIGKILL' });
    const exited = await joined.client.run(['sh', '-c', 'exit 137']);
    expect(exited).toMatchObject({ exitCode: 137, signal: undefined });
  });

  it('terminates the group, and delivers what was written before', async () => {
    const handle = await joined.client.start({
      argv: ['sh', '-c', 'head -c 60000 /dev/zero; echo done >&2; sleep 600 & sleep 600'],
    });
    let bytes = 0;
    for await (const event of handle) {
      if (event.type !== 'output') continue;
      if (event.stream === 'stdout') bytes += event.bytes.length;
      else expect(await handle.terminate()).toEqual({ running: true });
    }
    // A foreign server may drop what was written before.
    if (extended) expect(bytes).toBe(60_000);
    expect(await handle.wait()).toEqual({ exitCode: 137, signal: told('SIGKILL'), reason: told('terminated') });
    expect(await handle.terminate()).toEqual({ running: false });
  });

  it('gives children real pipes: /dev/stdout, /dev/stderr and /dev/stdin can be opened', async () => {
    const result = await joined.client.run(['sh', '-c', 'echo hi > /dev/stdout; echo x | tee /dev/stderr']);
    expect(result.text()).toBe('hi\nx\n');
    expect(result.text('stderr')).toBe('x\n');
    if (!extended) return;
    const reader = await joined.client.run(['sh', '-c', 'sleep 0.3; cat /dev/stdin; echo end'], {
      input: 'sent before',
    });
    expect(reader.text()).toBe('sent beforeend\n');
  });

  it('keeps the bytes of a program that writes a lot right before it exits', async () => {
    for (let run = 0; run < 10; run += 1) {
      const result = await joined.client.run(['sh', '-c', 'head -c 200000 /dev/zero; exit 9']);
      expect(result).toMatchObject({ exitCode: 9, stdoutBytes: 200_000 });
    }
  });

  it('ends though nobody reads one of two full streams', async () => {
    const handle = await joined.client.start({
      argv: ['sh', '-c', 'head -c 8388608 /dev/zero; head -c 8388608 /dev/zero >&2'],
    });
    expect((await handle.wait()).exitCode).toBe(0);
    await handle.closed();
  });

  it('frees the id of a start that failed, and says what was wrong', async () => {
    const start = (argv: string[], cwd?: string): Promise<unknown> =>
      joined.client.start({ argv, processId: 'same', ...(cwd === undefined ? {} : { cwd }) });
    const because = (reason: string): object => ({ code: 'SERVER_ERROR', data: extended ? { reason } : {} });
    await expect(start(['/no/such/program'])).rejects.toMatchObject(because('programNotFound'));
    await expect(start(['true'], '/no/such/folder')).rejects.toMatchObject(because('cwdNotFound'));
    await expect(start([])).rejects.toMatchObject(because('emptyArgv'));
    await expect(start(['/tmp'])).rejects.toMatchObject(because('notExecutable'));
    await expect(start(['echo', 'a\0b'])).rejects.toMatchObject(because('nulByte'));
    await start(['true']);
    await expect(start(['true'])).rejects.toMatchObject({ code: 'DUPLICATE_PROCESS' });
  });

  it('runs many programs at once and loses none', async () => {
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, index) => joined.client.run(['sh', '-c', `echo ${index}; exit ${index % 7}`])),
    );
    expect(results.map((result) => result.text())).toEqual(results.map((_, index) => `${index}\n`));
    expect(results.map(({ exitCode }) => exitCode)).toEqual(results.map((_, index) => index % 7));
  });

  it('gives a command the environment of the server without its secrets, and what is set on top', async () => {
    const result = await joined.client.run(['sh', '-c', 'echo "$PATH|$EXTRA"'], { env: { EXTRA: 'on top' } });
    // The reference puts folders of its own in front.
    const inherited = `${process.env['PATH']}|on top\n`;
    expect(extended ? result.text() : result.text().slice(-inherited.length)).toBe(inherited);
  });
}
