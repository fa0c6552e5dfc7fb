/** The `permissions` member of file methods. Pure. */
import { WireError } from '@exec-server/protocol';

const MOST = 0o7777;

/** Undefined when there are none. Throws WireError `invalidArgument`. */
export function checkPermissions(permissions: number | null | undefined): number | undefined {
  if (permissions === null || permissions === undefined) return undefined;
  if (permissions <= MOST) return permissions;
  throw new WireError('invalidArgument', `permissions must be 0 to ${MOST} (0o7777)`, {
    field: 'permissions',
    limit: MOST,
  });
}
