/** What the commands of a random program have in common: when they may run, what they act on, and what is refused. */
import { type ClientErrorCode, isClientError } from '@exec-server/client';
import type fc from 'fast-check';
import { expect } from 'vitest';
import type { ModelProcess } from './modelProcess.js';
import type { World } from './world.js';

export class Model {
  processes: ModelProcess[] = [];
  link: 'up' | 'down' = 'up';
  observers = 0;
}

export type Command = fc.AsyncCommand<Model, World>;
export type Check = (model: Model) => boolean;

export const MAX_PROCESSES = 5;

/** A command with a name to print. After it everybody has got what came out. */
export function command(
  words: string,
  check: Check,
  run: (model: Model, world: World) => Promise<void> | void,
): Command {
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
export function about(
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

export const isUp: Check = ({ link }) => link === 'up';
export const isDown: Check = ({ link }) => link === 'down';

export async function expectRefused(
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
