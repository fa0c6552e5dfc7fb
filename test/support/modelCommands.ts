/** What a random program of the model test can do: each command acts on the world, tells the model, and checks the answer. */
import { type ClientErrorCode, isClientError } from '@exec-server/client';
import fc from 'fast-check';
import { expect } from 'vitest';
import { Follower } from './follower.js';
import { ModelProcess } from './modelProcess.js';
import { LEASE_MS, RETENTION_MS, type World } from './world.js';

export class Model {
  processes: ModelProcess[] = [];
  link: 'up' | 'down' = 'up';
  observers = 0;
}

type Command = fc.AsyncCommand<Model, World>;
type Check = (model: Model) => boolean;

const MAX_PROCESSES = 5;
const KILLED = 'SIGKILL';

/** A command with a name to print. After it everybody has got what came out. */
function command(words: string, check: Check, run: (model: Model, world: World) => Promise<void> | void): Command {
  return {
    check,
    run: async (model, world) => {
      await run(model, world);
      await world.caughtUp();
    },
    toString: () => words,
  };
}

/** The same about one of the processes that there are. */
function about(
  words: string,
  index: number,
  check: (process: ModelProcess, model: Model) => boolean,
  run: (process: ModelProcess, world: World, at: number, model: Model) => Promise<void> | void,
): Command {
  const at = (model: Model): number => index % model.processes.length;
  const chosen = (model: Model): ModelProcess | undefined => model.processes[at(model)];
  return command(
    `${words} #${index}`,
    (model) => {
      const process = chosen(model);
      return process !== undefined && check(process, model);
    },
    async (model, world) => {
      const process = chosen(model);
      if (process !== undefined) await run(process, world, at(model), model);
    },
  );
}

const isUp: Check = ({ link }) => link === 'up';
const isDown: Check = ({ link }) => link === 'down';

async function expectRefused(
  call: Promise<unknown>,
  expected: { code?: ClientErrorCode; reason?: string },
): Promise<void> {
  const error: unknown = await call.then(
    () => 'no error',
    (fault: unknown) => fault,
  );
  if (!isClientError(error)) throw new Error(`${String(error)} in place of ${JSON.stringify(expected)}`);
  if (expected.code !== undefined) expect(error.code).toBe(expected.code);
  if (expected.reason !== undefined) expect(error.data.reason).toBe(expected.reason);
}

const start = (drops: boolean, cut: boolean): Command =>
  command(
    `start${drops ? ' (drop)' : ''}${cut ? ' into a cut' : ''}`,
    (model) => isUp(model) && model.processes.length < MAX_PROCESSES,
    async (model, world) => {
      const process = new ModelProcess(`p${model.processes.length}`, drops);
      const { client, line, followers } = world.controller;
      const detached = drops ? 'drop' : 'spool';
      const starting = client.start({ processId: process.id, argv: ['scripted'], cwd: '/', stdin: 'pipe', detached });
      if (cut) line.cut();
      followers.set(process, new Follower(await starting, process, { mayMiss: drops }));
      model.processes.push(process);
      expect(world.platform.children).toHaveLength(model.processes.length);
      for (const observer of world.observers) {
        await world.follow(observer, [process], { mayMiss: true, afterSeq: () => 0 });
      }
    },
  );

const startTaken = (index: number): Command =>
  about(
    'start under the id of',
    index,
    (_, model) => isUp(model),
    (process, world) =>
      expectRefused(world.controller.client.start({ processId: process.id, argv: ['x'], cwd: '/' }), {
        code: 'DUPLICATE_PROCESS',
      }),
  );

/** Blocks when it is held back, as a program would. */
const emit = (index: number, sizes: readonly number[]): Command =>
  about(
    `emit ${sizes.length} x ${sizes[0] ?? 0} of`,
    index,
    ({ streamsOpen }) => streamsOpen,
    (process, world, at) => {
      const { output } = world.child(at);
      for (const size of sizes) {
        if (output.paused) break;
        const bytes = process.nextBytes(size);
        process.output(bytes);
        output.emit(bytes);
      }
    },
  );

const exit = (index: number, code: number): Command =>
  about(
    `exit ${code} of`,
    index,
    ({ state }) => state === 'running',
    (process, world, at) => {
      process.exit({ exitCode: code, signal: undefined, reason: 'exited' });
      world.child(at).exit({ code });
    },
  );

const die = (index: number): Command =>
  about(
    'death by SIGTERM of',
    index,
    ({ state }) => state === 'running',
    (process, world, at) => {
      process.exit({ exitCode: 143, signal: 'SIGTERM', reason: 'exited' });
      world.child(at).exit({ signal: 'SIGTERM' });
    },
  );

const endStreams = (index: number): Command =>
  about(
    'end of streams of',
    index,
    ({ streamsOpen }) => streamsOpen,
    (process, world, at) => {
      process.endStreams();
      world.child(at).endOutputs();
    },
  );

