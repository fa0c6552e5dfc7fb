import { describe, expect, it } from 'vitest';
import { DEAD_PINGS, Liveness, SILENT_PINGS } from './liveness.js';

function after(pings: number): Liveness {
  const liveness = new Liveness();
  for (let ping = 0; ping < pings; ping += 1) liveness.asked();
  return liveness;
}

describe('a peer', () => {
  it('is silent after three pings without an answer, and dead long after', () => {
    expect(after(SILENT_PINGS - 1)).toMatchObject({ isSilent: false, isDead: false });
    expect(after(SILENT_PINGS)).toMatchObject({ isSilent: true, isDead: false });
    expect(after(DEAD_PINGS)).toMatchObject({ isSilent: true, isDead: true });
  });

  it('is alive again with whatever comes from it', () => {
    const liveness = after(DEAD_PINGS);
    liveness.heard();
    expect(liveness).toMatchObject({ isSilent: false, isDead: false });
  });
});
