/** Random programs against the real server and client, and against a model that says what must come out. */
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { Model } from '../support/modelCommand.js';
import { programs } from '../support/modelPrograms.js';
import { scaled } from '../support/scale.js';
import { World } from '../support/world.js';

const RUNS = scaled(100, 1000);
const RUN_MS = 5_000;
/** Shrinking a program that hangs takes long; what was found by then is told. */
const ALL_MS = scaled(45_000, 500_000);

/** Everything comes to its end, is seen, and leaves nothing. */
async function finish(model: Model, world: World): Promise<void> {
  world.controller.line.refusing = false;
  for (const { process, text, outcome } of world.waiting.splice(0)) {
    if (process.stdinOpen) process.stdin += text;
    expect(await outcome).toBe(process.stdinOpen ? 'taken' : 'STDIN_CLOSED');
  }
  for (const [at, process] of model.processes.entries()) {
    const child = world.child(at);
    if (process.state === 'running') {
      child.input.takeAll();
      expect(child.input.taken.join('')).toBe(process.stdin);
      process.exit({ exitCode: 0, signal: undefined, reason: 'exited' });
      child.exit({ code: 0 });
    }
    if (process.streamsOpen) process.endStreams();
    child.endOutputs();
  }
  for (const { followers } of [world.controller, ...world.observers]) {
    for (const follower of followers.values()) expect(await follower.ended()).toBeUndefined();
  }
  expect(world.controller.client.gauges()).toMatchObject({ processes: 0, pendingCalls: 0, stdinQueuedBytes: 0 });
}

it(
  `what comes out of ${RUNS} random programs is what the model says`,
  async () => {
    // The wait before a dial is a random part of a bound.
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const property = fc.asyncProperty(programs, async (commands) => {
      const world = await World.open();
      const model = new Model();
      try {
        await fc.asyncModelRun(() => ({ model, real: world }), commands);
        await finish(model, world);
      } finally {
        await world.close();
      }
      const nothing = { connections: 0, sessions: 0, observers: 0, processes: 0, pendingRequests: 0, spooledBytes: 0 };
      expect(world.server.gauges()).toMatchObject(nothing);
    });
    await fc
      .assert(property, {
        numRuns: RUNS,
        timeout: RUN_MS,
        interruptAfterTimeLimit: ALL_MS,
        markInterruptAsFailure: true,
      })
      .finally(() => vi.restoreAllMocks());
  },
  scaled(60_000, 600_000),
);
