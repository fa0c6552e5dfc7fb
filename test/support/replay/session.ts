/** One connection of a replay with what came over it: takes recorded messages off it, in any order among those that wait. */
import { until } from '../until.js';
import { type Comparison, compare } from './compare.js';
import { type Allowance, EXTRA, EXTRA_OUTPUT } from './difference.js';
import type { ReplayLine } from './line.js';
import type { Bound } from './placeholders.js';
import { inOnePiece, pieceOf, type Shift, shiftOf, Streams, withoutContent, withoutSeq } from './streams.js';
import { type JsonObject, textOf } from './transcript.js';

/** Ample for a message that comes at all. */
const WAIT_MS = 7_000;

/** A message that waits, held against the recorded one. */
interface Candidate extends Comparison {
  readonly actual: JsonObject;
  /** Ids of the differences it needs. */
  readonly used: readonly string[];
  /** What none of them forgives. */
  readonly left: Comparison['mismatches'];
  /** What it holds beyond the recorded answer to a read. */
  readonly shifts: ReadonlyMap<string, Shift>;
}

export class ReplaySession {
  line: ReplayLine | undefined;
  /** Messages nobody has taken yet. */
  readonly #waiting: JsonObject[] = [];
  readonly #requests = new Map<unknown, JsonObject>();
  readonly #allowance: Allowance;
  readonly #streams: Streams;
  readonly #ignored = new Set<unknown>();
  #fault: string | undefined;

  constructor(allowance: Allowance) {
    this.#allowance = allowance;
    this.#streams = new Streams((output) => allowance.strip(output));
  }

  readonly receive = (message: JsonObject): void => {
    if (this.#ignored.has(message['method'])) return;
    const piece = pieceOf(message);
    // Told where the replay waits next, or at its end.
    this.#fault ??= this.#streams.seqFault(message);
    if (piece === undefined) this.#waiting.push(withoutSeq(message));
    else this.#streams.receive(piece);
  };

  ignore(method: string): void {
    this.#ignored.add(method);
  }

  sent(message: JsonObject): void {
    if (message['id'] !== undefined) this.#requests.set(message['id'], message);
  }

  /** Whether a request was answered and nobody has taken the answer. */
  get holdsAnswer(): boolean {
    return this.#waiting.some(({ id }) => id !== undefined);
  }

  /**
   * Waits for a message that is this one but for declared differences, and tells what its placeholders stand for. Throws, with
   * what is nearest, when none comes.
   */
  async take(recorded: JsonObject, bound: Bound): Promise<Bound> {
    const piece = pieceOf(recorded);
    if (piece !== undefined) {
      this.#streams.expect(piece);
      await this.#wait(() => this.#streams.has(piece.stream), `the bytes of ${JSON.stringify(recorded)}`);
      return new Map();
    }
    const expected = withoutSeq(recorded);
    const found = (): boolean => this.#compared(expected, bound).some(({ left }) => left.length === 0);
    await this.#wait(() => found() || this.#isAnswered(expected), JSON.stringify(expected));
    const { actual, used, binds, shifts } = this.#find(expected, bound);
    this.#waiting.splice(this.#waiting.indexOf(actual), 1);
    this.#allowance.use(used);
    const processId = textOf((this.#requests.get(expected['id'])?.['params'] as JsonObject | undefined)?.['processId']);
    for (const [stream, shift] of shifts) this.#streams.shift(`${processId} ${stream}`, shift);
    return binds;
  }

  /** What came, was not taken, and is no declared difference. */
  leftOver(): string[] {
    const fault = this.#fault === undefined ? [] : [this.#fault];
    const messages = this.#waiting.filter((message) => !this.#isForgiven(EXTRA, message, message));
    const streams = this.#streams
      .leftOver()
      .filter(({ stream, rest }) => !this.#isForgiven(EXTRA_OUTPUT, rest, { stream, rest }));
    const missing = this.#streams.missing().map((stream) => `${stream}: bytes of the recording never came`);
    return [...fault, ...missing, ...[...messages, ...streams].map((extra) => JSON.stringify(extra))];
  }

  #isForgiven(path: string, actual: JsonObject | string, message: JsonObject): boolean {
    const request = this.#requests.get(message['id']);
    const exchange = { expected: {}, actual: message, request };
    return this.#allowance.settle([{ path, expected: undefined, actual }], exchange).length === 0;
  }

  /** An answer that is not the recorded one will not be followed by another one. */
  #isAnswered({ id }: JsonObject): boolean {
    return id !== undefined && id !== -1 && this.#waiting.some((message) => message['id'] === id);
  }

  #find(expected: JsonObject, bound: Bound): Candidate {
    const compared = this.#compared(expected, bound);
    const found =
      compared.find(({ mismatches }) => mismatches.length === 0) ?? compared.find(({ left }) => left.length === 0);
    if (found === undefined) throw new Error(`not as recorded\n${this.#nearest(expected, bound)}`);
    return found;
  }

  #compared(expected: JsonObject, bound: Bound): Candidate[] {
    const request = this.#requests.get(expected['id']);
    const sameKind = ({ id, method }: JsonObject): boolean => id === expected['id'] && method === expected['method'];
    return this.#waiting.filter(sameKind).map((actual) => {
      const weighed = ({ mismatches, binds }: Comparison, shifts: Candidate['shifts']): Candidate => {
        const { used, unforgiven } = this.#allowance.weigh(mismatches, { expected, actual, request });
        return { actual, mismatches, binds, used, left: unforgiven, shifts };
      };
      const whole = weighed(compareOutput(expected, actual, bound), new Map());
      const shifts = whole.left.length === 0 ? undefined : shiftOf(expected, actual);
      return shifts === undefined
        ? whole
        : weighed(compare(withoutContent(expected), withoutContent(actual), bound), shifts);
    });
  }

  #nearest(expected: JsonObject, bound: Bound): string {
    const [nearest] = this.#compared(expected, bound).sort((one, other) => one.left.length - other.left.length);
    if (nearest === undefined) return `waiting: ${JSON.stringify(this.#waiting).slice(0, 2_000)}`;
    const request = JSON.stringify(this.#requests.get(expected['id']))?.slice(0, 400);
    const brief = (value: unknown): string => JSON.stringify(value).slice(0, 1_000);
    return `request: ${request}\ncame: ${brief(nearest.actual)}\ndiffers: ${brief(nearest.left)}`;
  }

  async #wait(condition: () => boolean, what: string): Promise<void> {
    const { ms, waited } = this.#allowance.patience(WAIT_MS);
    const start = performance.now();
    await until(
      () => {
        if (this.#fault !== undefined) throw new Error(this.#fault);
        return condition();
      },
      what,
      ms,
    );
    waited(performance.now() - start);
  }
}

/** Output that was read may have come in other pieces than those recorded. */
function compareOutput(expected: JsonObject, actual: JsonObject, bound: Bound): Comparison {
  const asTheyAre = compare(expected, actual, bound);
  if (asTheyAre.mismatches.length === 0) return asTheyAre;
  const [one, other] = [inOnePiece(expected), inOnePiece(actual)];
  if (one === undefined || other === undefined) return asTheyAre;
  const joined = compare(one, other, bound);
  return joined.mismatches.length < asTheyAre.mismatches.length ? joined : asTheyAre;
}
