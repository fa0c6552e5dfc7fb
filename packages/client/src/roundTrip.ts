/** The round trip of a call that passes everything. */
import { emptyReply } from './callGuards.js';
import type { CallOptions, Calls } from './calls.js';
import type { Clock } from './clock.js';
import type { InitializeReply } from './guards.js';

export interface RoundTripHost {
  readonly calls: Calls;
  readonly clock: Clock;
  readonly server: InitializeReply;
}

/** In ms. Foreign servers have no `ping`; every server has `environment/status`. */
export async function roundTrip({ calls, clock, server }: RoundTripHost, options: CallOptions = {}): Promise<number> {
  const method = server.extended === undefined ? 'environment/status' : 'ping';
  const bounds = calls.bounds(method, options);
  try {
    let sentAt = clock.now();
    await calls.answer({ method, params: {}, guard: emptyReply }, bounds, () => (sentAt = clock.now()));
    return clock.now() - sentAt;
  } finally {
    bounds.dispose();
  }
}
