/** Random file requests that arrive and end at random against a model: which of them run at each moment. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Claims, PathOrder } from '../../packages/server/src/files/pathOrder.js';
import { type BytePath, pathOf } from '../../packages/server/src/paths.js';
import { scaled } from '../support/scale.js';

/** The names of the way down from the root. */
type Way = readonly string[];
interface Wish {
  readonly reads: readonly Way[];
  readonly writes: readonly Way[];
}
type Step =
  | { readonly kind: 'arrive'; readonly wish: Wish }
  | { readonly kind: 'end'; readonly which: number; readonly fails: boolean };

/** `a` is the beginning of `ab`, but no folder above it. */
const way = fc.array(fc.constantFrom('a', 'ab', 'b'), { maxLength: 3 });
const ways = fc.array(way, { maxLength: 2 });
const arrive = fc.record({ kind: fc.constant('arrive' as const), wish: fc.record({ reads: ways, writes: ways }) });
const end = fc.record({ kind: fc.constant('end' as const), which: fc.nat(20), fails: fc.boolean() });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof({ weight: 3, arbitrary: arrive }, { weight: 2, arbitrary: end }),
  {
    maxLength: 40,
  },
);

/** One after the other in the order of arrival, but for those that have nothing to do with each other. */
class Model {
  readonly #unfinished = new Map<number, Wish>();

  arrive(id: number, wish: Wish): void {
    this.#unfinished.set(id, wish);
  }

  end(id: number): void {
    this.#unfinished.delete(id);
  }

  /** Those that no earlier one is in the way of. */
  running(): number[] {
    const all = [...this.#unfinished];
    return all
      .filter(([, wish], index) => !all.slice(0, index).some(([, earlier]) => conflict(wish, earlier)))
      .map(([id]) => id);
  }
}

function conflict(one: Wish, other: Wish): boolean {
  const isAbove = (above: Way, below: Way): boolean => above.every((name, depth) => below[depth] === name);
  const touch = (some: readonly Way[], others: readonly Way[]): boolean =>
    some.some((first) => others.some((second) => isAbove(first, second) || isAbove(second, first)));
  return touch(one.writes, [...other.writes, ...other.reads]) || touch(one.reads, other.writes);
}

/** The order under test, with requests that run until they are told to end. */
class Subject {
  readonly #order = new PathOrder();
  readonly #running = new Map<number, (fails: boolean) => void>();
  readonly outcomes: Promise<string>[] = [];

  arrive(id: number, { reads, writes }: Wish): void {
    const claims: Claims = { reads: reads.map(toPath), writes: writes.map(toPath) };
    const outcome = this.#order.run(
      claims,
      () =>
        new Promise<string>((resolve, reject) => {
          this.#running.set(id, (fails) => (fails ? reject(new Error(`failed ${id}`)) : resolve(`done ${id}`)));
        }),
    );
    this.outcomes.push(outcome.catch((error: Error) => error.message));
  }

  end(id: number, fails: boolean): void {
    this.#running.get(id)?.(fails);
    this.#running.delete(id);
  }

  running(): number[] {
    return [...this.#running.keys()].sort((one, other) => one - other);
  }
}

const toPath = (names: Way): BytePath => pathOf(`/${names.join('/')}`);

/** Everything that can go on without an end of a request has gone on. */
const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

it(`runs at each moment what no earlier unfinished request is in the way of`, async () => {
  const property = fc.asyncProperty(steps, async (program) => {
    const model = new Model();
    const subject = new Subject();
    const outcomes: string[] = [];
    const finish = async (id: number, fails: boolean): Promise<void> => {
      model.end(id);
      subject.end(id, fails);
      outcomes[id] = fails ? `failed ${id}` : `done ${id}`;
      await settle();
    };
    let arrived = 0;
    for (const step of program) {
      if (step.kind === 'arrive') {
        model.arrive(arrived, step.wish);
        subject.arrive(arrived, step.wish);
        arrived += 1;
        await settle();
      } else {
        const running = model.running();
        const id = running[step.which % Math.max(running.length, 1)];
        if (id !== undefined) await finish(id, step.fails);
      }
      expect(subject.running()).toEqual(model.running());
    }
    for (let [id] = model.running(); id !== undefined; [id] = model.running()) {
      await finish(id, false);
      expect(subject.running()).toEqual(model.running());
    }
    expect(await Promise.all(subject.outcomes)).toEqual(outcomes);
  });
  await fc.assert(property, { numRuns: scaled(500, 10_000) });
});
