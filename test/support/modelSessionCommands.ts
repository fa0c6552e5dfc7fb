/** What a random program can do to the connection, the session and the server, and who else comes and goes. */
import { limits } from '@exec-server/protocol';
import { expect } from 'vitest';
import { about, type Command, command, expectRefused, isDown, isUp, type Model } from './modelCommand.js';
import type { ModelProcess } from './modelProcess.js';
import { taken } from './modelProcessCommands.js';
import { LEASE_MS, RETENTION_MS, type World } from './world.js';

/** What was acknowledged right before it may not have arrived. */
function cutOffEnds({ processes }: Model): void {
  for (const process of processes) if (process.state === 'closed') process.endCutOff = true;
}

export const cut = (): Command =>
  command('cut', isUp, (model, world) => {
    cutOffEnds(model);
    world.controller.line.cut();
  });

export const cutForLong = (): Command =>
  command('cut for long', isUp, async (model, world) => {
    model.link = 'down';
    cutOffEnds(model);
    const { line, client } = world.controller;
    line.refusing = true;
    line.cut();
    while (world.server.gauges().attachedSessions > 0 || client.state !== 'recovering') {
      await new Promise((resolve) => setImmediate(resolve));
    }
  });

export const passTime = (ms: number): Command =>
  command(`${ms} ms pass`, isDown, (_, world) => {
    // The session was detached a moment ago, or its lease would be over.
    expect(world.server.gauges().sessions).toBe(1);
    world.clock.advance(ms);
  });

export const comeBack = (): Command =>
  command('come back', isDown, async (model, world) => {
    model.link = 'up';
    world.controller.line.refusing = false;
    for (const { process, text, outcome } of world.waiting.splice(0)) {
      expect(await outcome).toBe(taken(process, text));
    }
    expect(await world.controller.client.call('environment/status', null)).toEqual({ status: 'ready' });
  });

async function begun(model: Model, world: World, codes: readonly string[]): Promise<void> {
  await world.beginAnew(codes);
  model.processes = [];
  model.link = 'up';
  model.observers = 0;
}

export const expire = (): Command =>
  command('the lease ends', isDown, async (model, world) => {
    // Who observes may see them die.
    for (const process of model.processes) process.kill();
    world.clock.advance(LEASE_MS);
    expect(world.server.gauges()).toMatchObject({ sessions: 0, processes: 0, observers: 0 });
    await begun(model, world, ['SESSION_EXPIRED']);
  });

export const restart = (): Command =>
  command(
    'the server is restarted',
    () => true,
    async (model, world) => {
      for (const process of model.processes) process.kill();
      await world.restart();
      await begun(model, world, ['SESSION_EXPIRED', 'SERVER_GONE']);
    },
  );

/** A session that a cut has just detached is free for whoever comes first. */
async function attached(world: World): Promise<void> {
  expect(await world.controller.client.call('environment/status', null)).toEqual({ status: 'ready' });
}

export const takeOver = (): Command =>
  command('another client takes over', isUp, async (model, world) => {
    const before = world.controller;
    await attached(world);
    const next = await world.join({ resumeSessionId: before.client.sessionId, takeOver: true });
    await before.expectFailed(['TAKEN_OVER']);
    world.takenOverBy(next);
    const cursors = new Map([...before.followers].map(([process, { cursor }]) => [process, cursor]));
    const kept = model.processes.filter(({ forgotten }) => forgotten === undefined);
    await world.follow(next, kept, { mayMiss: false, afterSeq: (process) => cursors.get(process) ?? 0 });
  });

export const intrude = (): Command =>
  command('a second client wants control', isUp, async (_, world) => {
    const { sessionId, observeId } = world.controller.client;
    await attached(world);
    await expectRefused(world.join({ resumeSessionId: sessionId }), { reason: 'attachedElsewhere' });
    await expectRefused(world.join({ resumeSessionId: observeId }), { reason: 'observeOnly' });
  });

export const observe = (place: number): Command =>
  command(
    `an observer joins behind ${place} %`,
    ({ observers }) => observers < 2,
    async (model, world) => {
      const observer = await world.join({ attach: 'observe', resumeSessionId: world.controller.client.observeId });
      world.observers.push(observer);
      model.observers += 1;
      const kept = model.processes.filter(({ forgotten }) => forgotten === undefined);
      const afterSeq = ({ events }: ModelProcess): number => Math.floor((place * events.length) / 100);
      await world.follow(observer, kept, { mayMiss: true, afterSeq });
    },
  );

export const leave = (): Command =>
  command(
    'an observer leaves',
    ({ observers }) => observers > 0,
    async (model, world) => {
      model.observers -= 1;
      await world.observers.shift()?.client.close();
    },
  );

export const cutObserver = (): Command =>
  command(
    'an observer is cut',
    ({ observers }) => observers > 0,
    (_, world) => world.observers[0]?.line.cut(),
  );

export const meddle = (index: number): Command =>
  about(
    'an observer meddles with',
    index,
    (_, { observers }) => observers > 0,
    async (process, world) => {
      const client = world.observers[0]?.client;
      const { id: processId } = process;
      if (client === undefined) return;
      for (const method of ['process/terminate', 'process/release'] as const) {
        await expectRefused(client.call(method, { processId }), { code: 'SERVER_ERROR', reason: 'readOnly' });
      }
    },
  );

export const retire = (): Command =>
  command('the retention of what has closed ends', isUp, async (model, world) => {
    for (const party of [world.controller, ...world.observers]) {
      for (const follower of party.followers.values()) follower.letGo();
    }
    await world.caughtUp();
    // A handle that was just attached acknowledges nothing before the next turn of the timers.
    await new Promise((resolve) => setTimeout(resolve, 0));
    // Behind the acknowledgements.
    await world.controller.client.ping();
    // An end whose acknowledgement was lost in a cut is waited for as long as a first read.
    for (const ms of [RETENTION_MS, limits.FIRST_READ_WAIT_MS, RETENTION_MS]) world.clock.advance(ms);
    for (const process of model.processes) {
      if (process.state === 'closed') process.forgotten ??= 'expired';
    }
  });
