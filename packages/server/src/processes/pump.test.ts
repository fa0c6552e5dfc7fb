import { limits, processId } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { FakeChild, FakeOutput } from '../../../../test/support/fakeChild.js';
import { ManualClock } from '../../../../test/support/manualClock.js';
import { rig, settled } from '../../../../test/support/spoolRig.js';
import { Process, type ProcessOptions } from './process.js';
import { Pump, type PumpOptions } from './pump.js';

const KIB = 1024;

function running(
  windowBytes = 4 * KIB * KIB,
  openSpool?: ProcessOptions['openSpool'],
): { process: Process; child: FakeChild; stdout: FakeOutput } {
  const process = new Process({
    id: processId('p"1'),
    clock: new ManualClock(),
    logLimits: { bytes: windowBytes, chunks: limits.RETAINED_CHUNKS_PER_PROCESS },
    openSpool,
    onClosed: () => {},
  });
  const stdout = new FakeOutput('stdout');
  const child = new FakeChild({ outputs: [stdout] });
  process.begin(child);
  return { process, child, stdout };
}

interface Frame {
  readonly method: string;
  readonly params: { readonly processId: string; readonly seq?: number; readonly [member: string]: unknown };
}

class Follower {
  readonly pump: Pump;
  readonly frames: Frame[] = [];
  ready = 0;
  over = 0;

  constructor(process: Process, options: Partial<PumpOptions> = {}) {
    this.pump = new Pump(process, {
      controls: true,
      creditBytes: undefined,
      tellsGaps: options.creditBytes !== undefined,
      held: false,
      ready: () => (this.ready += 1),
      over: () => (this.over += 1),
      ...options,
    });
  }

  /** Takes all that the pump gives now; returns the seqs, a gap as the pair of its ends. */
  take(): (number | readonly [unknown, unknown])[] {
    const seqs: (number | readonly [unknown, unknown])[] = [];
    for (let frame = this.pump.next(); frame !== undefined; frame = this.pump.next()) {
      const parsed = JSON.parse(String(frame)) as Frame;
      this.frames.push(parsed);
      const { seq } = parsed.params;
      seqs.push(seq ?? [parsed.params['fromSeq'], parsed.params['throughSeq']]);
    }
    return seqs;
  }
}

describe('a pump', () => {
  it('pushes what was there and what comes, as the notifications of the base protocol', () => {
    const { process, child, stdout } = running();
    stdout.emit('a');
    const follower = new Follower(process);
    expect(follower.take()).toEqual([1]);
    child.exit({ signal: 'SIGTERM' });
    child.endOutputs();
    expect(follower.take()).toEqual([2, 3]);
    expect(follower.frames).toEqual([
      { method: 'process/output', params: { processId: 'p"1', seq: 1, stream: 'stdout', chunk: 'YQ==' } },
      {
        method: 'process/exited',
        params: { processId: 'p"1', seq: 2, exitCode: 143, sandboxDenied: false, reason: 'exited', signal: 'SIGTERM' },
      },
      { method: 'process/closed', params: { processId: 'p"1', seq: 3, reason: 'ended' } },
    ]);
  });

  it('says with each event that it is ready', () => {
    const { process, stdout } = running();
    const follower = new Follower(process);
    stdout.emit('a');
    expect(follower.ready).toBe(1);
  });

  it('is over once the close was handed on, and lets the process go', () => {
    const { process, child } = running();
    const follower = new Follower(process);
    child.exit();
    child.endOutputs();
    expect(follower.over).toBe(0);
    follower.take();
    expect(follower.over).toBe(1);
    expect(process.beingRead).toBe(false);
    expect(process.lastDeliveredSeq).toBe(2);
  });

  it('gives nothing after its end and no longer listens', () => {
    const { process, stdout } = running();
    const follower = new Follower(process);
    follower.pump.end();
    follower.pump.end();
    stdout.emit('a');
    expect(follower.ready).toBe(0);
    expect(follower.take()).toEqual([]);
    expect(process.beingRead).toBe(false);
  });

  it('jumps over what left the window without a word to a client that does not know gaps', () => {
    const { process, stdout } = running(2);
    for (const text of ['a', 'b', 'c', 'd']) stdout.emit(text);
    expect(new Follower(process).take()).toEqual([3, 4]);
  });
});

