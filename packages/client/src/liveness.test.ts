import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { type CarrierCounts, Liveness, LOOK_EVERY_MS } from './liveness.js';

const NOTHING: CarrierCounts = { received: 0, sent: 0, waiting: 0 };

/** Looks for so long; each look finds what `counts` gives for it. */
function look(liveness: Liveness, ms: number, counts: (passed: number) => CarrierCounts = () => NOTHING): Liveness {
  for (let passed = LOOK_EVERY_MS; passed <= ms; passed += LOOK_EVERY_MS) liveness.look(counts(passed), false);
  return liveness;
}

describe('a server', () => {
  it('is lost after 25 s without a sign of life, and not before', () => {
    expect(look(new Liveness(), limits.SUSPECT_MS - LOOK_EVERY_MS).isLost).toBe(false);
    expect(look(new Liveness(), limits.SUSPECT_MS).isLost).toBe(true);
  });

  it('lives with whatever comes from it', () => {
    const liveness = look(new Liveness(), limits.SUSPECT_MS - LOOK_EVERY_MS);
    liveness.heard();
    expect(look(liveness, limits.SUSPECT_MS - LOOK_EVERY_MS).isLost).toBe(false);
    expect(look(liveness, LOOK_EVERY_MS).isLost).toBe(true);
  });

  it('lives while the bytes of one message come, however long that takes', () => {
    const liveness = look(new Liveness(), 10 * limits.SUSPECT_MS, (passed) => ({ ...NOTHING, received: passed }));
    expect(liveness.isLost).toBe(false);
  });

  it('lives while it takes what it was sent, in one write or in many', () => {
    const waiting = (passed: number): CarrierCounts => ({ ...NOTHING, waiting: 1_000_000 - passed });
    expect(look(new Liveness(), 10 * limits.SUSPECT_MS, waiting).isLost).toBe(false);
    const sent = (passed: number): CarrierCounts => ({ received: 0, sent: passed, waiting: 7 });
    expect(look(new Liveness(), 10 * limits.SUSPECT_MS, sent).isLost).toBe(false);
  });

  it('is lost although the host takes what nobody may ever read, and although something waits', () => {
    expect(look(new Liveness(), limits.SUSPECT_MS, (passed) => ({ ...NOTHING, sent: passed })).isLost).toBe(true);
    const stuck = (): CarrierCounts => ({ received: 0, sent: 3, waiting: 7 });
    expect(look(new Liveness(), limits.SUSPECT_MS + LOOK_EVERY_MS, stuck).isLost).toBe(true);
  });

  it('is not silent while this side does not read', () => {
    const liveness = look(new Liveness(), limits.SUSPECT_MS - LOOK_EVERY_MS);
    for (let looks = 0; looks < 100; looks++) liveness.look(NOTHING, true);
    expect(liveness.isLost).toBe(false);
    liveness.look(NOTHING, false);
    expect(liveness.isLost).toBe(true);
  });

  it('is asked for a sign of life every 10 s', () => {
    const liveness = new Liveness();
    const asked: number[] = [];
    for (let passed = LOOK_EVERY_MS; passed <= 30_000; passed += LOOK_EVERY_MS) {
      liveness.look(NOTHING, false);
      if (liveness.asks) asked.push(passed);
    }
    expect(asked).toEqual([10_000, 20_000, 30_000]);
  });
});
