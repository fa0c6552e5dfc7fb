import type { StreamName } from '@exec-server/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SpoolIndex, type SpoolPlace } from './spoolIndex.js';

const SEGMENT = 100;

type Step =
  | {
      readonly kind: 'append';
      readonly stream: StreamName | undefined;
      readonly length: number;
      readonly times: number;
    }
  | { readonly kind: 'drop'; readonly share: number }
  | { readonly kind: 'skip'; readonly seqs: number };

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('append' as const),
        stream: fc.constantFrom<(StreamName | undefined)[]>('stdout', 'stderr', 'pty', undefined),
        length: fc.nat(70),
        times: fc.oneof({ weight: 6, arbitrary: fc.integer({ min: 1, max: 5 }) }, fc.integer({ min: 1, max: 1500 })),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('drop' as const), share: fc.double({ min: 0, max: 1.1, noNaN: true }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('skip' as const), seqs: fc.nat(5) }) },
  ),
  { maxLength: 40 },
);

/** Keeps a list and looks at all of it. */
class Model {
  places: SpoolPlace[] = [];
  end = 0;
  nextSeq = 1;

  append(stream: StreamName | undefined, length: number): void {
    this.places.push({ seq: this.nextSeq, position: this.end, length, stream });
    this.nextSeq += 1;
    this.end += length;
  }

  drop(seq: number): unknown {
    const gone = this.places.filter((place) => place.seq <= seq);
    const [first] = gone;
    this.places = this.places.filter((place) => place.seq > seq);
    if (first === undefined) return undefined;
    while (this.places.length === 0 && this.end % SEGMENT !== 0) this.end += 1;
    return {
      fromSeq: first.seq,
      throughSeq: gone.at(-1)?.seq,
      bytes: gone.reduce((sum, { length }) => sum + length, 0),
    };
  }

  after(afterSeq: number, maxBytes: number, maxChunks: number): SpoolPlace[] {
    const found: SpoolPlace[] = [];
    let bytes = 0;
    for (const place of this.places) {
      if (place.seq <= afterSeq || place.stream === undefined) continue;
      bytes += place.length;
      if (found.length > 0 && (bytes > maxBytes || found.length >= maxChunks)) break;
      found.push(place);
    }
    return found;
  }
}

function run(index: SpoolIndex, model: Model, step: Step): void {
  if (step.kind === 'append') {
    for (let n = 0; n < step.times; n += 1) {
      const length = step.stream === undefined ? 0 : step.length;
      index.append(model.nextSeq, step.stream, length);
      model.append(step.stream, length);
    }
  } else if (step.kind === 'drop') {
    const first = model.places[0]?.seq ?? model.nextSeq;
    const seq = first - 1 + Math.round(model.places.length * step.share);
    expect(index.dropThrough(seq)).toEqual(model.drop(seq));
  } else if (model.places.length === 0) model.nextSeq += step.seqs;
}

describe('SpoolIndex', () => {
  it('agrees with a list of everything', () => {
    fc.assert(
      fc.property(steps, fc.nat(3000), fc.nat(300), fc.nat(40), (taken, pick, maxBytes, maxChunks) => {
        const index = new SpoolIndex(SEGMENT);
        const model = new Model();
        for (const step of taken) {
          run(index, model, step);
          const { places } = model;
          const first = places[0];
          expect(index.events).toBe(places.length);
          expect(index.bytes).toBe(places.reduce((sum, { length }) => sum + length, 0));
          expect(index.endPosition).toBe(model.end);
          expect(index.firstPosition).toBe(first?.position ?? model.end);
          if (first !== undefined) expect([index.firstSeq, index.endSeq]).toEqual([first.seq, model.nextSeq]);
          const seq = (first?.seq ?? 1) - 2 + (pick % (places.length + 4));
          expect(index.at(seq)).toEqual(places.find((place) => place.seq === seq));
          expect(index.chunksAfter(seq, maxBytes, maxChunks)).toEqual(model.after(seq, maxBytes, maxChunks));
        }
      }),
      { numRuns: 200 },
    );
  });

  it('refuses a hole, and takes any seq when it is empty', () => {
    const index = new SpoolIndex(SEGMENT);
    index.append(7, 'stdout', 3);
    expect(() => index.append(9, 'stdout', 3)).toThrow(RangeError);
    index.dropThrough(7);
    index.append(41, 'stderr', 5);
    expect(index.at(41)).toEqual({ seq: 41, position: SEGMENT, length: 5, stream: 'stderr' });
  });
});