function taken(process: ModelProcess, text: string): string {
  if (!process.stdinOpen) return 'STDIN_CLOSED';
  process.stdin += text;
  return 'taken';
}

/** `taken`, or the code of the refusal. */
async function outcomeOf(write: Promise<void>): Promise<string> {
  try {
    await write;
    return 'taken';
  } catch (error) {
    if (isClientError(error)) return error.code;
    throw error;
  }
}

const write = (index: number, text: string, cut: boolean): Command =>
  about(
    `write ${text}${cut ? ' into a cut' : ''} to`,
    index,
    ({ forgotten }) => forgotten === undefined,
    async (process, world, _, model) => {
      const { line } = world.controller;
      const outcome = outcomeOf(world.controller.follower(process).handle.write(text));
      if (isDown(model)) {
        world.waiting.push({ process, text, outcome });
        return;
      }
      if (cut) line.cut();
      expect(await outcome).toBe(taken(process, text));
    },
  );

const takeStdin = (index: number): Command =>
  about(
    'take the stdin of',
    index,
    ({ state }) => state === 'running',
    (process, world, at) => {
      const { input } = world.child(at);
      input.takeAll();
      expect(input.taken.join('')).toBe(process.stdin);
    },
  );

const endStdin = (index: number): Command =>
  about(
    'end the stdin of',
    index,
    ({ state }, model) => isUp(model) && state === 'running',
    async (process, world) => {
      expect(await outcomeOf(world.controller.follower(process).handle.end())).toBe(taken(process, ''));
      process.stdinOpen = false;
    },
  );

const read = (index: number, place: number, maxBytes: number | undefined): Command =>
  about(
    `read behind ${place} % with ${maxBytes ?? 'no'} budget`,
    index,
    (_, model) => isUp(model),
    async (process, world) => {
      const cursor = Math.floor((place * (process.events.length + 2)) / 100);
      const params = { processId: process.id, afterSeq: cursor, ...(maxBytes === undefined ? {} : { maxBytes }) };
      const reading = world.controller.client.call('process/read', params);
      if (process.forgotten !== undefined) return expectRefused(reading, { reason: 'expiredProcess' });
      // The follower may have one more than it has looked at.
      const delivered = world.controller.follower(process).handle.cursor;
      return process.expectRead(await reading, { cursor, maxBytes, delivered });
    },
  );

const list = (): Command =>
  command('list', isUp, async (model, world) => {
    const { processes } = await world.controller.client.list();
    expect(processes.map(({ processId, state, nextSeq }) => ({ processId, state, nextSeq }))).toEqual(
      model.processes
        .filter(({ forgotten }) => forgotten === undefined)
        .map(({ id, state, events }) => ({ processId: id, state, nextSeq: events.length + 1 })),
    );
  });

const terminate = (index: number): Command =>
  about(
    'terminate',
    index,
    (_, model) => isUp(model),
    async (process, world, at) => {
      const running = process.state === 'running';
      if (running) process.kill();
      const { client } = world.controller;
      expect(await client.call('process/terminate', { processId: process.id })).toEqual({ running });
      if (running) expect(world.child(at).signals).toContain(KILLED);
    },
  );

const signal = (index: number): Command =>
  about(
    'signal',
    index,
    (_, model) => isUp(model),
    async (process, world) => {
      const call = world.controller.client.call('process/signal', { processId: process.id, signal: 'SIGTERM' });
      expect(await call).toEqual({ delivered: process.state === 'running' });
    },
  );

const release = (index: number): Command =>
  about(
    'release',
    index,
    (_, model) => isUp(model),
    async (process, world) => {
      if (process.forgotten !== undefined) {
        const reason = process.forgotten === 'released' ? 'alreadyReleased' : 'expiredProcess';
        return expectRefused(world.controller.client.call('process/release', { processId: process.id }), { reason });
      }
      const follower = world.controller.follower(process);
      if (process.state !== 'closed') return expectRefused(follower.handle.release(), { reason: 'processRunning' });
      // Those who are slow would find nothing any more.
      for (const party of [world.controller, ...world.observers]) party.followers.get(process)?.letGo();
      await world.caughtUp();
      await follower.handle.release();
      process.forgotten = 'released';
      return undefined;
    },
  );

const hold = (index: number): Command =>
  about(
    'a slow reader of',
    index,
    ({ forgotten }) => forgotten === undefined,
    (process, world) => world.controller.follower(process).hold(),
  );

const letGo = (index: number): Command =>
  about(
    'a reader goes on with',
    index,
    ({ forgotten }) => forgotten === undefined,
    (process, world) => world.controller.follower(process).letGo(),
  );

const cut = (): Command => command('cut', isUp, (_, world) => world.controller.line.cut());

