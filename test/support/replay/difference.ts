/** Differences from the recorded server that are meant. */
import type { Mismatch } from './compare.js';
import type { JsonObject } from './transcript.js';

/** What was recorded, what came in its place, and the request both answer, if any. */
export interface Exchange {
  readonly scenario: string;
  /** Of a close: `{closeCode}`. Of a plain HTTP request: `{status, body}`. */
  readonly expected: JsonObject;
  readonly actual: JsonObject;
  readonly request: JsonObject | undefined;
}

export interface Difference {
  readonly id: string;
  /** A cell of the table in `docs/protocol.md`. */
  readonly what: string;
  /** `extension`: more is said or accepted; `safety`: the recorded way loses or harms; `hostLimit`: the host says it otherwise. */
  readonly reason: 'extension' | 'safety' | 'hostLimit';
  /** Needed only by a file that is held in full scale alone. */
  readonly slow?: true;
  /** Whether it explains a mismatch. A whole message beyond those recorded has the path `EXTRA`, output beyond it `EXTRA_OUTPUT`. */
  readonly forgives: (mismatch: Mismatch, exchange: Exchange) => boolean;
  /** What is sent in the place of a request whose other outcome would change what follows; undefined for any other request. */
  readonly restate?: (request: JsonObject) => JsonObject | undefined;
  /** The output of a process without what it has because of this. */
  readonly strip?: (output: string) => string;
  /** How long messages are waited for where it comes into play. */
  readonly patienceMs?: (scenario: string) => number | undefined;
}

/** Beyond what is recorded: a message, and the bytes of a stream as text. */
export const EXTRA = 'extra';
export const EXTRA_OUTPUT = 'extraOutput';

/** Ids of the differences that forgive all of these, or the mismatches that none forgives. */
export function forgive(
  differences: readonly Difference[],
  mismatches: readonly Mismatch[],
  exchange: Exchange,
): { readonly used: readonly string[]; readonly unforgiven: readonly Mismatch[] } {
  const used = new Set<string>();
  const unforgiven = mismatches.filter((mismatch) => {
    const difference = differences.find(({ forgives }) => forgives(mismatch, exchange));
    if (difference !== undefined) used.add(difference.id);
    return difference === undefined;
  });
  return { used: [...used], unforgiven };
}

/** The differences a replay may use, and those it has used. */
export class Allowance {
  readonly used = new Set<string>();
  readonly #differences: readonly Difference[];
  readonly scenario: string;

  constructor(scenario: string, differences: readonly Difference[]) {
    this.scenario = scenario;
    this.#differences = differences;
  }

  /** Those that none forgives; does not count as use. */
  weigh(mismatches: readonly Mismatch[], exchange: Omit<Exchange, 'scenario'>): ReturnType<typeof forgive> {
    return forgive(this.#differences, mismatches, { ...exchange, scenario: this.scenario });
  }

  /** Those that none forgives; what forgives the others is used. */
  settle(mismatches: readonly Mismatch[], exchange: Omit<Exchange, 'scenario'>): readonly Mismatch[] {
    const { used, unforgiven } = this.weigh(mismatches, exchange);
    this.use(used);
    return unforgiven;
  }

  use(ids: readonly string[]): void {
    for (const id of ids) this.used.add(id);
  }

  restate(request: JsonObject): JsonObject {
    for (const { id, restate } of this.#differences) {
      const other = restate?.(request);
      if (other === undefined) continue;
      this.use([id]);
      return other;
    }
    return request;
  }

  strip(output: Buffer): Buffer {
    let text = output.toString('latin1');
    for (const { id, strip } of this.#differences) {
      const stripped = strip?.(text) ?? text;
      if (stripped !== text) this.use([id]);
      text = stripped;
    }
    return Buffer.from(text, 'latin1');
  }

  /** The longest patience of a difference, beyond `usualMs`; waiting longer than that is its use. */
  patience(usualMs: number): { readonly ms: number; readonly waited: (ms: number) => void } {
    const all = this.#differences.map(({ id, patienceMs }) => ({ id, ms: patienceMs?.(this.scenario) ?? 0 }));
    const longest = all.reduce((one, other) => (other.ms > one.ms ? other : one), { id: '', ms: usualMs });
    return { ms: longest.ms, waited: (ms) => ms > usualMs && longest.id !== '' && this.use([longest.id]) };
  }
}
