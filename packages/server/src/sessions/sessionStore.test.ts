import { limits, type WireError } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { FakeChild } from '../../../../test/support/fakeChild.js';
import { ManualClock } from '../../../../test/support/manualClock.js';
import { reserve } from '../../../../test/support/reserve.js';
import type { Process } from '../processes/process.js';
import type { Attachment, Session } from './session.js';
import { SessionStore } from './sessionStore.js';

const LEASE_MS = 1000;

class FakeConnection implements Attachment {
  readonly followed: (readonly [id: string, held: boolean])[] = [];
  isSilent = false;
  attachId: string | undefined;
  replacedWith: string | undefined;
  takenOverWith: string | undefined;
  endedWith: string | undefined;
  settle: () => void = () => {};
  #settled: Promise<void> = Promise.resolve();

  follow(process: Process, { held }: { readonly held: boolean }): void {
    this.followed.push([process.id, held]);
  }

  replaced(detail: string): void {
    this.replacedWith = detail;
  }

  takenOver(detail: string): void {
    this.takenOverWith = detail;
  }

  sessionEnded(detail: string, _stopping: boolean): void {
    this.endedWith = detail;
  }

  settled(): Promise<void> {
    return this.#settled;
  }

  /** A request of this connection is still being worked on, until `settle`. */
  busy(): this {
    this.#settled = new Promise((resolve) => {
      this.settle = resolve;
    });
    return this;
  }
}

function store(): { clock: ManualClock; sessions: SessionStore } {
  const clock = new ManualClock();
  const sessions = new SessionStore({
    clock,
    leaseMs: LEASE_MS,
    retainedBytesPerProcess: limits.RETAINED_BYTES_PER_PROCESS,
    retainedBytesPerSession: limits.RETAINED_BYTES_PER_SESSION,
    retainedBytesPerServer: limits.RETAINED_BYTES_PER_SERVER,
    exitedRetentionMs: 1000,
    life: 'life',
    sweep: () => {},
  });
  return { clock, sessions };
}

async function refusal(action: Promise<unknown>): Promise<string> {
  return action.then(
    () => 'nothing was refused',
    // Sessions reject with WireError alone.
    (error: unknown) => (error as WireError).reason,
  );
}

function start(session: Session, id: string): FakeChild {
  const process = reserve(session.processes, id);
  const child = new FakeChild();
  process.begin(child);
  session.began(process);
  return child;
}