describe('credit', () => {
  const chunk = new Uint8Array(KIB);

  it('stops the pushes, and they go on with an acknowledgement', () => {
    const { process, stdout } = running();
    const follower = new Follower(process, { creditBytes: 2 * KIB });
    for (let index = 0; index < 5; index += 1) stdout.emit(chunk);
    expect(follower.take()).toEqual([1, 2]);
    const { ready } = follower;
    follower.pump.acked(1);
    expect(follower.ready).toBeGreaterThan(ready);
    expect(follower.take()).toEqual([3]);
    follower.pump.acked(3);
    expect(follower.take()).toEqual([4, 5]);
    expect(process.lastDeliveredSeq).toBe(3);
  });

  it('is not given by an acknowledgement that is old, repeated, or ahead of what was sent', () => {
    const { process, stdout } = running();
    const follower = new Follower(process, { creditBytes: KIB });
    for (let index = 0; index < 4; index += 1) stdout.emit(chunk);
    expect(follower.take()).toEqual([1]);
    follower.pump.acked(99);
    expect(process.lastDeliveredSeq).toBe(1);
    expect(follower.take()).toEqual([2]);
    follower.pump.acked(1);
    follower.pump.acked(0);
    expect(follower.take()).toEqual([]);
  });

  it('is over when the close was acknowledged, not when it was sent', () => {
    const { process, child } = running();
    const follower = new Follower(process, { creditBytes: KIB });
    child.exit();
    child.endOutputs();
    follower.take();
    expect(follower.over).toBe(0);
    follower.pump.acked(2);
    expect(follower.over).toBe(1);
  });

  it('is not waited for when the process has expired and everything was sent', () => {
    const { process, child, stdout } = running();
    const follower = new Follower(process, { creditBytes: KIB });
    stdout.emit(chunk);
    stdout.emit(chunk);
    child.exit();
    child.endOutputs();
    expect(follower.take()).toEqual([1]);
    process.expire();
    expect(follower.over).toBe(0);
    follower.pump.acked(1);
    expect(follower.take()).toEqual([2]);
    follower.pump.acked(2);
    expect(follower.take()).toEqual([3, 4]);
    expect(follower.over).toBe(1);
  });

  it('does not wait for an acknowledgement of what is lost', () => {
    const { process, stdout } = running(4 * KIB);
    for (let index = 0; index < 100; index += 1) stdout.emit(chunk);
    const follower = new Follower(process, { creditBytes: 2 * KIB });
    expect(follower.take()).toEqual([[1, 96], 97, 98]);
    expect(follower.frames[0]).toEqual({
      method: 'process/gap',
      params: { processId: 'p"1', fromSeq: 1, throughSeq: 96, bytes: 96 * KIB },
    });
    follower.pump.acked(98);
    expect(follower.take()).toEqual([99, 100]);
  });

  it('does not push the exit into a gap', () => {
    const { process, child, stdout } = running(2 * KIB);
    stdout.emit(chunk);
    child.exit({ code: 7 });
    for (let index = 0; index < 4; index += 1) stdout.emit(chunk);
    const follower = new Follower(process, { creditBytes: 10 * KIB });
    expect(follower.take()).toEqual([[1, 1], 2, [3, 4], 5, 6]);
    expect(follower.frames[1]).toMatchObject({ method: 'process/exited', params: { exitCode: 7 } });
  });
});

