/** File methods that ask to be confined are refused: this server has no sandbox. Pure. */
import { type ParamsOf, WireError } from '@exec-server/protocol';

/** Throws WireError `sandboxUnavailable`. */
export function refuseSandbox({ sandbox }: Pick<ParamsOf<'fs/readFile'>, 'sandbox'>): void {
  if (sandbox === null || sandbox === undefined || sandbox.permissions.type === 'disabled') return;
  throw new WireError(
    'sandboxUnavailable',
    'this server has no sandbox: `sandbox` cannot be honoured and nothing was done',
    { field: 'sandbox' },
  );
}