/** Lets everything run that waits for nothing but promises. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a session', () => {
  it('has an id of 128 random bits', async () => {
    const { sessions } = store();
    const ids = new Set<string>();
    for (let index = 0; index < 50; index += 1) ids.add((await sessions.create(new FakeConnection(), undefined)).id);
    expect(ids.size).toBe(50);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  it('outlives its connection and goes on under the next one', async () => {
    const { clock, sessions } = store();
    const first = new FakeConnection();
    const session = await sessions.create(first, undefined);
    const child = start(session, 'p');
    session.detach(first);
    clock.advance(LEASE_MS - 1);
    const second = new FakeConnection();
    expect(await sessions.resume(session.id, second)).toBe(session);
    expect(second.followed).toEqual([['p', true]]);
    clock.advance(10 * LEASE_MS);
    expect(session.leaseState).toBe('attached');
    expect(child.signals).toEqual([]);
  });

  it('pushes a process started after the resume at once', async () => {
    const { sessions } = store();
    const first = new FakeConnection();
    const session = await sessions.create(first, undefined);
    session.detach(first);
    const second = new FakeConnection();
    await sessions.resume(session.id, second);
    start(session, 'new');
    expect(second.followed).toEqual([['new', false]]);
  });

  it('is refused to a second connection while one is attached', async () => {
    const { sessions } = store();
    const session = await sessions.create(new FakeConnection(), undefined);
    const refused = sessions.resume(session.id, new FakeConnection());
    await expect(refused).rejects.toMatchObject({
      code: -32010,
      message: `session ${session.id} is already attached to another connection`,
    });
  });

  it('goes from a connection that has gone silent to the one that resumes it, which is then safe from the first', async () => {
    const { clock, sessions } = store();
    const first = new FakeConnection().busy();
    const session = await sessions.create(first, undefined);
    first.isSilent = true;
    const second = new FakeConnection();
    const resuming = sessions.resume(session.id, second);
    expect(first.replacedWith).toContain('no sign of life');
    let resumed = false;
    void resuming.then(() => (resumed = true));
    await turn();
    expect(resumed).toBe(false);
    first.settle();
    expect(await resuming).toBe(session);
    session.detach(first);
    clock.advance(LEASE_MS * 2);
    expect(session).toMatchObject({ attachment: second, leaseState: 'attached' });
  });

  it('goes at once to a later connection of the same client object, and to nobody else', async () => {
    const { sessions } = store();
    const first = new FakeConnection();
    first.attachId = 'mine';
    const session = await sessions.create(first, undefined);
    for (const attachId of ['other', undefined]) {
      const stranger = new FakeConnection();
      stranger.attachId = attachId;
      await expect(sessions.resume(session.id, stranger)).rejects.toMatchObject({ reason: 'attachedElsewhere' });
    }
    expect(first.replacedWith).toBeUndefined();
    const second = new FakeConnection();
    second.attachId = 'mine';
    expect(await sessions.resume(session.id, second)).toBe(session);
    expect(first.replacedWith).toContain('a later connection of the same client');
    expect(session.attachment).toBe(second);
  });

  it('is not detached by a connection that no longer controls it', async () => {
    const { sessions } = store();
    const first = new FakeConnection();
    const session = await sessions.create(first, undefined);
    session.detach(first);
    const second = new FakeConnection();
    await sessions.resume(session.id, second);
    session.detach(first);
    expect(session.attachment).toBe(second);
  });

  it('is resumed only after the requests of the previous connection have settled', async () => {
    const { sessions } = store();
    const first = new FakeConnection().busy();
    const session = await sessions.create(first, undefined);
    session.detach(first);
    const second = new FakeConnection();
    let resumed = false;
    const resuming = sessions.resume(session.id, second).then(() => {
      resumed = true;
    });
    await turn();
    expect(resumed).toBe(false);
    // What the previous connection had begun is followed like everything else: held until its first read.
    start(session, 'late');
    expect(second.followed).toEqual([]);
    expect(await refusal(sessions.resume(session.id, new FakeConnection()))).toBe('attachedElsewhere');
    first.settle();
    await resuming;
    expect(second.followed).toEqual([['late', true]]);
  });

  it('can be resumed by a third connection when the second was lost while it waited', async () => {
    const { clock, sessions } = store();
    const first = new FakeConnection().busy();
    const session = await sessions.create(first, undefined);
    session.detach(first);
    const second = new FakeConnection();
    const resuming = sessions.resume(session.id, second);
    first.settle();
    session.detach(await resuming.then(() => second));
    clock.advance(LEASE_MS - 1);
    expect(await sessions.resume(session.id, new FakeConnection())).toBe(session);
  });
});

describe('a lease', () => {
  it('runs out by the clock; then every group is killed and a resume says expired', async () => {
    const { clock, sessions } = store();
    const connection = new FakeConnection();
    const session = await sessions.create(connection, undefined);
    const child = start(session, 'p');
    session.detach(connection);
    clock.advance(LEASE_MS);
    expect(child.signals).toEqual(['SIGKILL']);
    expect(sessions.size).toBe(0);
    const refused = sessions.resume(session.id, new FakeConnection());
    await expect(refused).rejects.toMatchObject({
      code: -32600,
      reason: 'expiredSession',
      message: `unknown session id ${session.id}`,
    });
    child.exit({ signal: 'SIGKILL' });
    expect(child.outputs.every(({ destroyed }) => destroyed)).toBe(true);
    clock.advance(100_000);
    expect(clock.pending).toBe(0);
  });

  it('begins anew at each detach', async () => {
    const { clock, sessions } = store();
    const first = new FakeConnection();
    const session = await sessions.create(first, undefined);
    session.detach(first);
    clock.advance(LEASE_MS - 1);
    const second = new FakeConnection();
    await sessions.resume(session.id, second);
    session.detach(second);
    clock.advance(LEASE_MS - 1);
    expect(session.leaseState).toBe('detached');
    clock.advance(1);
    expect(session.ended).toBe(true);
  });

  it('is as long as its client wished, up to the longest', async () => {
    const { clock, sessions } = store();
    const connection = new FakeConnection();
    const session = await sessions.create(connection, 5 * LEASE_MS);
    session.detach(connection);
    clock.advance(5 * LEASE_MS - 1);
    expect(session.leaseState).toBe('detached');
    const greedy = await sessions.create(new FakeConnection(), 2 ** 64);
    expect(greedy.leaseMs).toBe(limits.MAX_SESSION_LEASE_MS);
  });

  it('that a late timer has not noticed is over all the same', async () => {
    let now = 0;
    const sessions = new SessionStore({
      clock: { now: () => now, timeOfDay: () => now, after: () => () => {} },
      leaseMs: LEASE_MS,
      retainedBytesPerProcess: limits.RETAINED_BYTES_PER_PROCESS,
      retainedBytesPerSession: limits.RETAINED_BYTES_PER_SESSION,
      retainedBytesPerServer: limits.RETAINED_BYTES_PER_SERVER,
      exitedRetentionMs: 1000,
      life: 'life',
      sweep: () => {},
    });
    const connection = new FakeConnection();
    const session = await sessions.create(connection, undefined);
    const child = start(session, 'p');
    session.detach(connection);
    now = LEASE_MS;
    expect(await refusal(sessions.resume(session.id, new FakeConnection()))).toBe('expiredSession');
    expect(child.signals).toEqual(['SIGKILL']);
    expect(sessions.size).toBe(0);
  });
});

describe('the store', () => {
  it.each(['no-such-session', '', '__proto__'])('does not know %j', async (id) => {
    const { sessions } = store();
    await expect(sessions.resume(id, new FakeConnection())).rejects.toMatchObject({
      code: -32600,
      reason: 'unknownSession',
      message: `unknown session id ${id}`,
    });
  });

  it('forgets the oldest ended sessions beyond the number it remembers', async () => {
    const { sessions } = store();
    const ids: string[] = [];
    for (let index = 0; index <= limits.EXPIRED_SESSIONS_REMEMBERED; index += 1) {
      const session = await sessions.create(new FakeConnection(), undefined);
      ids.push(session.id);
      sessions.end(session, 'test');
    }
    expect(await refusal(sessions.resume(ids[0] ?? '', new FakeConnection()))).toBe('unknownSession');
    expect(await refusal(sessions.resume(ids[1] ?? '', new FakeConnection()))).toBe('expiredSession');
  });

  it('refuses one session more than it holds', async () => {
    const { sessions } = store();
    for (let index = 0; index < limits.MAX_SESSIONS; index += 1) await sessions.create(new FakeConnection(), undefined);
    expect(await refusal(sessions.create(new FakeConnection(), undefined))).toBe('tooManySessions');
  });

  it('ends a session once: kills, tells its connection, cancels the lease', async () => {
    const { clock, sessions } = store();
    const connection = new FakeConnection();
    const session = await sessions.create(connection, undefined);
    const child = start(session, 'p');
    sessions.end(session, 'closed by its client');
    sessions.end(session, 'again');
    expect(child.signals).toEqual(['SIGKILL']);
    expect(connection.endedWith).toBe('closed by its client');
    session.detach(connection);
    expect(clock.pending).toBe(0);
    expect(await session.attach(new FakeConnection())).toBe(false);
  });

  it('cancels a start that is under way when its session ends', async () => {
    const { sessions } = store();
    const session = await sessions.create(new FakeConnection(), undefined);
    const process = reserve(session.processes, 'p');
    sessions.end(session, 'test');
    expect(process.terminated).toBe(true);
    const child = new FakeChild();
    process.begin(child);
    session.began(process);
    expect(child.signals).toEqual(['SIGKILL']);
  });

  it('is closed as soon as every child was reaped', async () => {
    const { clock, sessions } = store();
    const session = await sessions.create(new FakeConnection(), undefined);
    const children = [start(session, 'p'), start(session, 'q')];
    let closed = false;
    const closing = sessions.close(5000).then(() => {
      closed = true;
    });
    children[0]?.exit({ signal: 'SIGKILL' });
    await turn();
    expect(closed).toBe(false);
    children[1]?.exit({ signal: 'SIGKILL' });
    await closing;
    expect(clock.pending).toBe(0);
  });

  it('is closed as soon as a start that was under way has failed', async () => {
    const { sessions } = store();
    const session = await sessions.create(new FakeConnection(), undefined);
    const process = reserve(session.processes, 'p');
    const closing = sessions.close(5000);
    session.processes.free(process);
    process.fail();
    await closing;
  });

  it('gives up waiting for a child that is not reaped', async () => {
    const { clock, sessions } = store();
    const session = await sessions.create(new FakeConnection(), undefined);
    start(session, 'p');
    const closing = sessions.close(5000);
    clock.advance(5000);
    await closing;
  });

  it('takes nobody any more once it closes', async () => {
    const { sessions } = store();
    const session = await sessions.create(new FakeConnection(), undefined);
    await sessions.close(0);
    expect(await refusal(sessions.create(new FakeConnection(), undefined))).toBe('serverStopping');
    expect(await refusal(sessions.resume(session.id, new FakeConnection()))).toBe('serverStopping');
  });
});

describe('a session that is taken over', () => {
  const client = (attachId: string): FakeConnection => Object.assign(new FakeConnection(), { attachId });

  it('goes to the client that says so, and its first connection is told and detached', async () => {
    const { sessions } = store();
    const first = client('first');
    const session = await sessions.create(first, undefined);
    const second = client('second');
    expect(await sessions.resume(session.id, second, true)).toBe(session);
    expect(first).toMatchObject({ replacedWith: undefined, takenOverWith: expect.stringContaining('another client') });
    expect(session.attachment).toBe(second);
  });

  it('is refused for good to the client that lost it, attached or not', async () => {
    const { sessions } = store();
    const session = await sessions.create(client('first'), undefined);
    const second = client('second');
    await sessions.resume(session.id, second, true);
    const again = (): Promise<string> => refusal(sessions.resume(session.id, client('first')));
    expect(await again()).toBe('takenOver');
    session.detach(second);
    expect(await again()).toBe('takenOver');
    expect(await sessions.resume(session.id, client('third'))).toBe(session);
  });

  it('can be taken back, and then belongs to the other no more', async () => {
    const { sessions } = store();
    const session = await sessions.create(client('first'), undefined);
    await sessions.resume(session.id, client('second'), true);
    const back = client('first');
    expect(await sessions.resume(session.id, back, true)).toBe(session);
    expect(await refusal(sessions.resume(session.id, client('second')))).toBe('takenOver');
    session.detach(back);
    expect(await sessions.resume(session.id, client('first'))).toBe(session);
  });

  it('is lost by the client whose connection was cut before it was taken over', async () => {
    const { sessions } = store();
    const first = client('first');
    const session = await sessions.create(first, undefined);
    session.detach(first);
    const second = client('second');
    await sessions.resume(session.id, second, true);
    session.detach(second);
    expect(await refusal(sessions.resume(session.id, client('first')))).toBe('takenOver');
    expect(await sessions.resume(session.id, client('second'), true)).toBe(session);
  });

  it('is lost by a client that went silent as well', async () => {
    const { sessions } = store();
    const first = client('first');
    const session = await sessions.create(first, undefined);
    first.isSilent = true;
    await sessions.resume(session.id, client('second'));
    expect(await refusal(sessions.resume(session.id, client('first')))).toBe('takenOver');
  });

  it('remembers so many losers and no more', async () => {
    const { sessions } = store();
    const session = await sessions.create(client('first'), undefined);
    for (let index = 0; index < limits.TAKEN_OVER_REMEMBERED; index += 1) {
      await sessions.resume(session.id, client(`client ${index}`), true);
    }
    expect(await refusal(sessions.resume(session.id, client('first')))).toBe('takenOver');
    await sessions.resume(session.id, client('last'), true);
    expect(await refusal(sessions.resume(session.id, client('first')))).toBe('attachedElsewhere');
  });
});

describe('an observer', () => {
  it('is admitted by either id, besides the one that controls, and follows what there is and what comes', async () => {
    const { sessions } = store();
    const session = await sessions.create(new FakeConnection(), undefined);
    start(session, 'old');
    const observers = [session.id, session.observeId].map((id) => {
      const observer = new FakeConnection();
      expect(sessions.observe(id, observer)).toBe(session);
      return observer;
    });
    start(session, 'new');
    for (const { followed } of observers) {
      expect(followed).toEqual([
        ['old', true],
        ['new', false],
      ]);
    }
    expect(session.observers).toBe(2);
  });

  it('follows a process that is starting when that has begun', async () => {
    const { sessions } = store();
    const session = await sessions.create(new FakeConnection(), undefined);
    const process = reserve(session.processes, 'p');
    const observer = new FakeConnection();
    sessions.observe(session.id, observer);
    expect(observer.followed).toEqual([]);
    process.begin(new FakeChild());
    session.began(process);
    expect(observer.followed).toEqual([['p', false]]);
  });

  it('is not admitted to control by the id it has', async () => {
    const { sessions } = store();
    const session = await sessions.create(new FakeConnection(), undefined);
    expect(await refusal(sessions.resume(session.observeId, new FakeConnection(), true))).toBe('observeOnly');
  });

  it('keeps no session alive, and is told of its end', async () => {
    const { clock, sessions } = store();
    const first = new FakeConnection();
    const session = await sessions.create(first, undefined);
    const [stays, leaves] = [new FakeConnection(), new FakeConnection()];
    sessions.observe(session.observeId, stays);
    sessions.observe(session.observeId, leaves);
    session.unobserve(leaves);
    session.detach(first);
    clock.advance(LEASE_MS);
    expect(stays.endedWith).toContain('lease');
    expect(leaves.endedWith).toBeUndefined();
    const late = (): unknown => sessions.observe(session.observeId, new FakeConnection());
    expect(late).toThrow(expect.objectContaining({ reason: 'expiredSession' }));
  });
});