const cutForLong = (): Command =>
  command('cut for long', isUp, async (model, world) => {
    model.link = 'down';
    const { line, client } = world.controller;
    line.refusing = true;
    line.cut();
    while (world.server.gauges().attachedSessions > 0 || client.state !== 'recovering') {
      await new Promise((resolve) => setImmediate(resolve));
    }
  });

const passTime = (ms: number): Command =>
  command(`${ms} ms pass`, isDown, (_, world) => {
    // The session was detached a moment ago, or its lease would be over.
    expect(world.server.gauges().sessions).toBe(1);
    world.clock.advance(ms);
  });

const comeBack = (): Command =>
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

const expire = (): Command =>
  command('the lease ends', isDown, async (model, world) => {
    // Who observes may see them die.
    for (const process of model.processes) process.kill();
    world.clock.advance(LEASE_MS);
    expect(world.server.gauges()).toMatchObject({ sessions: 0, processes: 0, observers: 0 });
    await begun(model, world, ['SESSION_EXPIRED']);
  });

const restart = (): Command =>
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

const takeOver = (): Command =>
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

const intrude = (): Command =>
  command('a second client wants control', isUp, async (_, world) => {
    const { sessionId, observeId } = world.controller.client;
    await attached(world);
    await expectRefused(world.join({ resumeSessionId: sessionId }), { reason: 'attachedElsewhere' });
    await expectRefused(world.join({ resumeSessionId: observeId }), { reason: 'observeOnly' });
  });

const observe = (place: number): Command =>
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

const leave = (): Command =>
  command(
    'an observer leaves',
    ({ observers }) => observers > 0,
    async (model, world) => {
      model.observers -= 1;
      await world.observers.shift()?.client.close();
    },
  );

const cutObserver = (): Command =>
  command(
    'an observer is cut',
    ({ observers }) => observers > 0,
    (_, world) => world.observers[0]?.line.cut(),
  );

const meddle = (index: number): Command =>
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

const retire = (): Command =>
  command('the retention of what has closed ends', isUp, async (model, world) => {
    for (const party of [world.controller, ...world.observers]) {
      for (const follower of party.followers.values()) follower.letGo();
    }
    await world.caughtUp();
    // Behind the acknowledgements.
    await world.controller.client.ping();
    world.clock.advance(RETENTION_MS);
    for (const process of model.processes) {
      if (process.state === 'closed') process.forgotten ??= 'expired';
    }
  });

const index = fc.nat(MAX_PROCESSES - 1);
const small = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 5 });
const large = fc.integer({ min: 1, max: 48 }).map((count) => Array.from({ length: count }, () => 65_536));
const text = fc.stringMatching(/^[a-z]{1,8}$/);
const percent = fc.integer({ min: 0, max: 100 });
const budget = fc.option(fc.oneof(fc.integer({ min: 1, max: 500 }), fc.constant(200_000)), { nil: undefined });
const rarely = fc.integer({ min: 0, max: 3 }).map((drawn) => drawn === 0);

const always = fc.constant(null);
const weighted: readonly (readonly [number, fc.Arbitrary<Command>])[] = [
  [4, fc.tuple(rarely, rarely).map(([drops, cutIt]) => start(drops, cutIt))],
  [4, fc.tuple(index, small).map(([at, sizes]) => emit(at, sizes))],
  [4, fc.tuple(index, large).map(([at, sizes]) => emit(at, sizes))],
  [2, fc.tuple(index, fc.integer({ min: 0, max: 255 })).map(([at, code]) => exit(at, code))],
  [1, index.map(die)],
  [2, index.map(endStreams)],
  [3, fc.tuple(index, text, rarely).map(([at, words, cutIt]) => write(at, words, cutIt))],
  [1, index.map(takeStdin)],
  [1, index.map(endStdin)],
  [6, fc.tuple(index, percent, budget).map(([at, place, most]) => read(at, place, most))],
  [1, always.map(list)],
  [1, index.map(startTaken)],
  [1, index.map(terminate)],
  [1, index.map(signal)],
  [2, index.map(release)],
  [2, index.map(hold)],
  [1, index.map(letGo)],
  [2, always.map(cut)],
  [2, always.map(cutForLong)],
  [1, fc.constant(1).map(passTime)],
  [3, always.map(comeBack)],
  [1, always.map(expire)],
  [1, fc.oneof({ weight: 3, arbitrary: always.map(cut) }, { weight: 1, arbitrary: always.map(restart) })],
  [1, always.map(takeOver)],
  [1, always.map(intrude)],
  [1, percent.map(observe)],
  [1, always.map(leave)],
  [1, always.map(cutObserver)],
  [1, index.map(meddle)],
  [1, always.map(retire)],
];

/** Random programs. */
export const programs = fc.commands(
  weighted.flatMap(([weight, arbitrary]) => Array.from({ length: weight }, () => arbitrary)),
  { maxCommands: 100, size: 'max' },
);
