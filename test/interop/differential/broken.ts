/** Params with a fault in one member. Pure. */
import fc from 'fast-check';
import type { Params } from './step.js';

const wrongValue = fc.constantFrom<unknown>(null, 5, -1, 1.5, true, 'text', [], {}, [1], { a: 1 });

/** A member is missing, of the wrong kind, or one too many; one fault at a time, as which of several is told first is chance. */
export function brokenParams(params: Params): fc.Arbitrary<Params> {
  if (Object.keys(params).length === 0) return fc.constant({ unknownMember: 1 });
  const key = fc.constantFrom(...Object.keys(params));
  return fc.oneof(
    key.map((key) => Object.fromEntries(Object.entries(params).filter(([name]) => name !== key))),
    fc.tuple(key, wrongValue).map(([key, value]) => ({ ...params, [key]: value })),
    fc.constant({ ...params, unknownMember: 1 }),
  );
}