describe('a cut', () => {
  it.each([
    { tellsGaps: false, firstHeldSeq: 1 },
    { tellsGaps: true, firstHeldSeq: 5 },
  ])('keeps what was delivered for a client that acknowledges nothing (tellsGaps: $tellsGaps)', async (how) => {
    const spooling = rig();
    const { process, stdout } = running(4, () => spooling.spool);
    for (const text of ['a', 'b', 'c', 'd']) stdout.emit(text);
    const follower = new Follower(process, { tellsGaps: how.tellsGaps });
    expect(follower.take()).toEqual([1, 2, 3, 4]);
    follower.pump.end();
    for (const text of ['e', 'f', 'g', 'h', 'i']) stdout.emit(text);
    await settled(spooling);
    expect(process.history.firstHeldSeq).toBe(how.firstHeldSeq);
    const next = new Follower(process, { tellsGaps: how.tellsGaps, held: true });
    next.pump.readThrough(6, 7);
    expect(next.take()).toEqual([8, 9]);
  });
});

describe('after a resume', () => {
  it('pushes wait for the first read and go on behind it', () => {
    const { process, stdout } = running();
    for (const text of ['a', 'b', 'c']) stdout.emit(text);
    const follower = new Follower(process, { held: true });
    expect(follower.pump.awaitsRead).toBe(true);
    expect(follower.take()).toEqual([]);
    stdout.emit('d');
    follower.pump.readThrough(0, 3);
    expect(follower.pump.awaitsRead).toBe(false);
    expect(follower.take()).toEqual([4]);
    follower.pump.readThrough(0, 1);
    expect(follower.take()).toEqual([]);
  });

  it('pushes go on although more than the credit was lost before the first read', () => {
    const { process, stdout } = running(100);
    for (let index = 0; index < 20; index += 1) stdout.emit('0123456789');
    const follower = new Follower(process, { held: true, creditBytes: 50 });
    follower.pump.readThrough(0, 11);
    expect(follower.take()).toEqual([12, 13, 14, 15]);
    follower.pump.acked(15);
    expect(follower.take()).toEqual([16, 17, 18, 19, 20]);
  });

  it('pushes go on behind what the last reader had when no read comes', () => {
    const { process, stdout } = running();
    for (const text of ['a', 'b', 'c']) stdout.emit(text);
    const first = new Follower(process, { creditBytes: KIB });
    first.take();
    first.pump.acked(2);
    first.pump.end();
    const second = new Follower(process, { held: true });
    second.pump.goOn();
    expect(second.take()).toEqual([3]);
  });

  it('a process that ended and was read to its end is let go of', () => {
    const { process, child, stdout } = running();
    stdout.emit('a');
    child.exit();
    child.endOutputs();
    const follower = new Follower(process, { held: true });
    follower.pump.readThrough(3, 3);
    expect(follower.over).toBe(1);
    expect(follower.take()).toEqual([]);
  });

  it('a slow client holds the child back from the first event on', () => {
    const { process, stdout } = running();
    const follower = new Follower(process, { held: true });
    stdout.emit(new Uint8Array(limits.PAUSE_PROCESS_BYTES));
    expect(stdout.paused).toBe(true);
    follower.pump.readThrough(1, 1);
    expect(stdout.paused).toBe(false);
  });
});

describe('a client that does not ask for what it resumed', () => {
  it('no longer holds the child back once it is let go of, and may still ask', () => {
    const { process, stdout } = running();
    const follower = new Follower(process, { held: true, creditBytes: KIB });
    stdout.emit(new Uint8Array(limits.PAUSE_PROCESS_BYTES));
    expect(stdout.paused).toBe(true);
    follower.pump.letGo();
    expect(stdout.paused).toBe(false);
    follower.pump.readThrough(0, 1);
    expect(follower.pump.awaitsRead).toBe(false);
    follower.pump.acked(1);
    stdout.emit('more');
    expect(follower.take()).toEqual([2]);
  });
});

