import { limits, processId, WireError } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { FakeChild, FakeOutput, FakeStdin } from '../../../../test/support/fakeChild.js';
import { ManualClock } from '../../../../test/support/manualClock.js';
import { rig, settled } from '../../../../test/support/spoolRig.js';
import type { Progress } from './flow.js';
import { Process, type ProcessOptions } from './process.js';

const MIB = 1024 * 1024;

interface Setup {
  readonly process: Process;
  readonly child: FakeChild;
  readonly stdout: FakeOutput;
  readonly stderr: FakeOutput;
  readonly clock: ManualClock;
  readonly closed: Process[];
}

interface SetupOptions {
  readonly stdin?: FakeStdin;
  readonly begin?: boolean;
  readonly lingerMs?: number;
  readonly openSpool?: ProcessOptions['openSpool'];
}

function setup(options: SetupOptions = {}): Setup {
  const clock = new ManualClock();
  const closed: Process[] = [];
  const process = new Process({
    id: processId('p'),
    clock,
    logLimits: { bytes: 4 * MIB, chunks: limits.RETAINED_CHUNKS_PER_PROCESS },
    lingerMs: options.lingerMs,
    openSpool: options.openSpool,
    onClosed: (which) => closed.push(which),
  });
  const stdout = new FakeOutput('stdout');
  const stderr = new FakeOutput('stderr');
  const child = new FakeChild({
    outputs: [stdout, stderr],
    ...(options.stdin === undefined ? {} : { stdin: options.stdin }),
  });
  if (options.begin !== false) process.begin(child);
  return { process, child, stdout, stderr, clock, closed };
}

/** A reader that has acknowledged everything it was sent. */
const having = (seq: number): Progress => ({ ackedSeq: seq, cursor: seq, sentSeq: seq });

function kinds({ log }: Process): string[] {
  const seen: string[] = [];
  for (let seq = log.firstRetainedSeq; seq < log.nextSeq; seq += 1) seen.push(log.at(seq)?.kind ?? 'lost');
  return seen;
}

describe('a process', () => {
  it('is starting, running, exited and closed, in this order', () => {
    const { process, child, stdout, stderr } = setup({ begin: false });
    expect(process.state).toBe('starting');
    process.begin(child);
    expect(process.state).toBe('running');
    expect(process.pid).toBe(child.pid);
    child.exit({ code: 3 });
    expect(process.state).toBe('exited');
    stdout.end();
    stderr.end();
    expect(process.state).toBe('closed');
  });

  it('closes after the exit and the end of every output, whichever comes last', () => {
    const late = setup();
    late.child.endOutputs();
    expect(late.process.state).toBe('running');
    late.child.exit();
    expect(kinds(late.process)).toEqual(['exited', 'closed']);
    const held = setup();
    held.child.exit();
    held.stdout.end();
    held.stderr.emit('late');
    expect(held.process.state).toBe('exited');
    held.stderr.end();
    expect(kinds(held.process)).toEqual(['exited', 'output', 'closed']);
    expect(held.closed).toEqual([held.process]);
  });

  it('numbers what both outputs bring in the order of arrival, and skips empty pieces', () => {
    const { process, stdout, stderr } = setup();
    stdout.emit('a');
    stderr.emit('b');
    stdout.emit('');
    stdout.emit('c');
    const { chunks } = process.log.read(0, { maxBytes: 100, maxChunks: 10 });
    expect(chunks.map(({ seq, stream }) => [seq, stream])).toEqual([
      [1, 'stdout'],
      [2, 'stderr'],
      [3, 'stdout'],
    ]);
  });

  it.each([
    [{ code: 0 }, { exitCode: 0, signal: undefined }],
    [{ code: 255 }, { exitCode: 255, signal: undefined }],
    [{ signal: 'SIGKILL' }, { exitCode: 137, signal: 'SIGKILL' }],
    [{ signal: 'SIGTERM' }, { exitCode: 143, signal: 'SIGTERM' }],
    [{}, { exitCode: -1, signal: undefined }],
  ])('that ended with %j tells %j', (exit, told) => {
    const { process, child } = setup();
    child.exit(exit);
    expect(process.log.exited).toMatchObject(told);
  });

  it('tells watchers of each event, until they end', () => {
    const { process, child, stdout } = setup();
    const seen: number[] = [];
    const stop = process.watch(() => seen.push(process.log.nextSeq - 1));
    stdout.emit('a');
    child.exit();
    stop();
    child.endOutputs();
    expect(seen).toEqual([1, 2]);
  });

  it('settles its start, either way', async () => {
    const failed = setup({ begin: false });
    failed.process.fail();
    await failed.process.started;
    expect(failed.process.state).toBe('starting');
    await setup().process.started;
  });

  it('frees stdin and answers waiting writes at its exit', async () => {
    const stdin = new FakeStdin();
    const { process, child } = setup({ stdin });
    const write = (length: number) =>
      process.writeStdin({ bytes: new Uint8Array(length), writeId: String(length), offset: undefined, eof: false });
    write(limits.STDIN_QUEUE_BYTES);
    expect(process.stdinQueuedBytes).toBe(limits.STDIN_QUEUE_BYTES);
    const waiting = write(1);
    child.exit();
    expect('answer' in waiting && (await waiting.answer).status).toBe('stdinClosed');
    expect(stdin.destroyed).toBe(true);
    expect(process.stdinQueuedBytes).toBe(0);
  });
});

