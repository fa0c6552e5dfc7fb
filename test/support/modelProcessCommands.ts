/** What a random program can do with one process: each command acts on the world, tells the model, and checks the answer. */
import { isClientError } from '@exec-server/client';
import { expect } from 'vitest';
import { Follower } from './follower.js';
import { about, type Command, command, expectRefused, isDown, isUp, MAX_PROCESSES } from './modelCommand.js';
import { ModelProcess } from './modelProcess.js';
import type { Party } from './world.js';

/** Cuts so many turns later, each eighth one of the event loop: before the message has left, while it is under way, or when it was answered. */
async function cutAfter(line: Pick<Party['line'], 'cut'>, turns: number | undefined): Promise<void> {
  if (turns === undefined) return;
  for (let turn = 0; turn < turns; turn += 1) await (turn % 8 === 7 ? new Promise(setImmediate) : undefined);
  line.cut();
}

export const start = (drops: boolean, cut: number | undefined): Command =>
  command(
    `start${drops ? ' (drop)' : ''}${cut === undefined ? '' : ` into a cut after ${cut} turns`}`,
    (model) => isUp(model) && model.processes.length < MAX_PROCESSES,
    async (model, world) => {
      const process = new ModelProcess(`p${model.processes.length}`, drops);
      const { client, line, followers } = world.controller;
      const detached = drops ? 'drop' : 'spool';
      const starting = client.start({ processId: process.id, argv: ['scripted'], cwd: '/', stdin: 'pipe', detached });
      await cutAfter(line, cut);
      followers.set(process, new Follower(await starting, process, { mayMiss: drops }));
      model.processes.push(process);
      expect(world.platform.children).toHaveLength(model.processes.length);
      for (const observer of world.observers) {
        await world.follow(observer, [process], { mayMiss: true, afterSeq: () => 0 });
      }
    },
  );

export const startTaken = (index: number): Command =>
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
export const emit = (index: number, sizes: readonly number[]): Command =>
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

export const exit = (index: number, code: number): Command =>
  about(
    `exit ${code} of`,
    index,
    ({ state }) => state === 'running',
    (process, world, at) => {
      process.exit({ exitCode: code, signal: undefined, reason: 'exited' });
      world.child(at).exit({ code });
    },
  );

export const die = (index: number): Command =>
  about(
    'death by SIGTERM of',
    index,
    ({ state }) => state === 'running',
    (process, world, at) => {
      process.exit({ exitCode: 143, signal: 'SIGTERM', reason: 'exited' });
      world.child(at).exit({ signal: 'SIGTERM' });
    },
  );

export const endStreams = (index: number): Command =>
  about(
    'end of streams of',
    index,
    ({ streamsOpen }) => streamsOpen,
    (process, world, at) => {
      process.endStreams();
      world.child(at).endOutputs();
    },
  );

export function taken(process: ModelProcess, text: string): string {
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

export const write = (index: number, text: string, cut: number | undefined): Command =>
  about(
    `write ${text}${cut === undefined ? '' : ` into a cut after ${cut} turns`} to`,
    index,
    ({ forgotten }) => forgotten === undefined,
    async (process, world, _, model) => {
      const { line } = world.controller;
      const outcome = outcomeOf(world.controller.follower(process).handle.write(text));
      if (isDown(model)) {
        world.waiting.push({ process, text, outcome });
        return;
      }
      await cutAfter(line, cut);
      expect(await outcome).toBe(taken(process, text));
    },
  );

export const takeStdin = (index: number): Command =>
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

export const endStdin = (index: number): Command =>
  about(
    'end the stdin of',
    index,
    ({ state }, model) => isUp(model) && state === 'running',
    async (process, world) => {
      expect(await outcomeOf(world.controller.follower(process).handle.end())).toBe(taken(process, ''));
      process.stdinOpen = false;
    },
  );

export const read = (index: number, place: number, maxBytes: number | undefined): Command =>
  about(
    `read behind ${place} % with ${maxBytes ?? 'no'} budget`,
    index,
    // A read by hand ends the wait for a first read, and with an acknowledgement lost the process is kept with its connection.
    (process, model) => isUp(model) && !process.endCutOff,
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

export const list = (): Command =>
  command('list', isUp, async (model, world) => {
    const { processes } = await world.controller.client.list();
    expect(processes.map(({ processId, state, nextSeq }) => ({ processId, state, nextSeq }))).toEqual(
      model.processes
        .filter(({ forgotten }) => forgotten === undefined)
        .map(({ id, state, events }) => ({ processId: id, state, nextSeq: events.length + 1 })),
    );
  });

export const terminate = (index: number): Command =>
  about(
    'terminate',
    index,
    (_, model) => isUp(model),
    async (process, world, at) => {
      const running = process.state === 'running';
      if (running) process.kill();
      const { client } = world.controller;
      expect(await client.call('process/terminate', { processId: process.id })).toEqual({ running });
      if (running) expect(world.child(at).signals).toContain('SIGKILL');
    },
  );

export const signal = (index: number): Command =>
  about(
    'signal',
    index,
    (_, model) => isUp(model),
    async (process, world) => {
      const call = world.controller.client.call('process/signal', { processId: process.id, signal: 'SIGTERM' });
      expect(await call).toEqual({ delivered: process.state === 'running' });
    },
  );

export const release = (index: number): Command =>
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

export const hold = (index: number): Command =>
  about(
    'a slow reader of',
    index,
    ({ forgotten }) => forgotten === undefined,
    (process, world) => world.controller.follower(process).hold(),
  );

export const letGo = (index: number): Command =>
  about(
    'a reader goes on with',
    index,
    ({ forgotten }) => forgotten === undefined,
    (process, world) => world.controller.follower(process).letGo(),
  );
