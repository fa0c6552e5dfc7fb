import { describe, expect, it } from 'vitest';
import * as lease from './lease.js';

describe('a lease', () => {
  const detached = lease.detach(lease.attached, 100, 1000);

  it('runs from the detach', () => {
    expect(detached).toEqual({ state: 'detached', until: 1100 });
  });

  it('is over exactly at its end', () => {
    expect(lease.leaseAt(detached, 1099)).toBe(detached);
    expect(lease.leaseAt(detached, 1100)).toBe(lease.expired);
  });

  it('is not prolonged by a second detach', () => {
    expect(lease.detach(detached, 100, 1050)).toBe(detached);
  });

  it('begins anew at a detach after a resume', () => {
    const resumed = lease.resume(detached, 1099);
    expect(resumed).toBe(lease.attached);
    expect(lease.detach(resumed ?? lease.expired, 100, 2000)).toEqual({ state: 'detached', until: 2100 });
  });

  it('cannot be resumed at its end or later, whether or not a timer has noticed', () => {
    expect(lease.resume(detached, 1100)).toBeUndefined();
    expect(lease.resume(lease.expired, 0)).toBeUndefined();
  });

  it('never ends while attached, and stays expired', () => {
    expect(lease.leaseAt(lease.attached, Number.MAX_SAFE_INTEGER)).toBe(lease.attached);
    expect(lease.detach(lease.expired, 100, 0)).toBe(lease.expired);
  });
});