describe('backpressure', () => {
  it('pauses both outputs at 2 MiB that the attached reader has not got, and lets them go on at 1 MiB', () => {
    const { process, stdout, stderr } = setup();
    process.delivered(having(0));
    stdout.emit(new Uint8Array(MIB));
    expect(stdout.paused).toBe(false);
    stderr.emit(new Uint8Array(MIB));
    expect([stdout.paused, stderr.paused]).toEqual([true, true]);
    stdout.emit(new Uint8Array(1));
    process.delivered(having(1));
    expect(stdout.paused).toBe(true);
    process.delivered(having(2));
    expect([stdout.paused, stderr.paused]).toEqual([false, false]);
  });

  it('pauses as well when tiny chunks would leave the window by number before they were sent', () => {
    const { process, stdout } = setup();
    process.delivered(having(0));
    while (!stdout.paused) stdout.emit('x');
    expect(process.log.nextSeq - 1).toBeLessThanOrEqual(limits.RETAINED_CHUNKS_PER_PROCESS / 2);
    expect(process.log.firstRetainedSeq).toBe(1);
    process.delivered({ ackedSeq: 0, cursor: 0, sentSeq: process.log.nextSeq - 1 });
    expect(stdout.paused).toBe(false);
  });

  it('does not hold a process back while nobody is attached', () => {
    const { process, stdout } = setup();
    for (let index = 0; index < 8; index += 1) stdout.emit(new Uint8Array(MIB));
    expect(stdout.paused).toBe(false);
    process.delivered(having(0));
    expect(stdout.paused).toBe(true);
    process.delivered(undefined);
    expect(stdout.paused).toBe(false);
    expect(process.lastDeliveredSeq).toBe(0);
  });

  it('holds a detached process back while the disk is slow, and lets it run on once the disk is full', async () => {
    let changed = (): void => {};
    const spooling = rig(Number.POSITIVE_INFINITY, () => changed());
    spooling.fs.fault = (kind) => (kind === 'write' ? 'ENOSPC' : undefined);
    const openSpool: ProcessOptions['openSpool'] = (tell) => {
      changed = tell;
      return spooling.spool;
    };
    const { process, stdout } = setup({ openSpool });
    for (let index = 0; index < 9; index += 1) stdout.emit(new Uint8Array(MIB));
    expect([process.history.pendingBytes, stdout.paused]).toEqual([5 * MIB, true]);
    await settled(spooling);
    expect([spooling.spool.errno, stdout.paused]).toEqual(['ENOSPC', false]);
    for (let index = 0; index < 20; index += 1) stdout.emit(new Uint8Array(MIB));
    expect(stdout.paused).toBe(false);
    expect(spooling.spool.pendingBytes).toBeLessThanOrEqual(5 * MIB);
    expect(process.history.gapAfter(0)?.bytes).toBe(20 * MIB);
  });

  it('keeps what it has pushed for a client that acknowledges nothing and goes by its reads', async () => {
    const spooling = rig();
    const { process, stdout, clock } = setup({ openSpool: () => spooling.spool });
    for (let count = 0; count < 10; count += 1) stdout.emit(Buffer.alloc(MIB));
    await settled(spooling);
    expect(process.history.firstHeldSeq).toBe(1);
    process.delivered(having(0));
    process.readBehind(1);
    process.delivered(having(9));
    expect([process.lastDeliveredSeq, process.history.firstHeldSeq]).toEqual([9, 2]);
    // A cut does not end its reading, however long it is; and what leaves memory then is kept, too.
    process.delivered(undefined);
    clock.advance(60_000);
    process.delivered(having(9));
    for (let count = 0; count < 4; count += 1) stdout.emit(Buffer.alloc(MIB));
    expect(process.history.firstHeldSeq).toBe(2);
    process.readBehind(5);
    expect(process.history.firstHeldSeq).toBe(6);
    clock.advance(30_001);
    process.delivered(having(12));
    expect(process.history.firstHeldSeq).toBe(11);
    // Without holes, whatever was asked for and let go of in between.
    process.readBehind(3);
    for (let count = 0; count < 4; count += 1) stdout.emit(Buffer.alloc(MIB));
    expect(process.history.firstHeldSeq).toBe(11);
  });

  it('knows whether an attached reader is behind', () => {
    const { process, stdout } = setup();
    expect(process.beingRead).toBe(false);
    stdout.emit('x');
    process.delivered(having(0));
    expect(process.beingRead).toBe(true);
    process.delivered(having(1));
    expect(process.beingRead).toBe(false);
  });
});

