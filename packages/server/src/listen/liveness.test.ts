import { limits } from '@exec-server/protocol';
import { describe, expect, it } from 'vitest';
import { Liveness, LOOK_EVERY_MS } from './liveness.js';

const NOTHING = { received: 0, sent: 0, waiting: 0 };

/** Looked at for so long, with nothing coming and nothing leaving. */
function after(ms: number): Liveness {
  const liveness = new Liveness();
  for (let passed = 0; passed < ms; passed += LOOK_EVERY_MS) liveness.look(NOTHING);
  return liveness;
}

describe('a peer', () => {
  it('is suspect after 25 s without a sign of life, and cut long after', () => {
    expect(after(limits.SUSPECT_MS - LOOK_EVERY_MS)).toMatchObject({ isSuspect: false, isIdle: false });
    expect(after(limits.SUSPECT_MS)).toMatchObject({ isSuspect: true, isIdle: false });
    expect(after(limits.IDLE_LIMIT_MS - LOOK_EVERY_MS)).toMatchObject({ isSuspect: true, isIdle: false });
    expect(after(limits.IDLE_LIMIT_MS)).toMatchObject({ isSuspect: true, isIdle: true });
  });

  it('is alive again with whatever comes from it', () => {
    const liveness = after(limits.IDLE_LIMIT_MS);
    liveness.heard();
    expect(liveness).toMatchObject({ isSuspect: false, isIdle: false });
  });

  it('is alive while it takes what it was sent, however slowly', () => {
    const liveness = after(limits.IDLE_LIMIT_MS);
    liveness.look({ received: 0, sent: 1, waiting: 1 });
    expect(liveness).toMatchObject({ isIdle: true });
    liveness.look({ received: 0, sent: 2, waiting: 1 });
    expect(liveness).toMatchObject({ isSuspect: false, isIdle: false });
    for (let passed = 0; passed < limits.SUSPECT_MS; passed += LOOK_EVERY_MS)
      liveness.look({ received: 0, sent: 2, waiting: 1 });
    expect(liveness).toMatchObject({ isSuspect: true, isIdle: false });
  });

  it('is alive while it takes one large write', () => {
    const liveness = after(limits.IDLE_LIMIT_MS);
    for (const waiting of [3, 2]) liveness.look({ received: 0, sent: 0, waiting });
    expect(liveness).toMatchObject({ isSuspect: false, isIdle: false });
  });

  it('is alive while a message of it is on its way, however long that takes', () => {
    const liveness = after(limits.IDLE_LIMIT_MS);
    liveness.look({ received: 1, sent: 0, waiting: 0 });
    expect(liveness).toMatchObject({ isSuspect: false, isIdle: false });
  });

  it('is not alive because the host takes for it what nobody may ever read', () => {
    const liveness = new Liveness();
    for (let passed = 0; passed < limits.SUSPECT_MS; passed += LOOK_EVERY_MS)
      liveness.look({ received: 0, sent: passed, waiting: 0 });
    expect(liveness).toMatchObject({ isSuspect: true });
  });
});
