/** Whether a session may still be resumed. Pure. */

export type Lease =
  | { readonly state: 'attached' }
  | { readonly state: 'detached'; readonly until: number }
  | { readonly state: 'expired' };

export const attached: Lease = { state: 'attached' };
export const expired: Lease = { state: 'expired' };

/** The clock starts anew at every detach. */
export function detach(lease: Lease, leaseMs: number, now: number): Lease {
  return lease.state === 'attached' ? { state: 'detached', until: now + leaseMs } : lease;
}

/** What the lease is at `now`; a timer may come late, so it is asked at each use. */
export function leaseAt(lease: Lease, now: number): Lease {
  return lease.state === 'detached' && now >= lease.until ? expired : lease;
}

/** The attached lease, or undefined when the session is past its end. */
export function resume(lease: Lease, now: number): Lease | undefined {
  return leaseAt(lease, now).state === 'expired' ? undefined : attached;
}