describe('terminate', () => {
  it('kills the group at once and tells whether the process had not exited', () => {
    const { process, child } = setup();
    expect(process.terminate()).toBe(true);
    expect(child.signals).toEqual(['SIGKILL']);
    child.exit({ signal: 'SIGKILL' });
    expect(process.terminate()).toBe(false);
    expect(child.signals).toEqual(['SIGKILL']);
  });

  it('delivers what was written before the kill', () => {
    const { process, child, stdout } = setup();
    process.terminate();
    child.exit({ signal: 'SIGKILL' });
    stdout.emit('still in the pipe');
    child.endOutputs();
    expect(kinds(process)).toEqual(['exited', 'output', 'closed']);
  });

  it('closes a while after the exit although a descendant holds the outputs', () => {
    const { process, child, stdout, clock } = setup();
    process.terminate();
    child.exit({ signal: 'SIGKILL' });
    clock.advance(999);
    expect(process.state).toBe('exited');
    clock.advance(1);
    expect(process.log.closed).toMatchObject({ reason: 'heldOpen' });
    expect(clock.pending).toBe(0);
    // The holders are not killed by a broken pipe: what they write is read and dropped.
    expect(stdout.destroyed).toBe(false);
    stdout.emit('too late');
    expect(kinds(process)).toEqual(['exited', 'closed']);
  });

  it('reads on while output still comes', () => {
    const { process, child, stdout, clock } = setup();
    process.terminate();
    child.exit({ signal: 'SIGKILL' });
    clock.advance(500);
    stdout.emit('x');
    clock.advance(500);
    expect(process.state).toBe('exited');
    clock.advance(1000);
    expect(process.state).toBe('closed');
  });

  it('closes although a descendant writes without end', () => {
    const { process, child, stdout, clock } = setup();
    process.terminate();
    child.exit({ signal: 'SIGKILL' });
    for (let second = 0; second < 10 && process.state !== 'closed'; second += 1) {
      stdout.emit(new Uint8Array(MIB));
      clock.advance(1000);
    }
    expect(process.state).toBe('closed');
  });

  it('waits for a reader that holds the outputs back', () => {
    const { process, child, stdout, clock } = setup();
    process.delivered(having(0));
    stdout.emit(new Uint8Array(2 * MIB));
    process.terminate();
    child.exit({ signal: 'SIGKILL' });
    clock.advance(60_000);
    expect(process.state).toBe('exited');
    process.delivered(having(2));
    clock.advance(2000);
    expect(process.state).toBe('closed');
  });

  it('closes when its streams may not stay open longer, and drops what still comes', () => {
    const { process, child, stdout, clock } = setup({ lingerMs: 500 });
    stdout.emit('mine');
    child.exit({ code: 7 });
    clock.advance(499);
    stdout.emit('of a holder');
    expect(process.state).toBe('exited');
    clock.advance(1);
    expect(process.log.closed).toMatchObject({ reason: 'heldOpen' });
    expect(process.draining).toBe(true);
    stdout.emit('too late');
    child.endOutputs();
    expect(process.draining).toBe(false);
    expect(kinds(process)).toEqual(['output', 'exited', 'output', 'closed']);
  });

  it('waits half a second for the count of the holders, and closes without it then', () => {
    const { process, child, clock, closed } = setup({ lingerMs: 500 });
    Object.assign(child, { countHolders: () => new Promise<number>(() => undefined) });
    child.exit();
    clock.advance(999);
    expect(process.state).toBe('exited');
    clock.advance(1);
    expect(process.log.closed).toMatchObject({ reason: 'heldOpen', holders: undefined });
    expect(closed).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it('waits with that close for a slow reader of what the process itself wrote', () => {
    const { process, child, stdout, clock } = setup({ lingerMs: 500 });
    process.delivered(having(0));
    stdout.emit(new Uint8Array(2 * MIB));
    child.exit();
    clock.advance(10_000);
    expect(process.state).toBe('exited');
    process.delivered(having(2));
    clock.advance(500);
    expect(process.state).toBe('closed');
  });

  it('tells in the exit that it was terminated, or ran out of time', () => {
    const terminated = setup();
    terminated.process.terminate();
    terminated.child.exit({ signal: 'SIGKILL' });
    expect(terminated.process.log.exited).toMatchObject({ exitCode: 137, signal: 'SIGKILL', reason: 'terminated' });
    const late = setup();
    late.process.kill('timedOut');
    late.child.exit({ signal: 'SIGKILL' });
    expect(late.process.log.exited).toMatchObject({ reason: 'timedOut' });
    const own = setup();
    own.child.exit({ signal: 'SIGKILL' });
    own.process.terminate();
    expect(own.process.log.exited).toMatchObject({ reason: 'exited' });
  });

  it('leaves the outputs of a process that exits by itself to their holders', () => {
    const { process, child, clock } = setup();
    child.exit();
    clock.advance(100_000);
    expect(process.state).toBe('exited');
    expect(clock.pending).toBe(0);
  });

  it('during the start kills what was forked nevertheless', () => {
    const { process, child } = setup({ begin: false });
    expect(process.terminate()).toBe(true);
    process.begin(child);
    expect(child.signals).toEqual(['SIGKILL']);
  });

  it('during the start does not fail the start when the host refuses the signal', () => {
    const { process, child } = setup({ begin: false });
    child.refusal = new WireError('signalFailed', 'not permitted');
    process.terminate();
    expect(() => process.begin(child)).not.toThrow();
    expect(process.state).toBe('running');
  });

  it('tells its caller when the host refuses the signal', () => {
    const { process, child } = setup();
    child.refusal = new WireError('signalFailed', 'not permitted');
    expect(() => process.terminate()).toThrow('not permitted');
    expect(() => process.kill()).not.toThrow();
  });
});

describe('signals', () => {
  it('reach the group of a running process and nobody afterwards', () => {
    const { process, child } = setup({ begin: false });
    expect(process.signal('SIGINT')).toBe('gone');
    process.begin(child);
    expect(process.signal('SIGINT')).toBe('delivered');
    child.exit();
    expect(process.signal('SIGINT')).toBe('gone');
    expect(child.signals).toEqual(['SIGINT']);
  });
});
