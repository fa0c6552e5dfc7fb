/** How methods that change files are run: once for an operation id, and in the order of their paths. */
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';
import type { Claims } from './pathOrder.js';

/** A repeat joins the first, also when that runs for another connection. Throws WireError for a bad id. */
export function changeOnce<T>(
  { files, session }: HandlerContext,
  { operationId }: { readonly operationId?: string | null | undefined },
  claims: Claims,
  action: () => Promise<T>,
): Parked<T> {
  return new Parked(session.files.once(operationId, () => files.turn(claims, action)));
}
