/** Compares what two servers made of one sequence. Pure. */
import { isDeepStrictEqual } from 'node:util';
import { differences } from './differences.js';
import type { Seen, Step, Tree } from './step.js';

interface Unexplained {
  readonly step: Step;
  readonly reference: unknown;
  readonly ours: unknown;
}

export interface Comparison {
  readonly unexplained: Unexplained | undefined;
  /** Names of the differences of the table that were met. */
  readonly explained: readonly string[];
  /** Steps that were compared; fewer than there are where a server fell silent, or a difference ends the sequence. */
  readonly steps: number;
}

export function compare(steps: readonly Step[], reference: readonly Seen[], ours: readonly Seen[]): Comparison {
  const explained: string[] = [];
  let compared = 0;
  for (const [index, step] of steps.entries()) {
    const theirs = reference[index];
    const own = ours[index];
    if (theirs === undefined || own === undefined) break;
    compared += 1;
    if (isSameAnswer(theirs, own) && isDeepStrictEqual(leftOf(theirs), leftOf(own))) continue;
    const difference = differences.find(({ explains }) => explains(step, theirs, own));
    if (difference === undefined) {
      return { unexplained: { step, reference: theirs, ours: own }, explained, steps: compared };
    }
    explained.push(difference.name);
    if (difference.goesOn !== true) break;
  }
  return { unexplained: undefined, explained, steps: compared };
}

/** Ours may say more than the reference in a result; never less, and nothing else. */
function isSameAnswer(reference: Seen, ours: Seen): boolean {
  if ('result' in reference && 'result' in ours) return includes(ours.result, reference.result);
  if ('error' in reference && 'error' in ours) return isDeepStrictEqual(reference.error, ours.error);
  return isDeepStrictEqual(reference, ours);
}

const leftOf = (seen: Seen): Tree | undefined => ('silence' in seen ? undefined : seen.left);

function includes(ours: unknown, reference: unknown): boolean {
  if (typeof reference !== 'object' || reference === null || typeof ours !== 'object' || ours === null) {
    return Object.is(ours, reference);
  }
  if (Array.isArray(reference) || Array.isArray(ours)) {
    if (!Array.isArray(reference) || !Array.isArray(ours) || reference.length !== ours.length) return false;
    return reference.every((item, index) => includes(ours[index], item));
  }
  const own = ours as Readonly<Record<string, unknown>>;
  return Object.entries(reference).every(([key, value]) => key in own && includes(own[key], value));
}