describe('a cursor that is set anew', () => {
  it('repeats what is kept behind it, within the credit, and goes on', () => {
    const { process, stdout } = running();
    const follower = new Follower(process, { creditBytes: 2 * KIB });
    for (let index = 0; index < 4; index += 1) {
      stdout.emit(new Uint8Array(KIB));
      follower.take();
      follower.pump.acked(index + 1);
    }
    follower.pump.restart(1);
    expect(follower.take()).toEqual([2, 3]);
    follower.pump.acked(3);
    expect(follower.take()).toEqual([4]);
    expect(process.lastDeliveredSeq).toBe(4);
  });

  it('begins with the gap where the window has moved on', () => {
    const { process, stdout } = running(2);
    for (const text of ['a', 'b', 'c', 'd']) stdout.emit(text);
    const follower = new Follower(process, { held: true, creditBytes: KIB });
    follower.pump.restart(0);
    expect(follower.take()).toEqual([[1, 2], 3, 4]);
  });

  it('needs no credit for what the window loses behind it', () => {
    const { process, stdout } = running(4 * KIB);
    const follower = new Follower(process, { creditBytes: 2 * KIB });
    for (let index = 0; index < 8; index += 1) {
      stdout.emit(new Uint8Array(KIB));
      follower.take();
      follower.pump.acked(index + 1);
    }
    follower.pump.restart(6);
    for (let index = 0; index < 8; index += 1) stdout.emit(new Uint8Array(KIB));
    expect(follower.take()).toEqual([[7, 12], 13, 14]);
  });
});

describe('an observer', () => {
  const observer = { controls: false, tellsGaps: true } as const;

  it('gets everything that is kept, without credit, and nothing of it counts as delivered', () => {
    const { process, stdout } = running();
    for (let index = 0; index < 4; index += 1) stdout.emit(new Uint8Array(limits.CREDIT_BYTES_PER_PROCESS / 2));
    const follower = new Follower(process, observer);
    expect(follower.take()).toEqual([1, 2, 3, 4]);
    expect(process).toMatchObject({ lastDeliveredSeq: 0, beingRead: false });
  });

  it('holds nobody back, and is told what it missed', () => {
    const { process, stdout } = running(2 * KIB);
    const follower = new Follower(process, observer);
    for (let index = 0; index < 5; index += 1) stdout.emit(new Uint8Array(KIB));
    expect(stdout.paused).toBe(false);
    expect(follower.take()).toEqual([[1, 3], 4, 5]);
    expect(follower.frames[0]).toMatchObject({ method: 'process/gap', params: { bytes: 3 * KIB } });
  });

  it('begins where it is told to, whatever the controller has had', () => {
    const { process, stdout } = running();
    const controller = new Follower(process);
    for (const text of ['a', 'b', 'c']) stdout.emit(text);
    controller.take();
    const follower = new Follower(process, { ...observer, held: true });
    expect(follower.take()).toEqual([]);
    follower.pump.restart(1);
    expect(follower.take()).toEqual([2, 3]);
  });

  it('is over with the close it was sent, and the controller is not', () => {
    const { process, child } = running();
    const controller = new Follower(process, { creditBytes: KIB });
    const follower = new Follower(process, observer);
    child.exit();
    child.endOutputs();
    for (const each of [follower, controller]) each.take();
    expect([follower.over, controller.over]).toEqual([1, 0]);
    expect(process.beingRead).toBe(true);
  });
});

describe('a client that knows no gaps', () => {
  const chunk = new Uint8Array(KIB);

  it('gets so many events behind a hole and no more, until it reads', () => {
    const { process, stdout } = running(1024 * KIB);
    for (let index = 0; index < 2000; index += 1) stdout.emit(chunk);
    const follower = new Follower(process);
    const seqs = follower.take();
    expect(seqs[0]).toBe(977);
    expect(seqs).toHaveLength(limits.EVENTS_BEHIND_HOLE);
    expect(stdout.paused).toBe(false);
    follower.pump.readThrough(0, 1500);
    expect(follower.take()[0]).toBe(1501);
  });

  it('gets so many bytes behind a hole and no more', () => {
    const { process, stdout } = running(2 * 1024 * KIB);
    for (let index = 0; index < 80; index += 1) stdout.emit(new Uint8Array(32 * KIB));
    const follower = new Follower(process);
    expect(follower.take()).toHaveLength(limits.BYTES_BEHIND_HOLE / (32 * KIB));
    stdout.emit(new Uint8Array(limits.PAUSE_PROCESS_BYTES));
    expect(stdout.paused).toBe(false);
  });
});

describe('a client that comes with a cursor far beyond what was acknowledged', () => {
  it('has its whole credit behind that cursor when it follows it', () => {
    const { process, stdout } = running();
    for (let index = 0; index < 30; index += 1) stdout.emit(new Uint8Array(64 * KIB));
    const follower = new Follower(process, { held: true, creditBytes: KIB * KIB });
    follower.pump.restart(22);
    expect(follower.take()).toEqual([23, 24, 25, 26, 27, 28, 29, 30]);
    expect(process.lastDeliveredSeq).toBe(0);
  });

  it('owes what it has not acknowledged when it only reads there', () => {
    const { process, stdout } = running();
    for (let index = 0; index < 30; index += 1) stdout.emit(new Uint8Array(64 * KIB));
    const follower = new Follower(process, { held: true, creditBytes: KIB * KIB });
    follower.pump.readThrough(20, 22);
    expect(follower.take()).toEqual([]);
    follower.pump.acked(20);
    expect(follower.take()).toEqual([23, 24, 25, 26, 27, 28, 29, 30]);
  });

  it('does not have the child wait for what it follows past', () => {
    const { process, stdout } = running();
    const follower = new Follower(process, { held: true, creditBytes: KIB * KIB });
    for (let index = 0; index < 48; index += 1) stdout.emit(new Uint8Array(64 * KIB));
    expect(stdout.paused).toBe(true);
    follower.pump.restart(48);
    expect(stdout.paused).toBe(false);
  });
});

describe('an answer that comes too late', () => {
  it('says nothing about the connection that came after', () => {
    const { process, stdout } = running();
    const [loser, winner] = [new Follower(process, { creditBytes: KIB }), new Follower(process, { creditBytes: KIB })];
    stdout.emit('a');
    loser.take();
    loser.pump.end();
    winner.take();
    winner.pump.acked(1);
    stdout.emit(new Uint8Array(limits.PAUSE_PROCESS_BYTES - 1));
    winner.take();
    winner.pump.acked(2);
    loser.pump.acked(1);
    expect(process).toMatchObject({ lastDeliveredSeq: 2, heldBack: false, beingRead: false });
  });
});

describe('a process that has expired', () => {
  const ended = (): Process => {
    const { process, child, stdout } = running();
    stdout.emit('a');
    child.exit();
    child.endOutputs();
    return process;
  };

  it.each([
    ['an observer that never read', { controls: false, tellsGaps: true, held: true }],
    ['a controller that never read', { held: true, creditBytes: KIB }],
  ] as const)('is not kept for %s', (_who, options) => {
    const process = ended();
    const follower = new Follower(process, options);
    process.expire();
    expect(follower.over).toBe(1);
  });

  it('is still sent to its end to who is being sent it', () => {
    const process = ended();
    const follower = new Follower(process, { creditBytes: KIB });
    process.expire();
    expect(follower.take()).toEqual([1, 2, 3]);
    expect(follower.over).toBe(1);
  });
});

describe('an acknowledgement of what an earlier connection was sent', () => {
  it('counts before the first read, and lets go of a process that ended', () => {
    const { process, child, stdout } = running();
    stdout.emit('a');
    const follower = new Follower(process, { held: true, creditBytes: KIB });
    follower.pump.acked(1);
    expect(process.lastDeliveredSeq).toBe(1);
    expect(follower.over).toBe(0);
    child.exit();
    child.endOutputs();
    follower.pump.acked(1_000);
    expect(follower.over).toBe(1);
    expect(process).toMatchObject({ lastDeliveredSeq: 3, beingRead: false });
  });
});
